"""Renewing the index: vectors and terms of the present model and analyser for every memory.

Boundary: opens every body once, a batch at a time. Resumable: a batch is one transaction, and
what already has the present model's vectors and its collection's analysis is left alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from memory_store.errors import ModelUnavailableError
from memory_store.index.segment import IndexEntry, build
from memory_store.session.compaction import compact
from memory_store.session.indexer import Indexer
from memory_store.session.opened_vault import OpenVault
from memory_store.session.sealed_segments import write_index_segment
from memory_store.session.writer import overwrite_vectors
from memory_store.vault.rows import Origin, open_memories
from memory_store.vault.segments import REINDEXED
from memory_store.vault.storage import Storage

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder

BATCH = 64


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
    with vault.gate.entered():
        models = _Models(vault, load, collections)
        preparer = Indexer(vault, models.get, models.failed, anew=whole)
        pending = models.pending(whole=whole)
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
    if models.missing is not None:
        raise models.missing
    return done


class _Models:
    """The models of the collections that are to be renewed, adopted; and what is missing."""

    def __init__(
        self,
        vault: OpenVault,
        load: Callable[[str], Embedder],
        collections: Collection[str] | None,
    ) -> None:
        readable = vault.keyring.readable()
        wanted = [c for c in readable if collections is None or c in collections]
        self._vault = vault
        self._models: dict[str, Embedder] = {}
        self.missing: ModelUnavailableError | None = None
        for collection in wanted:
            try:
                self._models[collection] = load(collection)
            except ModelUnavailableError as error:
                self.failed(collection, error)
        self._wanted = wanted
        self._adopt()

    def failed(self, collection: str, error: ModelUnavailableError) -> None:
        """Keep the first failure, to be raised in the end."""
        self.missing = self.missing or _named(error, self._vault, collection)

    def get(self, collection: str) -> Embedder | None:
        """The model of a collection, if it is there."""
        return self._models.get(collection)

    def _adopt(self) -> None:
        """Make each model that of its collection, or of the vault, unless it is already."""
        for collection, embedder in self._models.items():
            if self._vault.settings.of(collection).fingerprint != embedder.fingerprint:
                with (
                    self._vault.writing() as storage,
                    storage.transaction(self._vault.keyring),
                ):
                    self._vault.adopt_model(storage, embedder, collection)

    def pending(self, *, whole: bool) -> list[str]:
        """The memories to renew: stale ones, and those without vectors where there is a model; all
        if ``whole``."""
        snapshot = self._vault.snapshot()
        found = []
        for collection in self._wanted:
            for ordinal in map(int, np.flatnonzero(snapshot.visible([collection]))):
                lacks = collection in self._models and not snapshot.windows(ordinal)
                if whole or lacks or snapshot.stale[ordinal]:
                    found.append(snapshot.id(ordinal))
        return found


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
                    _replace_entries(storage, vault, preparer, collection, fresh)
            compact(storage, vault.keyring)
    finally:
        overwrite_vectors(prepared)
    return sum(map(len, entries.values()))


def _replace_entries(
    storage: Storage,
    vault: OpenVault,
    preparer: Indexer,
    collection: str,
    entries: list[IndexEntry],
) -> None:
    storage.segments.log(collection, [entry.memory_id for entry in entries], REINDEXED)
    model = preparer.model(collection)
    segment = build(entries, model.dimensions)
    write_index_segment(storage, vault.keyring.of(collection), segment, model.mark)
