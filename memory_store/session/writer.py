"""Memories written and deleted: rows, index segment, change log, account and trash, in one
transaction.

Boundary: plain memories come in and leave sealed. Everything slow (reading, embedding) has
happened before; here nothing waits while the write lock is held. Segments are merged, so that they
stay few and hold no deleted memory, with the keys of some collections those of these alone; what is
opened of them is overwritten before a function returns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memory_store.errors import ConflictError, NotFoundError
from memory_store.index.layout import overwrite
from memory_store.index.segment import IndexEntry, build, merge
from memory_store.records import Memory
from memory_store.session.opened_vault import OpenVault
from memory_store.session.sealed_segments import (
    IndexModel,
    alive_rows,
    id_words,
    load_segment,
    write_index_segment,
)
from memory_store.vault import trash
from memory_store.vault.collection_keys import CollectionKeys
from memory_store.vault.keyring import Keyring
from memory_store.vault.manifest import account
from memory_store.vault.originals import sealed as sealed_original
from memory_store.vault.rows import Origin, insert_memories
from memory_store.vault.segments import DELETED, UPDATED
from memory_store.vault.settings import MEMORY, Settings
from memory_store.vault.storage import Storage
from memory_store.vault.storage.segments import SegmentRow
from memory_store.vault.trash import Change

TIER_FACTOR = 8  # segments of about one size that are merged into one of the next
MANY_DEAD = 0.2  # of the entries
MOST_DOCUMENTS = 32_768  # in a segment: its sealed parts stay far below SQLite's blob limit


class Prepared(Struct, frozen=True):
    """A memory ready to be written. Version 1 is new; a later one replaces the version before.

    ``links`` are the targets of the links in it, by how they are written.
    One that is restored says the version it ``replaces``, which need not be the one before, and may
    be there no more.
    """

    memory: Memory
    origin: Origin
    entry: IndexEntry
    links: Mapping[str, Sequence[str]] = {}
    replaces: int | None = None


def write_batch(
    vault: OpenVault,
    batch: Sequence[Prepared],
    model: Callable[[str], IndexModel],
    change: Change,
    also: Callable[[Storage], None] | None = None,
    originals: Mapping[str, bytes] = MappingProxyType({}),
) -> None:
    """Write a batch, all of it or nothing. ``also`` runs inside the same transaction. ``originals``
    are the bytes of those that memories name, by memory, as far as they are not there.

    What it replaces goes to the trash, as part of a ``change``.

    What may stand in clear is what the settings say in that transaction, not what this process knew
    before. ``model`` is what a collection's entries were made with. Raises ConflictError, writing
    nothing, when a memory to be replaced is not at the version before, or one to be made exists.
    """
    keyring = vault.keyring
    try:
        with vault.writing() as storage:
            with storage.transaction(keyring):
                known = vault.settings_in(storage)
                _replace_rows(storage, vault, batch, change)
                by_collection: dict[str, list[Prepared]] = defaultdict(list)
                for prepared in batch:
                    by_collection[prepared.memory.collection].append(prepared)
                for collection, items in by_collection.items():
                    made_with = model(collection)
                    _insert(storage, keyring.of(collection), items, known, made_with, originals)
                if also is not None:
                    also(storage)
                again = [one.memory.id for one in batch if one.memory.version > 1]
                trash.drop_originals(storage, keyring, again)
                segments = storage.segments.rows_later()
            compact(storage, keyring, segments())
    finally:
        overwrite_vectors(batch)


def _insert(
    storage: Storage,
    keys: CollectionKeys,
    items: Sequence[Prepared],
    settings: Settings,
    model: IndexModel,
    originals: Mapping[str, bytes],
) -> None:
    """Rows, segment and account of one collection's memories."""
    hashed = settings.topics_kept != MEMORY
    written = [
        (
            sealed_original(storage, keys, item.memory, originals[item.memory.id])
            if item.memory.id in originals
            else item.memory,
            item.origin,
        )
        for item in items
    ]
    tags = insert_memories(
        storage,
        keys,
        written,
        strict=settings.strict,
        hash_topics=hashed,
        links=[item.links for item in items],
    )
    entries = [replace(item.entry, row_tag=tag) for item, tag in zip(items, tags, strict=True)]
    write_index_segment(storage, keys, build(entries, model.dimensions), model.mark)
    account(storage, keys, added=tags)


def overwrite_vectors(batch: Sequence[Prepared]) -> None:
    """Overwrite the vectors of memories that were written, or could not be."""
    overwrite(item.entry.vectors for item in batch)


def _replace_rows(
    storage: Storage, vault: OpenVault, batch: Sequence[Prepared], change: Change
) -> None:
    present = storage.memories.rows([item.memory.id for item in batch])
    replaced: dict[str, list[str]] = defaultdict(list)
    for item in batch:
        row = present.get(item.memory.id)
        before = row.version if row is not None else 0
        wanted = item.memory.version - 1 if item.replaces is None else item.replaces
        if before != wanted and not (item.replaces is not None and row is None):
            raise ConflictError(f"memory {item.memory.id} was changed by another writer meanwhile")
        if row is not None:
            replaced[row.collection].append(row.id)
    _remove(storage, vault, replaced, UPDATED, change)


def _remove(
    storage: Storage,
    vault: OpenVault,
    gone: Mapping[str, Sequence[str]],
    operation: str,
    change: Change | None,
) -> set[str]:
    """Take memories (by collection) out of rows, index and account, and (as part of a ``change``)
    into the trash, unless that is off. Returns those that are in the trash now.

    The index says which tags go from the account: a row may be another one that was put back.
    """
    keeps = change is not None and vault.settings_in(storage).trash > 0
    readable, kept = vault.keyring.readable(), set[str]()
    for collection, ids in gone.items():
        if collection not in readable:  # moved there meanwhile, or since an earlier version
            raise NotFoundError(f"no memory {ids[0]!r} that you may change")
        known = vault.row_tags(ids)
        if keeps and change is not None:
            vectors = vault.kept_vectors(collection, ids) if operation == DELETED else {}
            kept |= trash.keep(
                storage, vault.keyring, collection, ids, operation, change, known, vectors
            )
        storage.memories.remove(ids)
        storage.segments.log(collection, ids, operation)
        account(storage, vault.keyring.of(collection), removed=known.values())
    return kept


