"""Memories written and deleted: rows, index segment, change log and account, in one transaction.

Boundary: plain memories come in and leave sealed. Everything slow (reading, embedding) has
happened before; here nothing waits while the write lock is held.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memory_store.errors import ConflictError
from memory_store.index.layout import overwrite
from memory_store.index.segment import IndexEntry, build
from memory_store.records import Memory
from memory_store.session.compaction import compact, drop
from memory_store.session.index_model import IndexModel
from memory_store.session.opened_vault import OpenVault
from memory_store.session.sealed_segments import write_index_segment
from memory_store.vault.collection_keys import CollectionKeys
from memory_store.vault.manifest import account
from memory_store.vault.rows import Origin, insert_memories
from memory_store.vault.segments import DELETED, UPDATED
from memory_store.vault.settings import MEMORY, Settings
from memory_store.vault.storage import Storage
from memory_store.vault.transactions import erase_traces, transaction


class Prepared(Struct, frozen=True):
    """A memory ready to be written. Version 1 is new; a later one replaces the version before."""

    memory: Memory
    origin: Origin
    entry: IndexEntry


def write_batch(
    vault: OpenVault,
    batch: Sequence[Prepared],
    model: Callable[[str], IndexModel],
    also: Callable[[Storage], None] | None = None,
) -> None:
    """Write a batch, all of it or nothing. ``also`` runs inside the same transaction.

    What may stand in clear is what the settings say in that transaction, not what this process knew
    before. ``model`` is what a collection's entries were made with. Raises ConflictError, writing
    nothing, when a memory to be replaced is not at the version before, or one to be made exists.
    """
    keyring = vault.keyring
    try:
        with vault.writing() as connection:
            with transaction(connection, keyring):
                known = vault.settings_in(connection)
                _replace_rows(connection, vault, batch)
                by_collection: dict[str, list[Prepared]] = defaultdict(list)
                for prepared in batch:
                    by_collection[prepared.memory.collection].append(prepared)
                for collection, items in by_collection.items():
                    _insert(connection, keyring.of(collection), items, known, model(collection))
                if also is not None:
                    also(connection)
            compact(connection, keyring)
    finally:
        overwrite_vectors(batch)


def _insert(
    connection: Storage,
    keys: CollectionKeys,
    items: Sequence[Prepared],
    settings: Settings,
    model: IndexModel,
) -> None:
    """Rows, segment and account of one collection's memories."""
    hashed = settings.topics_kept != MEMORY
    written = [(item.memory, item.origin) for item in items]
    tags = insert_memories(connection, keys, written, strict=settings.strict, hash_topics=hashed)
    entries = [replace(item.entry, row_tag=tag) for item, tag in zip(items, tags, strict=True)]
    write_index_segment(connection, keys, build(entries, model.dimensions), model.mark)
    account(connection, keys, added=tags)


def overwrite_vectors(batch: Sequence[Prepared]) -> None:
    """Overwrite the vectors of memories that were written, or could not be."""
    overwrite(item.entry.vectors for item in batch)


def _replace_rows(connection: Storage, vault: OpenVault, batch: Sequence[Prepared]) -> None:
    present = connection.memories.rows([item.memory.id for item in batch])
    replaced: dict[str, list[str]] = defaultdict(list)
    for item in batch:
        row = present.get(item.memory.id)
        before = row.version if row is not None else 0
        if before != item.memory.version - 1:
            raise ConflictError(f"memory {item.memory.id} was changed by somebody else meanwhile")
        if row is not None:
            replaced[row.collection].append(row.id)
    _remove(connection, vault, replaced, UPDATED)


def _remove(
    connection: Storage,
    vault: OpenVault,
    gone: Mapping[str, Sequence[str]],
    operation: str,
) -> None:
    """Take memories (by collection) out of rows, index and account.

    The index says which tags go from the account: a row may be another one that was put back.
    """
    for collection, ids in gone.items():
        known = vault.row_tags(ids)
        connection.memories.remove(ids)
        connection.segments.log(collection, ids, operation)
        account(connection, vault.keyring.of(collection), removed=known.values())


def delete_memories(
    vault: OpenVault,
    ids: Sequence[str],
    *,
    versions: Mapping[str, int] | None = None,
    also: Callable[[Storage], None] | None = None,
) -> int:
    """Delete memories from rows, index and write-ahead log. Returns how many were there.

    ``versions`` are those that some of them must have: another raises ConflictError, and nothing
    is deleted. ``also`` runs inside the same transaction.
    """
    with vault.writing() as connection:
        with transaction(connection, vault.keyring):
            present = connection.memories.rows(ids)
            wanted = versions or {}
            changed = [
                row.id for row in present.values() if wanted.get(row.id, row.version) != row.version
            ]
            if changed:
                raise ConflictError(
                    f"memory {changed[0]} was changed by somebody else meanwhile", changed
                )
            gone: dict[str, list[str]] = defaultdict(list)
            for row in present.values():
                gone[row.collection].append(row.id)
            _remove(connection, vault, gone, DELETED)
            drop(connection, vault.keyring, ids)
            if also is not None:
                also(connection)
        erase_traces(connection)
    return len(present)
