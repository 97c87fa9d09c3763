"""Sealed segments of the search index, and the change log that says which entries are dead.

Boundary: bytes in, sealed rows out, and back; what the bytes mean is the index's affair. A segment
is written once, in the transaction that writes its memories. A memory that is edited or deleted
later gets a row in ``vault_changes``: its entry is dead in every segment whose ``sequence`` is
smaller than that row's. Segments without their rows, or rows without their segments, disagree
with the collection's manifest. Extra parts lie in rows of their own, bound to the segment that they
were written with, whose part ``main`` names them: one that is gone or another's is noticed.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from msgspec.structs import replace

from memory_store.crypto.sealing import Place
from memory_store.errors import TamperedError
from memory_store.vault.keyring import CollectionKeys
from memory_store.vault.storage import Storage
from memory_store.vault.storage.segments import EXTRA_TABLE, PARTS, SegmentRow

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
    extras: Mapping[str, bytes | bytearray],
) -> str:
    """Seal and store one segment at the present sequence. Returns its id."""
    sequence = storage.segments.newest_change()
    row = SegmentRow(str(uuid.uuid4()), keys.collection, keys.epoch, documents, sequence, model)
    parts = dict(zip(PARTS, (main, vectors, pairs), strict=True))
    sealed = {
        part: keys.seal("segment", _place(keys, row, part), content)
        for part, content in parts.items()
    }
    apart = {
        kind: keys.seal("segment", _extra_place(keys, row, kind), content)
        for kind, content in extras.items()
    }
    storage.segments.insert(row, sealed, apart)
    return row.id


def unseal_part(
    keys: CollectionKeys, segment: SegmentRow, part: str, sealed: bytes, earliest: int = 0
) -> memoryview:
    """Open one part of a segment, if it is sealed in no epoch before the ``earliest``."""
    return keys.unseal("segment", _place(keys, segment, part), sealed, earliest=earliest)


def unseal_extra(
    keys: CollectionKeys, segment: SegmentRow, kind: str, sealed: bytes | None, earliest: int = 0
) -> memoryview:
    """Open an extra part of a segment that names it. Raises TamperedError where there is none."""
    place = _extra_place(keys, segment, kind)
    if sealed is None:
        raise TamperedError(f"{place}: is gone")
    return keys.unseal("segment", place, sealed, earliest=earliest)


def same_content(segment: SegmentRow, other: SegmentRow) -> bool:
    """Whether two rows are one segment, be it sealed in two epochs."""
    return replace(segment, epoch=other.epoch) == other


def reseal_segment(storage: Storage, keys: CollectionKeys, row: SegmentRow) -> None:
    """Seal a segment's parts in the newest epoch (inside the caller's transaction)."""
    for parts in dict(storage.segments.parts([row.id])).values():
        sealed = {
            part: _resealed(keys, _place(keys, row, part), blob) for part, blob in parts.items()
        }
        storage.segments.replace(row.id, keys.epoch, sealed)
    extras = storage.segments.extras(row.id)
    places = {kind: _extra_place(keys, row, kind) for kind in extras}
    sealed = {kind: _resealed(keys, places[kind], blob) for kind, blob in extras.items()}
    if extras:
        storage.segments.replace_extras(row.id, sealed)


def _resealed(keys: CollectionKeys, place: Place, blob: bytes) -> bytes:
    content = keys.unseal("segment", place, blob, earliest=keys.earliest)
    try:
        return keys.seal("segment", place, content)
    finally:
        content[:] = bytes(len(content))


def replace_main(storage: Storage, keys: CollectionKeys, row: SegmentRow, main: bytearray) -> None:
    """Write a segment's part ``main`` anew (inside the caller's transaction)."""
    sealed = keys.seal("segment", _place(keys, row, "main"), main)
    storage.segments.replace(row.id, row.epoch, {"main": sealed})


def _place(keys: CollectionKeys, row: SegmentRow, part: str) -> Place:
    """Every clear column is bound: an older segment cannot pass for one written later."""
    return keys.place("vault_segments", part, f"{row.id}|{row.model}|{row.documents}", row.sequence)


def _extra_place(keys: CollectionKeys, row: SegmentRow, kind: str) -> Place:
    """As :func:`_place`, with the kind: no part of another segment or kind can stand there."""
    bound = f"{row.id}|{kind}|{row.model}|{row.documents}"
    return keys.place(EXTRA_TABLE, "sealed", bound, row.sequence)
