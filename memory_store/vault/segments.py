"""Sealed segments of the search index, and the change log that says which entries are dead.

Boundary: bytes in, sealed rows out, and back; what the bytes mean is the index's affair. A segment
is written once, in the transaction that writes its memories. A memory that is edited or deleted
later gets a row in ``vault_changes``: its entry is dead in every segment whose ``sequence`` is
smaller than that row's. Segments without their rows, or rows without their segments, disagree
with the collection's manifest.
"""

from __future__ import annotations

import uuid

from msgspec.structs import replace

from memory_store.crypto.sealing import Place
from memory_store.vault.keyring import CollectionKeys
from memory_store.vault.storage import Storage
from memory_store.vault.storage.segments import PARTS, SegmentRow

UPDATED, DELETED, REINDEXED = "updated", "deleted", "reindexed"


def write_segment(
    storage: Storage,
    keys: CollectionKeys,
    *,
    documents: int,
    model: str,
    main: bytes | bytearray,
    vectors: bytes | bytearray,
    pairs: bytes | bytearray,
) -> str:
    """Seal and store one segment at the present sequence. Returns its id."""
    sequence = storage.segments.newest_change()
    row = SegmentRow(str(uuid.uuid4()), keys.collection, keys.epoch, documents, sequence, model)
    parts = dict(zip(PARTS, (main, vectors, pairs), strict=True))
    sealed = {
        part: keys.seal("segment", _place(keys, row, part), content)
        for part, content in parts.items()
    }
    storage.segments.insert(row, sealed)
    return row.id


def unseal_part(keys: CollectionKeys, segment: SegmentRow, part: str, sealed: bytes) -> memoryview:
    """Open one part of a segment."""
    return keys.unseal("segment", _place(keys, segment, part), sealed)


def same_content(segment: SegmentRow, other: SegmentRow) -> bool:
    """Whether two rows are one segment, be it sealed in two epochs."""
    return replace(segment, epoch=other.epoch) == other


def reseal_segment(storage: Storage, keys: CollectionKeys, row: SegmentRow) -> None:
    """Seal a segment's parts in the newest epoch (inside the caller's transaction)."""
    for parts in dict(storage.segments.parts([row.id])).values():
        sealed = {part: _resealed(keys, row, part, blob) for part, blob in parts.items()}
        storage.segments.replace(row.id, keys.epoch, sealed)


def _resealed(keys: CollectionKeys, row: SegmentRow, part: str, blob: bytes) -> bytes:
    content = unseal_part(keys, row, part, blob)
    try:
        return keys.seal("segment", _place(keys, row, part), content)
    finally:
        content[:] = bytes(len(content))


def replace_main(storage: Storage, keys: CollectionKeys, row: SegmentRow, main: bytearray) -> None:
    """Write a segment's part ``main`` anew (inside the caller's transaction)."""
    sealed = keys.seal("segment", _place(keys, row, "main"), main)
    storage.segments.replace(row.id, row.epoch, {"main": sealed})


def _place(keys: CollectionKeys, row: SegmentRow, part: str) -> Place:
    """Every clear column is bound: an older segment cannot pass for one written later."""
    return keys.place("vault_segments", part, f"{row.id}|{row.model}|{row.documents}", row.sequence)
