"""Trigrams: which of a segment's documents hold which stretch of three characters.

Boundary: keyed hashes of stretches and row numbers; no character of a text.

This kind of extra part (see :mod:`memory_store.index.extras`) says which documents a pattern may
match, so that no other is opened. Rows stay as they are stored, a byte for most of them, until a
stretch is asked for: unpacked they would take twice the memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, msgpack

from memory_store.index.columns import ColumnReader, pack_planes
from memory_store.index.extras import Extra, Source

if TYPE_CHECKING:
    from memory_store.index.layout import Segment

Hashes = npt.NDArray[np.uint32]
Rows = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

AT_ONCE = 1 << 22  # bytes of rows merged at a time: unpacked they take twenty times as much
MOST_ASKED = 64  # of one literal: so many in a row leave few documents
_MORE, _LOW = 0x80, 0x7F  # a number in bytes of 7 bits, low ones first: the last is below 128
_MOST_BYTES = 5  # for 32 bits
_ROW_BITS, _ROW = np.uint64(32), np.uint64(2**32 - 1)


class Grams(Struct, frozen=True, array_like=True):
    """A document's record: the distinct keyed hashes of its stretches, uint32, little-endian."""

    hashes: bytes = b""


_decoder = msgpack.Decoder(Grams)


def record_of(encoded: bytes) -> Hashes:
    """The keyed hashes of one document's record."""
    return np.frombuffer(_decoder.decode(encoded).hashes, "<u4").astype(np.uint32)


