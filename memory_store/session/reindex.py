"""Renewing the index: vectors and terms of the present model and analyser for every memory.

Boundary: opens every body once, a batch at a time. Resumable: a batch is one transaction, and
what already has the present model's vectors and its collection's analysis is left alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from memory_store.errors import ModelUnavailableError
from memory_store.index.segment import IndexEntry, build
from memory_store.index.snapshot import Snapshot
from memory_store.session.indexer import Indexer
from memory_store.session.opened_vault import OpenVault
from memory_store.session.sealed_segments import write_index_segment
from memory_store.session.writer import compact, overwrite_vectors
from memory_store.vault.rows import Origin, open_memories
from memory_store.vault.segments import REINDEXED

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder

BATCH = 64
FEWEST_TOGETHER, MOST_TOGETHER = 16, 512  # memories in one transaction of :func:`embed_missing`
BATCH_SECONDS = 6.0  # what it is to take: a stop loses so much at most, and a lock waits for it


def reindex(
    vault: OpenVault,
    load: Callable[[str], Embedder],
    collections: Collection[str] | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
    *,
    whole: bool = False,
) -> int:
    """Re-index what lacks the present model's vectors or was analysed in another way; everything
    if ``whole``, from the texts alone.

    ``load`` gives the model of a collection (by id), ``collections`` says which ones to renew
    (``None``: all). Returns how many memories were done. Where a model is missing, or fails on a
    text, words are renewed all the same; then its ModelUnavailableError is raised.
    """
    models: dict[str, Embedder] = {}
    failures: list[ModelUnavailableError] = []

    def failed(collection: str, error: ModelUnavailableError) -> None:
        failures.append(_named(error, vault, collection))

    with vault.gate.entered():
        wanted = [c for c in vault.keyring.readable() if collections is None or c in collections]
        for collection in wanted:
            try:
                models[collection] = load(collection)
            except ModelUnavailableError as error:
                failed(collection, error)
        for collection, embedder in models.items():
            if vault.settings.of(collection).fingerprint != embedder.fingerprint:
                with vault.writing() as storage, storage.transaction(vault.keyring):
                    vault.adopt_model(storage, embedder, collection)
        preparer = Indexer(vault, models.get, failed, anew=whole)
        pending = list(_pending(vault.snapshot(), wanted, models, whole=whole))
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
    if failures:
        raise failures[0]
    return done


def embed_missing(
    vault: OpenVault,
    embedders: Callable[[str], Embedder | None],
    failed: Callable[[str, ModelUnavailableError], None],
    collections: Collection[str],
    progress: Callable[[str, int, int | None], None],
) -> int:
    """Embed every memory of these collections that has no vectors, newest first.

    Resumable: a batch is one transaction. Texts of about one length are embedded together, which is
    faster in large batches; but a stop loses the batch at work, so each is to take a few seconds.
    ``progress`` is called with how many memories are done.
    Returns how many there were.
    """
    with vault.gate.entered():
        preparer = Indexer(vault, embedders, failed)
        snapshot = vault.snapshot()
        readable = vault.keyring.readable()
        served = [one for one in readable if one in collections and preparer.embeds(one)]
        lacking = [
            ordinal
            for ordinal in np.flatnonzero(snapshot.visible(served)).tolist()
            if not snapshot.windows(ordinal)
        ]
        lacking.sort(key=lambda ordinal: -snapshot.created[ordinal])
        pending = [snapshot.id(ordinal) for ordinal in lacking]
    try:
        start, size = 0, FEWEST_TOGETHER
        while some := pending[start : start + size]:
            preparer.embedded = _within(progress, start, len(some), len(pending))
            began = monotonic()
            with vault.gate.entered():
                _renew(vault, preparer, some)
            start += len(some)
            wanted = int(size * BATCH_SECONDS / max(monotonic() - began, 0.1))
            size = min(max(wanted, FEWEST_TOGETHER), 2 * size, MOST_TOGETHER)
    finally:
        preparer.close()
    return len(pending)


def _within(
    progress: Callable[[str, int, int | None], None], before: int, batch: int, total: int
) -> Callable[[int, int], None]:
    """A listener for the windows of a batch, which counts memories of all batches."""

    def embedded(done: int, windows: int) -> None:
        progress("embedding", before + batch * done // max(1, windows), total)

    return embedded


def _pending(
    snapshot: Snapshot, wanted: Iterable[str], models: Container[str], *, whole: bool
) -> Iterator[str]:
    """The memories to renew: stale ones, and those without vectors where there is a model; all if
    ``whole``."""
    for collection in wanted:
        for ordinal in np.flatnonzero(snapshot.visible([collection])).tolist():
            lacks = collection in models and not snapshot.windows(ordinal)
            if whole or lacks or snapshot.stale[ordinal]:
                yield snapshot.id(ordinal)


def _named(
    error: ModelUnavailableError, vault: OpenVault, collection: str
) -> ModelUnavailableError:
    """The error, saying which collection it is about where that is not every one."""
    if not vault.settings.chosen(collection).embedder:
        return error
    name = vault.collections.names()[collection]
    return ModelUnavailableError(f"collection {name!r}: {error}", error.remedy)


def _renew(vault: OpenVault, preparer: Indexer, ids: list[str]) -> int:
    with vault.moment() as (storage, known):
        memories = list(open_memories(storage, vault.keyring, ids, known))
        opened = known.tags(ids)
    prepared = preparer.prepare([(memory, Origin()) for memory in memories])
    entries: dict[str, list[IndexEntry]] = defaultdict(list)
    try:
        with vault.writing() as storage:
            with storage.transaction(vault.keyring):
                present = vault.row_tags([memory.id for memory in memories])
                for item in prepared:
                    tag = present.get(item.memory.id)
                    if tag is not None and tag == opened[item.memory.id]:
                        entry = structs.replace(item.entry, row_tag=tag)
                        entries[item.memory.collection].append(entry)
                for collection, fresh in entries.items():
                    renewed = [entry.memory_id for entry in fresh]
                    storage.segments.log(collection, renewed, REINDEXED)
                    model = preparer.model(collection)
                    segment = build(fresh, model.dimensions)
                    keys = vault.keyring.of(collection)
                    write_index_segment(storage, keys, segment, model.mark)
            compact(storage, vault.keyring)
    finally:
        overwrite_vectors(prepared)
    return sum(map(len, entries.values()))
