"""Segments as they lie sealed in the vault: opened, decoded, with the mask of what lives in them.

Boundary: keys in, keyed hashes and vectors out, which the caller overwrites afterwards.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from memory_store.errors import TamperedError
from memory_store.index.codec import Part, decode, encode
from memory_store.index.layout import Segment
from memory_store.sqlite import sqlite3
from memory_store.vault.keyring import CollectionKeys
from memory_store.vault.segments import (
    SegmentRow,
    changes_since,
    list_segments,
    read_sealed_parts,
    unseal_part,
    write_segment,
)


def load_segment(
    connection: sqlite3.Connection,
    keys: CollectionKeys,
    row: SegmentRow,
    sealed_pairs: Callable[[], bytes] | None = None,
) -> Segment:
    """Open and decode one segment; its pairs stay sealed until a phrase is asked for.

    ``sealed_pairs`` reads them then (default: they are read at once). Raises TamperedError when
    its bytes are not a segment.
    """
    parts = ["main", "vectors"] if sealed_pairs else ["main", "vectors", "pairs"]
    sealed = read_sealed_parts(connection, row, parts)
    if sealed is None:
        raise TamperedError(f"vault_segments of {row.id}: is gone")
    main = unseal_part(keys, row, "main", sealed["main"])
    vectors = unseal_part(keys, row, "vectors", sealed["vectors"])
    pairs = sealed.get("pairs", b"")  # not the whole of `sealed`, whose other parts are free to go

    def open_pairs() -> memoryview:
        return unseal_part(keys, row, "pairs", sealed_pairs() if sealed_pairs else pairs)

    return _decoded(row, main, vectors, open_pairs)


def load_main(connection: sqlite3.Connection, keys: CollectionKeys, row: SegmentRow) -> Segment:
    """One segment whose vectors and pairs are read when they are first asked for.

    For a caller that reads within one transaction.
    """

    def opened(part: str) -> memoryview:
        sealed = read_sealed_parts(connection, row, [part])
        if sealed is None:
            raise TamperedError(f"vault_segments of {row.id}: is gone")
        return unseal_part(keys, row, part, sealed[part])

    return _decoded(row, opened("main"), partial(opened, "vectors"), partial(opened, "pairs"))


def _decoded(row: SegmentRow, main: memoryview, vectors: Part, pairs: Part) -> Segment:
    try:
        segment = decode(main, vectors, pairs)
    except ValueError as error:
        raise TamperedError(f"vault_segments of {row.id}: {error}") from None
    if segment.count != row.documents:
        raise TamperedError(f"vault_segments of {row.id}: holds {segment.count} documents")
    return segment


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


def living_tags(segment: Segment, alive: npt.NDArray[np.bool_]) -> bytes:
    """The row tags of what lives in a segment, side by side. Raises TamperedError where it is one
    of before there were any."""
    if segment.row_tags is None:
        raise TamperedError("vault_segments: one of an earlier format was put back")
    if alive.all():  # as most are: a tenth of the time
        return segment.row_tags.tobytes()
    return segment.row_tags[alive].tobytes()


def collection_tags(connection: sqlite3.Connection, keys: CollectionKeys) -> bytes:
    """The row tags of a collection's living entries, side by side."""
    tags = b""
    for row in list_segments(connection):
        if row.collection == keys.collection:
            segment = load_main(connection, keys, row)
            tags += living_tags(segment, alive_rows(connection, row, segment))
            segment.wipe()
    return tags


def alive_rows(
    connection: sqlite3.Connection, row: SegmentRow, segment: Segment
) -> npt.NDArray[np.bool_]:
    """bool [n]: the entries of a segment that no later change replaced or removed."""
    alive = np.ones(segment.count, dtype=np.bool_)
    for change in changes_since(connection, row.sequence):
        if change.collection == row.collection:
            for dead in segment.rows_of(*id_words(change.memory)):
                alive[dead] = False
    return alive


def id_words(memory: str) -> tuple[int, int]:
    """The upper and lower 64 bits of a memory's id."""
    try:
        number = uuid.UUID(memory).int
    except (TypeError, ValueError, AttributeError):  # a damaged file may hold anything
        raise TamperedError("vault_changes: names what is no memory's id") from None
    return number >> 64, number & (2**64 - 1)