@dataclass(frozen=True, eq=False)
class Trigrams(Extra):
    """Keyed hashes, ascending. The rows of hash ``i`` are ``packed[offsets[i]:offsets[i + 1]]``:
    the first, then each one's distance from the one before. ``written`` are the documents that
    have a record: of the others nothing is known."""

    keys: Hashes
    offsets: npt.NDArray[np.int64]
    packed: Bytes
    written: npt.NDArray[np.bool_]

    @property
    def there(self) -> npt.NDArray[np.bool_]:
        return self.written

    def holding(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """bool [n]: the documents that may hold all of these; not those without a record.

        Raises ValueError where rows are not of the segment.
        """
        held = np.zeros(len(self.written), np.bool_)
        places = self.keys.searchsorted(hashes)
        if not len(self.keys) or (self.keys.take(places, mode="clip") != hashes).any():
            return held
        lengths = self.offsets[places + 1] - self.offsets[places]
        rows = None
        for place in places[np.argsort(lengths)][:MOST_ASKED].tolist():
            _, found = self.pairs(place, place + 1)
            rows = found if rows is None else rows[np.isin(rows, found, assume_unique=True)]
        held[rows] = True
        return held

    def pairs(self, start: int, end: int) -> tuple[Hashes, Rows]:
        """The hashes from one place to before another, each with every row of it.

        Raises ValueError where rows are not of the segment.
        """
        offsets = self.offsets[start : end + 1]
        packed = self.packed[offsets[0] : offsets[-1]]
        gaps = _unpacked(packed)
        ends = np.cumsum(packed < _MORE, dtype=np.int64)[offsets[1:] - offsets[0] - 1]
        counts = np.diff(ends, prepend=0)
        rows = np.cumsum(gaps)
        firsts = ends - counts
        rows -= np.repeat(rows[firsts] - gaps[firsts], counts)
        if len(rows) and int(rows.max()) >= len(self.written):
            raise ValueError("segment: not trigrams of its documents")
        return np.repeat(self.keys[start:end], counts), rows

    def of(self, wanted: npt.NDArray[np.bool_]) -> tuple[Hashes, Rows]:
        """The hashes that some documents (bool [n]) have, each with every row of them."""
        starts = self.offsets.searchsorted(np.arange(0, len(self.packed), AT_ONCE))
        hashes, rows = [np.empty(0, np.uint32)], [np.empty(0, np.int64)]
        for start, end in pairwise([*starts.tolist(), len(self.keys)]):
            held, places = self.pairs(start, end)
            hashes.append(held[wanted[places]])
            rows.append(places[wanted[places]])
        return np.concatenate(hashes), np.concatenate(rows)


class TrigramsKind:
    """How keyed stretches lie in a segment: once each, with the documents that hold them."""

    name = "trigrams"

    def collect(self, records: Sequence[bytes], segment: Segment) -> Trigrams:
        each = [_decoder.decode(one).hashes if one else b"" for one in records]
        keys = np.frombuffer(b"".join(each), "<u4").astype(np.uint32)
        rows = np.repeat(np.arange(len(each)), [len(one) // 4 for one in each])
        written = np.fromiter(map(bool, records), np.bool_, len(records))
        return _joined([_piece(keys, rows)], written)

    def merge(self, sources: Sequence[Source], merged: Segment) -> Trigrams:
        written, moves, first = [], [], 0
        for source in sources:
            move = np.full(source.segment.count, -1, np.int64)
            move[source.rows] = np.arange(first, first + len(source.rows))
            moves.append(move)
            none = np.zeros(source.segment.count, np.bool_)
            written.append((none if source.extra is None else source.extra.written)[source.rows])
            first += len(source.rows)
        held = [(one.extra, move) for one, move in zip(sources, moves, strict=True) if one.extra]
        size = sum(len(extra.packed) for extra, _ in held)
        end = max((int(extra.keys[-1]) + 1 for extra, _ in held if len(extra.keys)), default=0)
        bounds = np.linspace(0, end, size // AT_ONCE + 2).astype(np.uint32)
        pieces = [_merged(held, low, high) for low, high in pairwise(bounds.tolist())]
        return _joined(pieces, np.concatenate(written))

    def encode(self, extra: Any) -> list[bytes | bytearray]:
        return [
            pack_planes(extra.keys, delta=True),
            pack_planes(np.diff(extra.offsets).astype("<u4")),
            pack_planes(extra.packed),
            pack_planes(extra.written.view(np.uint8)),
        ]

    def decode(self, reader: ColumnReader, segment: Segment) -> Trigrams:
        keys = reader.take(["<u4"])
        lengths = reader.take(["<u4"], len(keys))
        offsets = np.append(0, np.cumsum(lengths, dtype=np.int64))
        packed = reader.take(["u1"], int(offsets[-1]))
        written = reader.take(["u1"], segment.count).astype(np.bool_)
        ordered = bool((keys[1:] > keys[:-1]).all() and (lengths > 0).all())
        if not ordered or (packed[offsets[1:] - 1] >= _MORE).any():
            raise ValueError("segment: not trigrams")
        return Trigrams(keys, offsets, packed, written)


TRIGRAMS = TrigramsKind()

_Piece = tuple[Hashes, npt.NDArray[np.int64], Bytes]
"""Keys, how many bytes each one's rows take, and these."""


def _merged(sources: Sequence[tuple[Trigrams, Rows]], low: int, high: int) -> _Piece:
    """The keys from ``low`` to before ``high``, with the rows that live, where they are moved."""
    keys, rows = [np.empty(0, np.uint32)], [np.empty(0, np.int64)]
    for extra, moved in sources:
        held, places = extra.pairs(*extra.keys.searchsorted([low, high]).tolist())
        lives = moved[places] >= 0
        keys.append(held[lives])
        rows.append(moved[places[lives]])
    return _piece(np.concatenate(keys), np.concatenate(rows))


def _joined(pieces: Sequence[_Piece], written: npt.NDArray[np.bool_]) -> Trigrams:
    keys, lengths, packed = map(np.concatenate, zip(*pieces, strict=True))
    return Trigrams(keys, np.append(0, np.cumsum(lengths, dtype=np.int64)), packed, written)


def _piece(keys: Hashes, rows: Rows) -> _Piece:
    """From loose pairs: document ``rows[i]`` holds ``keys[i]``, each pair being there once."""
    both = np.sort((keys.astype(np.uint64) << _ROW_BITS) | rows.astype(np.uint64))
    keys, rows = (both >> _ROW_BITS).astype(np.uint32), (both & _ROW).astype(np.int64)
    firsts = np.flatnonzero(np.diff(keys, prepend=keys[:1] + 1)) if len(keys) else rows
    gaps = np.diff(rows, prepend=0)
    gaps[firsts] = rows[firsts]
    packed, ends = _packed(gaps)
    return keys[firsts], np.diff(np.append(np.append(0, ends)[firsts], len(packed))), packed


def _packed(numbers: Rows) -> tuple[Bytes, npt.NDArray[np.int64]]:
    """Numbers below 2 ** 32 in bytes of 7 bits, and where each one ends."""
    longest = max(1, -(-int(numbers.max(initial=0)).bit_length() // 7))
    lengths = np.ones(len(numbers), np.int64)
    for place in range(1, longest):
        lengths += numbers >= 1 << (7 * place)
    ends = np.cumsum(lengths)
    packed = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    packed[ends - lengths] = (numbers & _LOW) | np.where(lengths > 1, _MORE, 0)
    for place in range(1, longest):
        there = np.flatnonzero(lengths > place)
        digit = (numbers[there] >> (7 * place)) & _LOW
        digit[lengths[there] > place + 1] |= _MORE
        packed[ends[there] - lengths[there] + place] = digit
    return packed, ends


def _unpacked(packed: Bytes) -> Rows:
    """The numbers in bytes of 7 bits. Raises ValueError for one that is too long."""
    last = packed < _MORE
    if last.all():
        return packed.astype(np.int64)
    ends = np.flatnonzero(last)
    starts = np.append(0, ends[:-1] + 1)
    lengths = ends - starts + 1
    if int(lengths.max(initial=0)) > _MOST_BYTES:
        raise ValueError("segment: not trigrams")
    numbers = np.zeros(len(ends), np.int64)
    for place in range(int(lengths.max(initial=0))):
        there = lengths > place
        digit = (packed[starts[there] + place] & _LOW).astype(np.int64)
        numbers[there] |= digit << (7 * place)
    return numbers
