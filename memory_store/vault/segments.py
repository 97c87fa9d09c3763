"""Sealed segments of the search index, and the change log that says which entries are dead.

Boundary: bytes in, sealed rows out, and back; what the bytes mean is the index's affair. A segment
is written once, in the transaction that writes its memories. A memory that is edited or deleted
later gets a row in ``vault_changes``: its entry is dead in every segment whose ``sequence`` is
smaller than that row's. Segments without their rows, or rows without their segments, disagree
with the collection's manifest.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memory_store.crypto.sealing import Place
from memory_store.sqlite import sqlite3
from memory_store.vault.keyring import CollectionKeys

UPDATED, DELETED, REINDEXED = "updated", "deleted", "reindexed"
PARTS = ("main", "vectors", "pairs")


class SegmentRow(Struct, frozen=True):
    """One row of ``vault_segments`` without its blobs; ``model`` is the vectors' fingerprint."""

    id: str
    collection: str
    epoch: int
    documents: int
    sequence: int
    model: str


class Change(Struct, frozen=True):
    """One row of ``vault_changes``."""

    sequence: int
    collection: str
    memory: str
    operation: str


def last_sequence(connection: sqlite3.Connection) -> int:
    """The newest change's number; 0 before the first. Numbers never come back."""
    (newest,) = connection.execute(
        "select coalesce(max(sequence), 0) from vault_changes"
    ).fetchone()
    return int(newest)


def log_changes(
    connection: sqlite3.Connection, collection: str, memories: Iterable[str], operation: str
) -> None:
    """Say that these memories' entries in earlier segments are dead."""
    connection.executemany(
        "insert into vault_changes (collection, memory, operation) values (?, ?, ?)",
        [(collection, memory, operation) for memory in memories],
    )


def changes_since(connection: sqlite3.Connection, sequence: int) -> list[Change]:
    """The changes after ``sequence``, oldest first."""
    return [
        Change(*row)
        for row in connection.execute(
            """
            select sequence, collection, memory, operation from vault_changes
            where sequence > ? order by sequence
            """,
            (sequence,),
        )
    ]


def trim_changes(connection: sqlite3.Connection) -> None:
    """Forget the changes that every segment was written after; the newest stays, for its number."""
    connection.execute(
        """
        delete from vault_changes
        where sequence < (select max(sequence) from vault_changes)
          and sequence <= (select coalesce(min(sequence), 0) from vault_segments)
        """
    )


def list_segments(connection: sqlite3.Connection) -> list[SegmentRow]:
    """Every segment, oldest first (by sequence, then by insertion)."""
    return [
        SegmentRow(*row)
        for row in connection.execute(
            """
            select id, collection, epoch, documents, sequence, model
            from vault_segments order by sequence, rowid
            """
        )
    ]


def write_segment(
    connection: sqlite3.Connection,
    keys: CollectionKeys,
    *,
    documents: int,
    model: str,
    main: bytes | bytearray,
    vectors: bytes | bytearray,
    pairs: bytes | bytearray,
) -> str:
    """Seal and store one segment at the present sequence. Returns its id."""
    sequence = last_sequence(connection)
    row = SegmentRow(str(uuid.uuid4()), keys.collection, keys.epoch, documents, sequence, model)
    parts = dict(zip(PARTS, (main, vectors, pairs), strict=True))
    sealed = {
        part: keys.seal("segment", _place(keys, row, part), content)
        for part, content in parts.items()
    }
    connection.execute(
        """
        insert into vault_segments
            (id, collection, epoch, documents, sequence, model, main, vectors, pairs)
        values (?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            row.id,
            row.collection,
            row.epoch,
            row.documents,
            row.sequence,
            row.model,
            sealed["main"],
            sealed["vectors"],
            sealed["pairs"],
        ),
    )
    return row.id


def read_sealed_parts(
    connection: sqlite3.Connection, segment: SegmentRow, parts: Sequence[str] = PARTS
) -> dict[str, bytes] | None:
    """Some of the parts ``main``, ``vectors`` and ``pairs``, still sealed; None where they are
    gone."""
    row = connection.execute(
        f"select {', '.join(parts)} from vault_segments where id = ?", (segment.id,)
    ).fetchone()
    return dict(zip(parts, row, strict=True)) if row is not None else None


def unseal_part(keys: CollectionKeys, segment: SegmentRow, part: str, sealed: bytes) -> memoryview:
    """Open one part of a segment."""
    return keys.unseal("segment", _place(keys, segment, part), sealed)


def same_content(segment: SegmentRow, other: SegmentRow) -> bool:
    """Whether two rows are one segment, be it sealed in two epochs."""
    return replace(segment, epoch=other.epoch) == other


def reseal_segment(connection: sqlite3.Connection, keys: CollectionKeys, row: SegmentRow) -> None:
    """Seal a segment's parts in the newest epoch (inside the caller's transaction)."""
    parts = read_sealed_parts(connection, row) or {}
    sealed = {part: _resealed(keys, row, part, blob) for part, blob in parts.items()}
    connection.execute(
        """
        update vault_segments set epoch = :epoch, main = :main, vectors = :vectors, pairs = :pairs
        where id = :id
        """,
        {**sealed, "epoch": keys.epoch, "id": row.id},
    )


def _resealed(keys: CollectionKeys, row: SegmentRow, part: str, blob: bytes) -> bytes:
    content = unseal_part(keys, row, part, blob)
    try:
        return keys.seal("segment", _place(keys, row, part), content)
    finally:
        content[:] = bytes(len(content))


def replace_main(
    connection: sqlite3.Connection, keys: CollectionKeys, row: SegmentRow, main: bytearray
) -> None:
    """Write a segment's part ``main`` anew (inside the caller's transaction)."""
    sealed = keys.seal("segment", _place(keys, row, "main"), main)
    connection.execute("update vault_segments set main = ? where id = ?", (sealed, row.id))


def delete_segments(connection: sqlite3.Connection, ids: Iterable[str]) -> None:
    connection.executemany("delete from vault_segments where id = ?", [(i,) for i in ids])


def _place(keys: CollectionKeys, row: SegmentRow, part: str) -> Place:
    """Every clear column is bound: an older segment cannot pass for one written later."""
    return keys.place("vault_segments", part, f"{row.id}|{row.model}|{row.documents}", row.sequence)
