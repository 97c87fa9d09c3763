"""Arrays as bytes: the column format inside a sealed segment.

Boundary: input is checked before anything is allocated for it, and nothing is ever executed
(no pickle). Bytes that are cut, garbled or hostile raise ``ValueError``. A column holds at most
``MAX_EXPANSION`` items per byte of the whole input (DEFLATE's own ceiling) and is at most
``MAX_COLUMN_BYTES`` long, so memory stays in proportion to what was read.

A column is a 16-byte header (transform, item size, delta flag, item count), then its data, each
part padded to 8 bytes so that raw columns can be used in place. *Raw* columns are the array as it
lies in memory (for hashes and vectors, which do not compress). *Planes* hold the first byte of
all items, then the second, and so on, each plane left out when zero and deflated when that helps.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from zlib_ng import zlib_ng  # twice as fast: 40 ms of unlocking 100,000 memories

Array = npt.NDArray[Any]
Buffer = bytes | bytearray | memoryview

MAX_COLUMN_BYTES = 1 << 32  # 5.6 million windows of 384 dimensions, one segment holding far fewer
MAX_EXPANSION = 1_032  # zlib.net, "Maximum Compression Factor"
DEFLATE_LEVEL = 3  # 6 saves 2 % and takes half as long again
DEFLATE_GAIN = 0.8  # a plane that shrinks less is kept plain: inflating it doubles loading time

SMALL_ROWS = 1 << 16  # up to here a row number fits 16 bits

_HEADER = struct.Struct("<BBBBIQ")
_PLANE = struct.Struct("<BxxxxxxxQ")
_ALIGNMENT = 8
_RAW, _PLANES = 0, 1
_PLANE_ZERO, _PLANE_PLAIN, _PLANE_DEFLATED = 0, 1, 2


def row_dtype(count: int) -> type[np.uint16] | type[np.uint32]:
    """The narrowest dtype for the row numbers of a segment of ``count`` documents."""
    return np.uint16 if count <= SMALL_ROWS else np.uint32


def pack_raw(array: Array) -> bytearray:
    """The column holding ``array`` (any shape, C order) as it lies in memory."""
    data = np.ascontiguousarray(array)
    header = _HEADER.pack(_RAW, data.dtype.itemsize, 0, 0, 0, data.size)
    content = data.reshape(-1).view(np.uint8).data  # its own memory: no copy that stays behind
    return bytearray().join((header, content, bytes(-len(content) % _ALIGNMENT)))


def pack_planes(array: Array, *, delta: bool = False) -> bytes:
    """The column holding a one-dimensional ``array`` as compressed byte planes.

    ``delta`` stores differences modulo the integer's width, which is right for runs of sorted
    numbers: the wrap at the start of each run undoes itself when the differences are summed.
    """
    data = np.ascontiguousarray(array)
    if delta and data.size:
        differences = data.copy()
        np.subtract(data[1:], data[:-1], out=differences[1:])
        data = differences
    size = data.dtype.itemsize
    parts = [_HEADER.pack(_PLANES, size, int(delta), 0, 0, data.size)]
    cells = data.view(np.uint8).reshape(-1, size)
    parts.extend(_pack_plane(np.ascontiguousarray(cells[:, plane])) for plane in range(size))
    return b"".join(parts)


def _pack_plane(plane: npt.NDArray[np.uint8]) -> bytes:
    if not plane.any():
        return _PLANE.pack(_PLANE_ZERO, 0)
    plain = plane.tobytes()
    deflated = zlib_ng.compress(plain, DEFLATE_LEVEL)
    if len(deflated) < DEFLATE_GAIN * len(plain):
        return _PLANE.pack(_PLANE_DEFLATED, len(deflated)) + _padded(deflated)
    return _PLANE.pack(_PLANE_PLAIN, len(plain)) + _padded(plain)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)


class ColumnReader:
    """Reads columns one after another from ``buffer``; every fault is a ``ValueError``.

    Raw columns of a writable buffer are returned as views into it, so wiping either wipes both;
    those of a read-only buffer are copied, so that the index always owns memory it can wipe.
    """

    def __init__(self, buffer: Buffer, start: int = 0) -> None:
        self._view = memoryview(buffer).cast("B")
        self._position = start

    def take(self, dtypes: Sequence[str], count: int | None = None) -> Array:
        """The next column, one-dimensional. Its item size must be that of one of ``dtypes``.

        ``count``, where given, is the number of items it must hold.
        """
        transform, size, delta, zero, zeros, items = _HEADER.unpack(self._bytes(_HEADER.size))
        dtype = next((np.dtype(d) for d in dtypes if np.dtype(d).itemsize == size), None)
        if dtype is None or zero or zeros or delta > 1 or transform > _PLANES:
            raise ValueError("segment: a column header is not valid")
        if count is not None and items != count:
            raise ValueError(f"segment: a column holds {items} items instead of {count}")
        if items * size > MAX_COLUMN_BYTES or items > MAX_EXPANSION * len(self._view):
            raise ValueError("segment: a column is too large")
        if transform == _RAW:
            return self._raw(dtype, items)
        cells = self._planes(size, items)
        values = cells.reshape(-1).view(dtype)
        return np.cumsum(values, dtype=dtype, out=values) if delta else values

    def finish(self) -> None:
        """Raise unless the whole buffer was read."""
        if self._position != len(self._view):
            raise ValueError("segment: bytes are left over")

    def _raw(self, dtype: np.dtype[Any], items: int) -> Array:
        data = self._data(items * dtype.itemsize)
        values = np.frombuffer(data, dtype=dtype)
        return values.copy() if data.readonly else values

    def _planes(self, size: int, items: int) -> npt.NDArray[np.uint8]:
        planes = [self._plane(items) for _ in range(size)]
        if size == 1 and planes[0] is not None:
            return planes[0].copy().reshape(-1, 1)
        cells = np.zeros((items, size), dtype=np.uint8)
        for index, plane in enumerate(planes):
            if plane is not None:
                cells[:, index] = plane
        return cells

    def _plane(self, items: int) -> npt.NDArray[np.uint8] | None:
        kind, stored = _PLANE.unpack(self._bytes(_PLANE.size))
        if kind == _PLANE_ZERO and stored == 0:
            return None
        if kind == _PLANE_PLAIN and stored == items:
            return np.frombuffer(self._data(stored), dtype=np.uint8)
        if kind != _PLANE_DEFLATED or items > stored * MAX_EXPANSION:
            raise ValueError("segment: a column's bytes do not match its length")
        return np.frombuffer(_inflate(self._data(stored), items), dtype=np.uint8)

    def _data(self, length: int) -> memoryview:
        data = self._bytes(length)
        self._bytes(-length % _ALIGNMENT)
        return data

    def _bytes(self, length: int) -> memoryview:
        end = self._position + length
        if end > len(self._view):
            raise ValueError("segment: cut short")
        data = self._view[self._position : end]
        self._position = end
        return data


def _inflate(data: memoryview, length: int) -> bytes:
    stream = zlib_ng.decompressobj()
    try:
        plain = stream.decompress(data, length + 1)
    except zlib_ng.error as error:  # type: ignore[misc]  # its stub says an instance
        raise ValueError("segment: a column is garbled") from error
    if len(plain) != length or not stream.eof or stream.unused_data:
        raise ValueError("segment: a column's bytes do not match its length")
    return plain
