"""Sealing a collection's rows anew, in the newest epoch of its keys: batch by batch.

Boundary: sealed rows in, sealed rows out; a content is in memory for as long as its batch lasts.
Every value authenticates under the key it was sealed with first: what was tampered with stops the
change of keys and is named, never sealed anew.

Each function works inside the caller's transaction, and does what it finds left of the earlier
epochs: at the end nothing is, and however often it was stopped it goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from memory_store.crypto.blinding import TAG_BYTES
from memory_store.crypto.sealing import sealed_epoch
from memory_store.errors import TamperedError
from memory_store.sqlite import sqlite3
from memory_store.vault.collection_keys import CollectionKeys
from memory_store.vault.manifest import count_rows, read_manifest, write_manifest
from memory_store.vault.rows import body_place
from memory_store.vault.segments import list_segments, reseal_segment

BATCH = 256  # rows in a transaction: about 10 ms of other writers' time
EPOCH_IN_HEADER = "substr({}, 3, 4)"  # of a sealed value, see ``crypto/sealing.py``

Done = tuple["int | None", int]
Step = Callable[[sqlite3.Connection, CollectionKeys, int], Done]
"""Seals some rows behind a rowid anew: the rowid to go on from (None: none was left), how many."""


def reseal_heads(connection: sqlite3.Connection, keys: CollectionKeys, after: int) -> Done:
    """Heads of memories."""
    rows = _left(connection, keys, "memories", "id, version, head", "head", after)
    for _, row, version, sealed in rows:
        place = keys.place("memories", "head", row, version)
        fresh = keys.seal("head", place, keys.unseal("head", place, sealed))
        connection.execute("update memories set head = ? where id = ?", (fresh, row))
    return (rows[-1][0] if rows else None), len(rows)


def reseal_bodies(connection: sqlite3.Connection, keys: CollectionKeys, after: int) -> Done:
    """Bodies, with the tags that they are found by."""
    rows = _left(connection, keys, "memory_bodies", "id, tag, body", "body", after)
    for _, content, tag, sealed in rows:
        before = body_place(keys, content, tag)
        text = keys.unseal("body", before, sealed)
        fresh = keys.restored(sealed_epoch(sealed, before), tag)
        connection.execute(
            "update memory_bodies set tag = ?, body = ? where id = ?",
            (fresh, keys.seal("body", body_place(keys, content, fresh), text), content),
        )
    return (rows[-1][0] if rows else None), len(rows)


def reseal_segments(connection: sqlite3.Connection, keys: CollectionKeys, after: int) -> Done:
    """One part of the index at a time: it may be large."""
    for row in list_segments(connection):
        if row.collection == keys.collection and row.epoch != keys.epoch:
            reseal_segment(connection, keys, row)
            return after, 1
    return None, 0


STEPS: tuple[Step, ...] = (
    reseal_segments,
    reseal_heads,
    reseal_bodies,
)
"""What a collection's rows are, in the order they are done."""


def rows_of(connection: sqlite3.Connection, collection: str) -> int:
    """About how many steps a change of the collection's key takes, for a progress line."""
    tables = ("memories", "memory_bodies", "vault_segments")
    counts = (
        connection.execute(f"select count(*) from {table} where collection = ?", (collection,))
        for table in tables
    )
    return 1 + sum(int(count.fetchone()[0]) for count in counts)


def new_account(
    connection: sqlite3.Connection,
    keys: CollectionKeys,
    upcoming: CollectionKeys,
    tags: bytes,
    revision: int,
) -> None:
    """Close the account of the collection and open one in the upcoming epoch.

    ``tags`` are the row tags of what lives in its index, side by side: they stay as they are.
    ``revision`` is that of the settings, whatever those who shared the collection have written.
    Raises TamperedError unless they are those that the account knows, and as many rows are there.
    """
    account = read_manifest(connection, keys)
    count = len(tags) // TAG_BYTES
    known = (count, keys.elements_of(account.epoch).total(tags)) == (account.count, account.total)
    if not known or count_rows(connection, keys.collection) != count:
        raise TamperedError(
            f"collection {keys.collection}: its account knows {account.count} memories, others "
            "are there; memory-store verify shows which"
        )
    total = upcoming.elements_of(upcoming.epoch).total(tags)
    fresh = replace(account, counter=account.counter + 1, total=total, revision=revision)
    write_manifest(connection, upcoming, fresh)


def _left(
    connection: sqlite3.Connection,
    keys: CollectionKeys,
    table: str,
    columns: str,
    sealed: str,
    after: int,
) -> list[tuple[Any, ...]]:
    """Some rows of the collection behind ``after`` that are sealed in an earlier epoch."""
    return connection.execute(
        f"""
        select rowid, {columns} from {table}
        where rowid > ? and collection = ? and {EPOCH_IN_HEADER.format(sealed)} != ?
        order by rowid limit ?
        """,
        (after, keys.collection, _epoch(keys), BATCH),
    ).fetchall()


def _epoch(keys: CollectionKeys) -> bytes:
    return keys.epoch.to_bytes(4, "big")
