"""The lexicon: the words of a segment's documents as spelled, and which document holds which.

Boundary: words in plain, which nothing else of an index says; in arrays that a wipe overwrites.

The other columns of an index know stems by keyed hashes. This kind of extra part (see
:mod:`memory_store.index.extras`) knows the spellings, so that a query word that nothing holds can
be corrected and one that is being typed can be finished. It knows the documents of each word, too:
a word goes when the last document that holds it does, and counts are those of the living.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, msgpack

from memory_store.index.columns import Array, ColumnReader, pack_planes, row_dtype
from memory_store.index.extras import Extra, Source

if TYPE_CHECKING:
    from memory_store.index.layout import Segment

Words = npt.NDArray[np.bytes_]

MOST_BYTES = 255  # of a word
_BREAK = b"\n"
_BITS = np.full(256, 1 << 26, np.uint32)  # of each byte
_BITS[0] = 0  # what fills up a shorter word
_BITS[ord("a") : ord("z") + 1] = 1 << np.arange(26, dtype=np.uint32)
_BEYOND = np.uint32(1 << 27)
_BITS[128:] = _BEYOND


class Spelled(Struct, array_like=True):
    """A document's record: its distinct words."""

    words: list[str] = []


_decoder = msgpack.Decoder(Spelled)


@dataclass(frozen=True, eq=False)
class Lexicon(Extra):
    """Words in UTF-8, ascending by their bytes; the documents of word ``i`` are
    ``docs[offsets[i]:offsets[i + 1]]``. ``written`` are the documents that have a record."""

    words: Words
    offsets: npt.NDArray[np.int64]
    docs: Array
    written: npt.NDArray[np.bool_]

    @property
    def there(self) -> npt.NDArray[np.bool_]:
        return self.written

    def span(self, prefix: bytes) -> tuple[int, int]:
        """The first word that begins so, and one past the last."""
        start = int(np.searchsorted(self.words, prefix))
        return start, int(np.searchsorted(self.words, prefix + b"\xff"))

    def place(self, word: bytes) -> int | None:
        """Where a word stands; ``None`` where no document holds it."""
        at = int(np.searchsorted(self.words, word))
        return at if at < len(self.words) and self.words[at] == word else None

    def may_be_near(self, word: bytes, edits: int) -> npt.NDArray[np.intp]:
        """Where the words stand that may be so few edits from one. An edit adds a letter, takes one
        away, or both: words of more other letters are further, and a few in a thousand remain."""
        others = self._letters ^ _letters_of(np.array([word]))
        return np.flatnonzero(np.bitwise_count(others) <= 2 * edits)

    def may_differ_by_accents(self, bare: bytes) -> npt.NDArray[np.intp]:
        """Where the words stand that may be one of a to z but for their accents: those that hold a
        letter beyond these, and no other one of these."""
        allowed = _letters_of(np.array([bare])) | _BEYOND
        accented = (self._letters & _BEYOND) != 0
        return np.flatnonzero(accented & ((self._letters & ~allowed) == 0))

    @cached_property
    def _letters(self) -> npt.NDArray[np.uint32]:
        return _letters_of(self.words)

    def counts(self, start: int, end: int, alive: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """int64 [end - start]: how many living documents hold each word of a span."""
        first = self.offsets[start]
        living = alive[self.docs[first : self.offsets[end]]]
        summed = np.append(0, np.cumsum(living, dtype=np.int64))
        counts: npt.NDArray[np.int64] = np.diff(summed[self.offsets[start : end + 1] - first])
        return counts


class LexiconKind:
    """How words lie in a segment: once each, with the documents that hold them."""

    name = "lexicon"

    def collect(self, records: Sequence[bytes], segment: Segment) -> Lexicon:
        each = [_decoder.decode(one).words if one else [] for one in records]
        numbers: dict[str, int] = {}
        keys = [numbers.setdefault(word, len(numbers)) for word in chain.from_iterable(each)]
        docs = np.repeat(np.arange(len(each)), [len(words) for words in each])
        words = _array([word.encode() for word in numbers])
        written = np.fromiter((bool(one) for one in records), np.bool_, len(records))
        return _assembled(words, np.array(keys, np.int64), docs, written)

    def merge(self, sources: Sequence[Source], merged: Segment) -> Lexicon:
        words, keys, docs, written = [_array([])], [], [], []
        known, first = 0, 0
        for source in sources:
            rows, extra = source.rows, source.extra
            if extra is None:
                written.append(np.zeros(len(rows), np.bool_))
            else:
                moved = np.full(source.segment.count, -1, np.int64)
                moved[rows] = np.arange(first, first + len(rows))
                owners = np.repeat(np.arange(len(extra.words)), np.diff(extra.offsets))
                places = moved[extra.docs]
                keys.append(owners[places >= 0] + known)
                docs.append(places[places >= 0])
                words.append(extra.words)
                written.append(extra.written[rows])
                known += len(extra.words)
            first += len(rows)
        joined = np.concatenate(words)
        none = np.empty(0, np.int64)
        result = _assembled(
            joined,
            np.concatenate([none, *keys]),
            np.concatenate([none, *docs]),
            np.concatenate(written),
        )
        joined.fill(b"")
        return result

    def encode(self, extra: Any) -> list[bytes | bytearray]:
        text = np.frombuffer(bytearray(_BREAK.join(extra.words.tolist())), np.uint8)
        columns: list[bytes | bytearray] = [
            pack_planes(text),
            pack_planes(np.diff(extra.offsets).astype("<u4")),
            pack_planes(extra.docs, delta=True),
            pack_planes(extra.written.view(np.uint8)),
        ]
        text.fill(0)
        return columns

    def decode(self, reader: ColumnReader, segment: Segment) -> Lexicon:
        text = reader.take(["u1"])
        words = _array(text.tobytes().split(_BREAK) if len(text) else [])
        text.fill(0)
        counts = reader.take(["<u4"], len(words))
        offsets = np.append(0, np.cumsum(counts, dtype=np.int64))
        docs = reader.take([np.dtype(row_dtype(segment.count)).str], int(offsets[-1]))
        written = reader.take(["u1"], segment.count)
        ordered = bool((words[1:] > words[:-1]).all())
        if not ordered or (len(docs) and int(docs.max()) >= segment.count):
            raise ValueError("segment: not a lexicon of its documents")
        return Lexicon(words, offsets, docs, written.astype(np.bool_))


LEXICON = LexiconKind()


def _letters_of(words: Words) -> npt.NDArray[np.uint32]:
    """Which letters each word has: a bit for each of a to z, one for all other ASCII, and one for
    all bytes beyond, since a letter there has several."""
    letters = words.view(np.uint8).reshape(len(words), words.itemsize)
    found = np.zeros(len(words), np.uint32)
    for column in letters.T:
        found |= _BITS[column]
    return found


def _array(words: Sequence[bytes]) -> Words:
    if max(map(len, words), default=0) > MOST_BYTES:
        raise ValueError("segment: a word of a lexicon is too long")
    return np.array(words, dtype=f"S{max(map(len, words), default=1) or 1}")


def _assembled(
    words: Words, keys: npt.NDArray[np.int64], docs: Array, written: npt.NDArray[np.bool_]
) -> Lexicon:
    """From loose rows: document ``docs[i]`` holds ``words[keys[i]]``. A word may be there twice."""
    distinct, numbers = np.unique(words, return_inverse=True)
    keys = numbers[keys]
    order = np.lexsort((docs, keys))
    keys, docs = keys[order], docs[order]
    counts = np.bincount(keys, minlength=len(distinct))
    lives = counts > 0
    kept = distinct[lives]
    distinct.fill(b"")
    return Lexicon(
        kept,
        np.append(0, np.cumsum(counts[lives], dtype=np.int64)),
        docs.astype(row_dtype(len(written))),
        written,
    )