def delete_memories(
    vault: OpenVault,
    ids: Sequence[str],
    change: Change | None,
    *,
    versions: Mapping[str, int] | None = None,
    also: Callable[[Storage], None] | None = None,
) -> int:
    """Delete memories from rows and write-ahead log. Returns how many were there.

    They go to the trash, as part of a ``change``. With ``None`` they do not, and what the trash has
    of them goes, too. ``versions`` are those that some of them must have: another raises
    ConflictError, and nothing is deleted. ``also`` runs inside the same transaction.
    """
    with vault.writing() as storage:
        with storage.transaction(vault.keyring):
            present = storage.memories.rows(ids)
            wanted = versions or {}
            changed = [
                row.id for row in present.values() if wanted.get(row.id, row.version) != row.version
            ]
            if changed:
                raise ConflictError(
                    f"memory {changed[0]} was changed by another writer meanwhile", changed
                )
            take_out(storage, vault, ids, change)
            if change is None:
                trash.erase(storage, vault.keyring, ids)
            if also is not None:
                also(storage)
        storage.erase_traces()
    return len(present)


def take_out(storage: Storage, vault: OpenVault, ids: Sequence[str], change: Change | None) -> None:
    """Delete memories inside the caller's transaction, into the trash if it is a ``change``.

    The entries of those that are in the trash stay in the index, dead, until they are erased there:
    to write a large segment without them takes seconds.
    """
    gone: dict[str, list[str]] = defaultdict(list)
    for row in storage.memories.rows(ids).values():
        gone[row.collection].append(row.id)
    kept = _remove(storage, vault, gone, DELETED, change)
    trash.drop_originals(storage, vault.keyring, ids)
    drop(storage, vault.keyring, [one for one in ids if one not in kept])


def compact(storage: Storage, keyring: Keyring, there: Sequence[SegmentRow] | None = None) -> int:
    """Merge small segments and drop dead entries. Returns how many segments went away.

    ``there`` are the segments, for a caller who knows.
    """
    merged = 0
    readable = set(keyring.readable())
    while _next_merge(storage.segments.rows() if there is None else there, readable):
        there = None
        with storage.transaction(keyring):
            group = _next_merge(storage.segments.rows(), set(keyring.readable()))
            if not group:  # another process was faster
                return merged
            _merge(storage, keyring, group)
            merged += len(group) - 1
    if merged:
        storage.give_back()
    return merged


def many_dead(entries: int, living: int) -> bool:
    """Whether of so many entries more than :data:`MANY_DEAD` are dead: then they are rewritten."""
    return living < (1.0 - MANY_DEAD) * entries


def sweep(storage: Storage, keyring: Keyring) -> None:
    """Rewrite the segments of which many entries are dead, without these."""
    for row in storage.segments.rows():
        if row.collection not in keyring.readable():
            continue
        with storage.transaction(keyring):
            if row.id not in [one.id for one in storage.segments.rows()]:
                continue  # another process did it
            segment = load_segment(storage, keyring.of(row.collection), row)
            alive = alive_rows(storage, row, segment)
            segment.wipe()
            if many_dead(len(alive), int(np.count_nonzero(alive))):
                _merge(storage, keyring, [row])
    storage.give_back()


def _merge(storage: Storage, keyring: Keyring, group: Sequence[SegmentRow]) -> None:
    keys = keyring.of(group[0].collection)
    parts = [
        (segment, alive_rows(storage, row, segment))
        for row in group
        for segment in [load_segment(storage, keys, row, keys.earliest)]
    ]
    try:
        together = merge(parts)
    finally:
        for segment, _ in parts:
            segment.wipe()
    if together.count:
        write_index_segment(storage, keys, together, group[0].model)
    storage.segments.delete([row.id for row in group])
    storage.segments.trim_changes()


def drop(storage: Storage, keyring: Keyring, ids: Collection[str] | None = None) -> None:
    """Rewrite the segments that hold dead entries of memories (``None``: any), without them.

    Inside the transaction that erases: a process killed between two of them would leave words
    and vectors of a memory that is gone.
    """
    for row in storage.segments.rows() if ids is None or ids else ():
        if row.collection in keyring.readable():
            segment = load_segment(storage, keyring.of(row.collection), row)
            wanted = slice(None) if ids is None else segment.rows_of_all(id_words(ids))
            if not alive_rows(storage, row, segment)[wanted].all():
                _merge(storage, keyring, [row])
            segment.wipe()


def _next_merge(rows: Sequence[SegmentRow], readable: set[str]) -> list[SegmentRow]:
    """The oldest segments of one collection, model and size tier that are due to be merged."""
    tiers: dict[tuple[str, str, int], list[SegmentRow]] = defaultdict(list)
    for row in rows:
        if row.collection in readable and row.documents < MOST_DOCUMENTS:
            tier = (max(1, row.documents).bit_length() - 1) // 3  # powers of TIER_FACTOR
            tiers[row.collection, row.model, tier].append(row)
    for group in tiers.values():
        if len(group) >= TIER_FACTOR:
            sizes = accumulate(row.documents for row in group)
            chosen = group[: sum(size <= MOST_DOCUMENTS for size in sizes)]
            if len(chosen) > 1:
                return chosen
    return []
