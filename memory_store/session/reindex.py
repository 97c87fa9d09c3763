"""Renewing the index: vectors and terms of the present model and analyser for every memory.

Boundary: opens every body once, a batch at a time. Resumable: a batch is one transaction, and
what already has the present model's vectors and its collection's analysis is left alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, structs

from memory_store.errors import ModelUnavailableError
from memory_store.index.segment import IndexEntry, build
from memory_store.records import Embedding, unheard
from memory_store.session.code_files import without_descriptions
from memory_store.session.embedders import without_model
from memory_store.session.entries import Windows
from memory_store.session.extras import without_records
from memory_store.session.indexer import Indexer
from memory_store.session.opened_vault import OpenVault
from memory_store.session.sealed_segments import write_index_segment
from memory_store.session.writer import compact, many_dead, overwrite_vectors, sweep
from memory_store.vault.rows import Origin, open_memories
from memory_store.vault.segments import REINDEXED

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder

BATCH = 64


class Pace(Struct, frozen=True):
    """How :func:`embed_missing` works: how many memories are in a transaction.

    ``seconds`` is what one is to take: a stop loses so much. ``breath`` is called between some
    windows and others and between batches. ``anew``: vectors of equal texts are not used again.
    """

    fewest: int = 16
    most: int = 512
    seconds: float = 6.0
    breath: Callable[[], None] = unheard
    anew: bool = False


HURRIED = Pace()
"""For a command that waits for it: texts of about one length are faster in large batches."""
UNHURRIED = Pace(fewest=4, most=64, seconds=2.0, anew=True)
"""Beside searches and writes."""


def reindex(
    vault: OpenVault,
    load: Callable[[str], Embedder],
    collections: Collection[str] | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
    *,
    whole: bool = False,
    folder: Callable[[str], str] = lambda collection: "",
) -> int:
    """Re-index what lacks the present model's vectors or was analysed in another way; everything
    if ``whole``, from the texts alone.

    ``load`` gives the model of a collection (by id), ``collections`` says which ones to renew
    (``None``: all), ``folder`` where the model lies that a collection had, if it was given as one:
    what that model made is searched by it until it is made anew. Returns how many memories were
    done. Where a model is missing, or fails on a
    text, words are renewed all the same; then its ModelUnavailableError is raised.
    """
    failures: list[ModelUnavailableError] = []

    def failed(collection: str, error: ModelUnavailableError) -> None:
        failures.append(_named(error, vault, collection))

    with vault.gate.entered():
        wanted = [c for c in vault.keyring.readable() if collections is None or c in collections]
        models = adopted(vault, load, wanted, failed, folder)
        preparer = Indexer(vault, models.get, failed, anew=whole)
        pending = list(_pending(vault, wanted, models, whole=whole))
    done = 0
    try:
        for start in range(0, len(pending), BATCH):
            if progress is not None:
                progress("", start, len(pending))
            with vault.gate.entered():  # between batches a lock may come
                done += _renew(vault, preparer, pending[start : start + BATCH])
    finally:
        preparer.close()
    vault.forget_earlier_models()
    _sweep(vault)
    if progress is not None:
        progress("", len(pending), len(pending))
    if failures:
        raise failures[0]
    return done


def adopted(
    vault: OpenVault,
    load: Callable[[str], Embedder],
    collections: Collection[str],
    failed: Callable[[str, ModelUnavailableError], None],
    folder: Callable[[str], str],
) -> dict[str, Embedder]:
    """The models of collections, which are theirs from now on; without those that are missing.

    Takes a transaction where one is new. What the one before made vectors of keeps them until
    :func:`reindex` or :func:`embed_missing` renews it.
    """
    models: dict[str, Embedder] = {}
    for collection in collections:
        try:
            models[collection] = load(collection)
        except ModelUnavailableError as error:
            failed(collection, error)
    for collection, embedder in models.items():
        if vault.settings.of(collection).fingerprint != embedder.fingerprint:
            with vault.writing() as storage, storage.transaction(vault.keyring):
                vault.adopt_model(storage, embedder, collection, folder(collection))
    return models


def embed_missing(
    vault: OpenVault,
    embedders: Callable[[str], Embedder | None],
    failed: Callable[[str, ModelUnavailableError], None],
    collections: Collection[str],
    progress: Callable[[Embedding], None],
    pace: Pace = HURRIED,
) -> int:
    """Embed every memory of these collections that has no vectors, newest first.

    Resumable: a batch is one transaction. ``progress`` is called with how much is done of what
    there was to do. Returns how many memories that were.
    """
    with vault.gate.entered():
        preparer = Indexer(vault, embedders, failed, anew=pace.anew)
        snapshot = vault.snapshot()
        readable = vault.keyring.readable()
        served = [one for one in readable if one in collections and preparer.embeds(one)]
        lacking = [
            ordinal
            for ordinal in np.flatnonzero(snapshot.visible(served)).tolist()
            if not snapshot.windows(ordinal)
        ]
        lacking.sort(key=lambda ordinal: -snapshot.created[ordinal])
        pending = snapshot.ids(lacking)
        # how many words stand before each: one more a memory, for a memory without a word
        words = [0, *np.cumsum(snapshot.lengths[lacking].astype(np.int64) + 1).tolist()]
    try:
        start, size = 0, pace.fewest
        while some := pending[start : start + size]:
            pace.breath()
            preparer.embedded = _within(progress, start, start + len(some), words, pace.breath)
            began = monotonic()
            with vault.gate.entered():
                _renew(vault, preparer, some)
            start += len(some)
            progress(Embedding(start, len(pending), words[start], words[-1]))
            wanted = int(size * pace.seconds / max(monotonic() - began, 0.1))
            size = min(max(wanted, pace.fewest), 2 * size, pace.most)
    finally:
        preparer.close()
    if pending:
        vault.forget_earlier_models()
    _sweep(vault)
    return len(pending)


def incomplete(vault: OpenVault, kinds: Collection[str] | None = None) -> list[int]:
    """The documents of the newest snapshot that lack a record of some kind, for they were indexed
    before there was that kind; newest first.

    Without those that an earlier model embedded: they get theirs when they are embedded anew.
    """
    snapshot = vault.snapshot()
    lacking = without_records(snapshot, set(vault.keyring.openable()), kinds)
    for part in snapshot.parts:
        if part.earlier_model:
            lacking[part.span] = False
    return sorted(np.flatnonzero(lacking).tolist(), key=lambda one: -snapshot.created[one])


def complete(vault: OpenVault, pace: Pace, seconds: float = math.inf) -> int:
    """Give documents the records that they lack, such as their words as spelled. Their vectors stay
    as they are, so that no model is needed.

    Resumable: a batch, of one collection, is one transaction. Begins none after so many
    ``seconds``. Returns how many were done.
    """
    with vault.gate.entered():
        snapshot = vault.snapshot()
        pending: dict[str, list[str]] = defaultdict(list)
        for ordinal in incomplete(vault):
            pending[snapshot.collection(ordinal)].append(snapshot.id(ordinal))
        preparer = Indexer(vault, without_model, anew=True) if pending else None
    if preparer is None:
        return 0
    done, size, ends = 0, pace.fewest, monotonic() + seconds
    try:
        for collection, ids in pending.items():
            while ids and monotonic() < ends:
                pace.breath()
                some, ids = ids[:size], ids[size:]
                began = monotonic()
                with vault.gate.entered():
                    preparer.given, known = _own_vectors(vault, collection, some)
                    done += _renew(vault, preparer, known)
                wanted = int(size * pace.seconds / max(monotonic() - began, 0.1))
                size = min(max(wanted, pace.fewest), 2 * size, pace.most)
    finally:
        preparer.close()
    _sweep(vault)
    return done


def _sweep(vault: OpenVault) -> None:
    """Remove dead entries if there are many: each opening of the vault reads them, too."""
    with vault.gate.entered():
        snapshot = vault.snapshot()
        if many_dead(snapshot.size, snapshot.total):
            with vault.writing() as storage:
                sweep(storage, vault.keyring)


def _own_vectors(
    vault: OpenVault, collection: str, ids: Sequence[str]
) -> tuple[dict[tuple[str, bytes], Windows], list[str]]:
    """What memories of a collection have been embedded to, as :attr:`Indexer.given` has it, and
    those of them that no earlier model embedded: another process may have changed it meanwhile."""
    snapshot, model = vault.snapshot(), vault.settings.of(collection).fingerprint
    found, known = {}, []
    for memory in ids:
        ordinal = snapshot.ordinal_of(memory)
        if ordinal is None or snapshot.part_of(ordinal).earlier_model:
            continue
        known.append(memory)
        if spans := snapshot.windows(ordinal):
            tag = snapshot.content_tags[ordinal].tobytes()
            found[model, tag] = Windows(tuple(spans), snapshot.stored_vectors(ordinal))
    return found, known


def _within(
    progress: Callable[[Embedding], None],
    start: int,
    end: int,
    words: Sequence[int],
    breath: Callable[[], None],
) -> Callable[[int, int], None]:
    """A listener for the windows of a batch, which counts memories and words of all batches."""

    def embedded(done: int, windows: int) -> None:
        breath()
        part = done / max(1, windows)
        at = words[start] + int((words[end] - words[start]) * part)
        memories = start + int((end - start) * part)
        progress(Embedding(memories, len(words) - 1, at, words[-1]))

    return embedded


def _pending(
    vault: OpenVault, wanted: Sequence[str], models: Container[str], *, whole: bool
) -> Iterator[str]:
    """The memories to renew: stale ones, those without vectors where there is a model, and those
    without a record of some kind, or with an earlier one; all if ``whole``.

    Where there is no model, what an earlier one made vectors of keeps these.
    """
    snapshot = vault.snapshot()
    lacking = without_records(snapshot, wanted)
    lacking[[*without_descriptions(vault, snapshot)]] = True
    for collection in wanted:
        for ordinal in np.flatnonzero(snapshot.visible([collection])).tolist():
            if collection not in models and snapshot.part_of(ordinal).earlier_model and not whole:
                continue
            lacks = collection in models and not snapshot.windows(ordinal)
            if whole or lacks or snapshot.stale[ordinal] or lacking[ordinal]:
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
