"""Writing memories: rows, index segment, change log and account, in one transaction.

Boundary: plain memories come in and leave sealed. Everything slow (reading, embedding) has
happened before; here nothing waits while the write lock is held.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memory_store.errors import ConflictError
from memory_store.index.codec import encode
from memory_store.index.layout import Segment, overwrite
from memory_store.index.segment import IndexEntry, build
from memory_store.records import Memory
from memory_store.sqlite import sqlite3
from memory_store.vault.keyring import CollectionKeys, Keyring
from memory_store.vault.manifest import account
from memory_store.vault.rows import Origin, insert_memory, read_rows, remove_memories
from memory_store.vault.segments import DELETED, UPDATED, log_changes, write_segment
from memory_store.vault.settings import MEMORY, Settings
from memory_store.vault.transactions import transaction


class Prepared(Struct, frozen=True):
    """A memory ready to be written. Version 1 is new; a later one replaces the version before."""

    memory: Memory
    origin: Origin
    entry: IndexEntry


RowTags = Callable[[Sequence[str]], Mapping[str, bytes]]
"""From ids to the row tags that the index knows, of those that it knows."""


class IndexModel(Struct, frozen=True):
    """What a segment's entries are made with: its ``mark`` (see there), its vectors' dimensions."""

    mark: str = ""
    dimensions: int = 0


def write_batch(
    connection: sqlite3.Connection,
    keyring: Keyring,
    batch: Sequence[Prepared],
    *,
    settings: Callable[[sqlite3.Connection], Settings],
    model: Callable[[str], IndexModel],
    row_tags: RowTags,
    also: Callable[[sqlite3.Connection], None] | None = None,
) -> None:
    """Write a batch, all of it or nothing. ``also`` runs inside the same transaction.

    ``settings`` reads them in the transaction: what may stand in clear is what the file says then,
    not what this process knew before. ``model`` says what a collection's entries were made with,
    ``row_tags`` what the account knows of those that are replaced.
    Raises ConflictError, writing nothing, when a memory to be replaced is not at the version
    before, or one to be made exists.
    """
    with transaction(connection, keyring):
        known = settings(connection)
        hashed = known.topics_kept != MEMORY
        _replace_rows(connection, keyring, batch, row_tags)
        by_collection: dict[str, list[Prepared]] = defaultdict(list)
        for prepared in batch:
            by_collection[prepared.memory.collection].append(prepared)
        for collection, items in by_collection.items():
            keys = keyring.of(collection)
            tags = [
                insert_memory(
                    connection,
                    keys,
                    item.memory,
                    item.origin,
                    strict=known.strict,
                    hash_topics=hashed,
                )
                for item in items
            ]
            made_with = model(collection)
            entries = [
                replace(item.entry, row_tag=tag) for item, tag in zip(items, tags, strict=True)
            ]
            segment = build(entries, made_with.dimensions)
            write_index_segment(connection, keys, segment, made_with.mark)
            account(connection, keys, added=tags)
        if also is not None:
            also(connection)


def write_index_segment(
    connection: sqlite3.Connection, keys: CollectionKeys, segment: Segment, mark: str
) -> None:
    """Seal and store a segment, and overwrite it: what stays in memory is read from the vault."""
    try:
        parts = encode(segment)
    finally:
        segment.wipe()
    try:
        write_segment(connection, keys, documents=segment.count, model=mark, **parts._asdict())
    finally:
        parts.wipe()


def forget_vectors(batch: Sequence[Prepared]) -> None:
    """Overwrite the vectors of memories that were written, or could not be."""
    overwrite(item.entry.vectors for item in batch)


def _replace_rows(
    connection: sqlite3.Connection,
    keyring: Keyring,
    batch: Sequence[Prepared],
    row_tags: RowTags,
) -> None:
    present = read_rows(connection, [item.memory.id for item in batch])
    replaced: dict[str, list[str]] = defaultdict(list)
    for item in batch:
        row = present.get(item.memory.id)
        before = row.version if row is not None else 0
        if before != item.memory.version - 1:
            raise ConflictError(f"memory {item.memory.id} was changed by somebody else meanwhile")
        if row is not None:
            replaced[row.collection].append(row.id)
    _remove(connection, keyring, replaced, row_tags, UPDATED)


def _remove(
    connection: sqlite3.Connection,
    keyring: Keyring,
    gone: Mapping[str, Sequence[str]],
    row_tags: RowTags,
    operation: str,
) -> None:
    """Take memories (by collection) out of rows, index and account.

    Which tags go from the account says the index: a row may be another one that was put back.
    """
    for collection, ids in gone.items():
        known = row_tags(ids)
        remove_memories(connection, ids)
        log_changes(connection, collection, ids, operation)
        account(connection, keyring.of(collection), removed=known.values())


def delete_batch(
    connection: sqlite3.Connection,
    keyring: Keyring,
    ids: Sequence[str],
    *,
    row_tags: RowTags,
    versions: Mapping[str, int] | None = None,
    also: Callable[[sqlite3.Connection], None] | None = None,
) -> int:
    """Delete memories everywhere. Returns how many were there.

    ``row_tags`` as in :func:`write_batch`; ``versions`` are those that some of them must have:
    another raises ConflictError, and nothing is deleted.
    """
    with transaction(connection, keyring):
        present = read_rows(connection, ids)
        changed = [
            row.id
            for row in present.values()
            if (versions or {}).get(row.id, row.version) != row.version
        ]
        if changed:
            raise ConflictError(
                f"memory {changed[0]} was changed by somebody else meanwhile", changed
            )
        gone: dict[str, list[str]] = defaultdict(list)
        for row in present.values():
            gone[row.collection].append(row.id)
        _remove(connection, keyring, gone, row_tags, DELETED)
        if also is not None:
            also(connection)
    return len(present)
