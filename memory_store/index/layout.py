"""How a segment lies in memory: columns of numbers and keyed hashes, one row per document.

Boundary: nothing here is plain text except type and language names. Word, pair and topic hashes
are keyed; vectors are as sensitive as the text they stand for. Every array is owned by the
segment (or is a view into a buffer handed over to it) and is zeroed by :meth:`Segment.wipe`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from memory_store.index.columns import Array, Buffer
from memory_store.index.extras import Extra

T = TypeVar("T")

WORD_BITS = 64

TAGS = ("ids", "content_tags", "row_tags")
"""The columns of a segment that hold 16 bytes for each document, in the order they are encoded."""
NUMBERS = {
    "versions": "<i8",
    "type_codes": "<u2",
    "language_codes": "<u2",
    "created": "<f8",
    "updated": "<f8",
    "valid_from": "<f8",
    "valid_to": "<f8",
    "lengths": "<u4",
}
"""Those that hold one number for each, with its kind, in the same order."""


@dataclass(frozen=True, eq=False)
class Postings:
    """Which documents hold which key.

    ``keys`` uint64 [T] ascending; the documents of key ``i`` are
    ``docs[offsets[i]:offsets[i + 1]]``, ascending row numbers (uint16, or uint32 in segments of
    more than 65,536 rows); ``offsets`` int64 [T + 1].
    """

    keys: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.int64]
    docs: Array

    def slices(self, wanted: npt.NDArray[np.uint64]) -> list[tuple[int, int, int]]:
        """``(index in wanted, start, end)`` for each key of ``wanted`` that occurs here."""
        if not len(self.keys) or not len(wanted):
            return []
        places = self.keys.searchsorted(wanted)
        (found,) = (self.keys.take(places, mode="clip") == wanted).nonzero()
        offset, at = self.offsets.item, places.tolist()  # of a few, one by one is the fastest
        return [(i, offset(at[i]), offset(at[i] + 1)) for i in found.tolist()]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Which documents hold which adjacent pair of terms.

    ``hashes`` uint32 [P] ascending (the upper half of the keyed 64-bit hash: among 15 million
    pairs, the chance that one query pair meets a stranger is 0.4 %), ``docs`` their row numbers.
    """

    hashes: npt.NDArray[np.uint32]
    docs: Array

    def rows(self, pair: int) -> Array:
        """The row numbers of documents that hold the pair with the 64-bit hash ``pair``."""
        ((start, end),) = self.slices([pair])
        return self.docs[start:end]

    def slices(self, pairs: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Where in ``docs`` the rows of each of some 64-bit hashes stand."""
        wanted = np.array([pair >> 32 for pair in pairs], dtype=np.uint32)
        starts = self.hashes.searchsorted(wanted, side="left")
        ends = self.hashes.searchsorted(wanted, side="right")
        return zip(starts.tolist(), ends.tolist(), strict=True)


class Late(Generic[T]):
    """A part of a segment that is decoded when first asked for, then kept until wiped.

    Two threads that ask at the same moment may both decode; either result serves.
    ``buffer`` holds its bytes until then, if they are in memory already.
    """

    def __init__(
        self, load: Callable[[], T] | None, value: T | None = None, buffer: Buffer | None = None
    ) -> None:
        self._load = load
        self.value = value
        self.buffer = buffer

    def get(self) -> T:
        """The part, decoded. Raises ``ValueError`` when its bytes are not valid."""
        value = self.value
        if value is None:
            if self._load is None:
                raise ValueError("segment: wiped")
            value = self.value = self._load()
        return value

    def forget(self) -> None:
        """Drop the part, its bytes and the way to load it."""
        self.value = self._load = self.buffer = None


def widened(vectors: npt.NDArray[np.float16]) -> npt.NDArray[np.float32]:
    """float32 copy, seven times as fast as ``astype``, which converts one number at a time.

    Sign, exponent and fraction are moved to their places in a float32, whose exponent then is
    112 too small (127 - 15). Infinities and NaN, which no vector holds, become finite.
    """
    bits = np.ascontiguousarray(vectors).view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= np.int32(~0x7000_1FFF)  # the copies of the sign that widening made
    floats = bits.view(np.float32)
    floats *= np.float32(2.0**112)
    return floats


def unit_rows(vectors: npt.NDArray[np.float16]) -> npt.NDArray[np.float32]:
    """float32 [n, d] of length 1: what float16 rounded off is made up for. Zeros stay zero."""
    rows = widened(vectors)
    rows *= inverse_lengths(rows)[:, None]
    return rows


def inverse_lengths(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """float32 [n]: one divided by each row's length; zero for zeros."""
    lengths: npt.NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return np.divide(1.0, lengths, out=lengths, where=lengths > 0)


def packed_signs(signs: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """bool [n, d] as bits, uint64 [n, d / 64]."""
    packed = np.packbits(signs, axis=1)
    words = np.zeros((len(packed), -(-signs.shape[1] // WORD_BITS) * 8), dtype=np.uint8)
    words[:, : packed.shape[1]] = packed
    return words.view(np.uint64)


@dataclass(frozen=True, eq=False, kw_only=True)
class Segment:
    """An immutable block of ``count`` documents of one collection, column by column.

    One row per document: ``ids``, ``content_tags`` and ``row_tags`` uint8 [n, 16] (the last are
    ``None`` in segments of before format 3); ``versions`` int64;
    ``type_codes`` and ``language_codes`` uint16 into ``types`` and ``languages``; ``created``,
    ``updated``, ``valid_from``, ``valid_to`` float64 epoch seconds (unknown bounds are ∓inf);
    ``lengths`` uint32 tokens. ``title_counts`` and ``body_counts`` (uint8, 16 or 32, [P]) stand
    beside ``terms.docs``. Topic keys are the first 8 bytes of the 16-byte keyed hash.
    A document's windows are ``window_offsets[row]:window_offsets[row + 1]`` of
    ``window_starts``/``window_ends`` (uint32 character offsets) and of :attr:`vectors`.

    ``kinds`` are the extra parts that it was written with, by name, and ``partial`` those of them
    that some document has no record in. ``extras`` are those that this version knows.
    """

    count: int
    dimensions: int
    ids: npt.NDArray[np.uint8]
    versions: npt.NDArray[np.int64]
    types: tuple[str, ...]
    type_codes: npt.NDArray[np.uint16]
    languages: tuple[str, ...]
    language_codes: npt.NDArray[np.uint16]
    created: npt.NDArray[np.float64]
    updated: npt.NDArray[np.float64]
    valid_from: npt.NDArray[np.float64]
    valid_to: npt.NDArray[np.float64]
    content_tags: npt.NDArray[np.uint8]
    row_tags: npt.NDArray[np.uint8] | None
    lengths: npt.NDArray[np.uint32]
    terms: Postings
    title_counts: Array
    body_counts: Array
    topics: Postings
    window_offsets: npt.NDArray[np.int64]
    window_starts: npt.NDArray[np.uint32]
    window_ends: npt.NDArray[np.uint32]
    late_vectors: Late[npt.NDArray[np.float16]]
    late_pairs: Late[Pairs]
    kinds: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()
    extras: Mapping[str, Late[Extra]] = field(default_factory=dict)
    origin: Segment | None = None  # whose arrays these are, too: they live as long

    @property
    def vectors(self) -> npt.NDArray[np.float16]:
        """float16 [windows, dimensions], each of length 1."""
        return self.late_vectors.get()

    @property
    def pairs(self) -> Pairs:
        """The adjacent pairs of terms, for quoted phrases."""
        return self.late_pairs.get()

    @property
    def windows(self) -> int:
        """How many windows (and vectors) the segment holds."""
        return len(self.window_starts)

    @cached_property
    def window_rows(self) -> npt.NDArray[np.int32]:
        """int32 [windows]: the row each window belongs to."""
        return np.repeat(np.arange(self.count, dtype=np.int32), np.diff(self.window_offsets))

    @cached_property
    def id_words(self) -> npt.NDArray[np.uint64]:
        """uint64 [n, 2]: the ids as two big-endian numbers, which sort as their text does."""
        return self.ids.view(">u8").astype(np.uint64)

    @cached_property
    def id_order(self) -> npt.NDArray[np.intp]:
        """Rows ordered by the upper half of the id, for :meth:`rows_of`."""
        return np.argsort(self.id_words[:, 0], kind="stable")

    @cached_property
    def upper_words(self) -> npt.NDArray[np.uint64]:
        """The upper halves of the ids, ascending."""
        upper: npt.NDArray[np.uint64] = self.id_words[self.id_order, 0]
        return upper

    def rows_of(self, high: int, low: int) -> list[int]:
        """The rows whose id is ``high << 64 | low``."""
        start = self.upper_words.searchsorted(np.uint64(high), side="left")
        end = self.upper_words.searchsorted(np.uint64(high), side="right")
        rows = self.id_order[start:end].tolist()
        return [row for row in rows if self.id_words.item(row, 1) == low]

    def rows_of_all(self, wanted: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
        """The rows of some ids, uint64 [n, 2], as :attr:`id_words` has them."""
        starts = self.upper_words.searchsorted(wanted[:, 0], side="left")
        counts = self.upper_words.searchsorted(wanted[:, 0], side="right") - starts
        firsts = np.repeat(starts - np.cumsum(counts) + counts, counts)
        rows = self.id_order[firsts + np.arange(len(firsts))]
        same: npt.NDArray[np.bool_] = self.id_words[rows, 1] == np.repeat(wanted[:, 1], counts)
        return rows[same]

    @cached_property
    def floats(self) -> npt.NDArray[np.float32]:
        """The vectors as float32 of length 1, for exact search in small vaults."""
        return unit_rows(self.vectors)

    @cached_property
    def signatures(self) -> npt.NDArray[np.uint64]:
        """uint64 [dimensions / 64, windows]: one bit per coordinate, set where it is not negative.

        Stored word by word, so that a scan runs along contiguous memory.
        """
        signs = self.vectors.view(np.uint16) < np.uint16(0x8000)
        return np.ascontiguousarray(packed_signs(signs).T)

    def extra(self, kind: str) -> Extra | None:
        """An extra part; ``None`` where the segment was written without it."""
        late = self.extras.get(kind)
        return None if late is None else late.get()

    def load_late(self) -> None:
        """Decode every part now. Raises ``ValueError`` when the bytes of one are not valid."""
        self.late_vectors.get()
        self.late_pairs.get()
        for extra in self.extras.values():
            extra.get()

    def lacks(self, kind: str) -> npt.NDArray[np.bool_]:
        """bool [n]: the documents that have no record of a kind yet."""
        if kind in self.kinds and kind not in self.partial:
            return np.zeros(self.count, np.bool_)
        extra = self.extra(kind)
        return np.ones(self.count, np.bool_) if extra is None else ~extra.there

    def arrays(self) -> list[Array]:
        """Every array now in memory."""
        return arrays_in(vars(self))

    def wipe(self) -> None:
        """Overwrite every array with zeros. Searches still running then find nothing."""
        overwrite(self.arrays())
        self.late_vectors.forget()
        self.late_pairs.forget()
        for extra in self.extras.values():
            extra.forget()


def arrays_in(parts: Mapping[str, object]) -> list[Array]:
    """Every array now in memory among the ``vars`` of a segment or of a part of one.

    Searches in other threads may work out more of them at any moment.
    """
    found: list[Array] = []
    for part in list(parts.values()):
        if isinstance(part, np.ndarray):
            found.append(part)
        elif isinstance(part, Postings | Pairs | Late | Extra):
            found += arrays_in(vars(part))
        elif isinstance(part, dict):  # the extra parts
            found += arrays_in(part)
        elif isinstance(part, bytearray | memoryview):  # not decoded yet
            found.append(np.frombuffer(part, np.uint8))
    return found


def overwrite(arrays: Iterable[Array]) -> None:
    """Fill arrays with zeros, those that can be written to."""
    for array in arrays:
        if array.flags.writeable:
            array.fill(0)


def without_vectors(segment: Segment) -> Segment:
    """The same segment as if it had not been embedded; ``origin`` is the one that was."""
    nothing = np.empty((0, segment.dimensions), dtype=np.float16)
    return replace(
        segment,
        window_offsets=np.zeros(segment.count + 1, dtype=np.int64),
        window_starts=np.empty(0, dtype=np.uint32),
        window_ends=np.empty(0, dtype=np.uint32),
        late_vectors=Late(None, nothing),
        origin=segment,
    )
