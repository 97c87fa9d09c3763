"""Renewing the index: vectors and terms of the present model and analyser for every memory.

Boundary: opens every body once, a batch at a time. Resumable: a batch is one transaction, and
what already has the present model's vectors is left alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from memory_store.index.codec import encode
from memory_store.index.opened import OpenVault
from memory_store.index.preparing import Preparer
from memory_store.index.segment import IndexEntry, build
from memory_store.sqlite import sqlite3
from memory_store.text.tokens import ANALYSER_VERSION
from memory_store.vault.rows import Origin, open_memories, read_rows
from memory_store.vault.segments import REINDEXED, log_changes, write_segment
from memory_store.vault.transactions import transaction

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder

BATCH = 64


def reindex(
    vault: OpenVault,
    embedder: Embedder,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> int:
    """Re-index what lacks the present model's vectors. Returns how many memories were done."""
    with vault.gate.entered():
        preparer, pending = _prepare(vault, embedder)
    done = 0
    try:
        for start in range(0, len(pending), BATCH):
            if progress is not None:
                progress("", start, len(pending))
            with vault.gate.entered():  # between batches a lock may come
                done += _renew(vault, preparer, pending[start : start + BATCH])
    finally:
        preparer.close()
    if progress is not None:
        progress("", len(pending), len(pending))
    return done


def _prepare(vault: OpenVault, embedder: Embedder) -> tuple[Preparer, list[str]]:
    """Adopt the model, and say which memories lack its vectors."""
    settings = vault.settings
    if (settings.fingerprint, settings.analyser) != (embedder.fingerprint, ANALYSER_VERSION):
        everything = settings.analyser != ANALYSER_VERSION
        with vault.writing() as connection, transaction(connection):
            vault.adopt_model(connection, embedder)
    else:
        everything = False
    snapshot = vault.snapshot()
    alive = map(int, np.flatnonzero(snapshot.alive))
    pending = [snapshot.id(i) for i in alive if everything or not snapshot.windows(i)]
    return Preparer(vault, embedder), pending


def _renew(vault: OpenVault, preparer: Preparer, ids: list[str]) -> int:
    memories = list(open_memories(vault.reader(), vault.keyring, ids))
    prepared = preparer.prepare([(memory, Origin()) for memory in memories])
    versions = {memory.id: memory.version for memory in memories}
    entries: dict[str, list[IndexEntry]] = defaultdict(list)
    with vault.writing() as connection:
        with transaction(connection):
            present = read_rows(connection, list(versions))
            for item in prepared:
                row = present.get(item.memory.id)
                if row is not None and row.version == versions[row.id]:
                    entries[row.collection].append(item.entry)
            for collection, fresh in entries.items():
                _replace_entries(connection, vault, preparer, collection, fresh)
        vault.index.compact(connection)
    return sum(map(len, entries.values()))


def _replace_entries(
    connection: sqlite3.Connection,
    vault: OpenVault,
    preparer: Preparer,
    collection: str,
    entries: list[IndexEntry],
) -> None:
    log_changes(connection, collection, [entry.memory_id for entry in entries], REINDEXED)
    model = preparer.model()
    parts = encode(build(entries, model.dimensions))
    write_segment(
        connection,
        vault.keyring.of(collection),
        documents=len(entries),
        model=model.fingerprint,
        main=parts.main,
        vectors=parts.vectors,
        pairs=parts.pairs,
    )
