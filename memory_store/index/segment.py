"""Segments: built from index entries, and merged into one without the rows that died.

Boundary: an :class:`IndexEntry` holds keyed hashes, numbers and vectors; words are in its extra
records alone. The bytes of an encoded segment are as sensitive as the text: they are sealed before
they reach a disk.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.index.codec import SegmentParts, decode, encode
from memory_store.index.columns import Array
from memory_store.index.extras import Extra, Source
from memory_store.index.kinds import KINDS
from memory_store.index.layout import NUMBERS, TAGS, Late, Postings, Segment
from memory_store.index.postings import collect, collect_pairs

__all__ = [
    "IndexEntry",
    "Segment",
    "SegmentParts",
    "TermCounts",
    "build",
    "decode",
    "encode",
    "merge",
]

KEY_BYTES = 16  # ids, tags and topic hashes
TIMES = ("created", "updated", "valid_from", "valid_to")


Hashes = npt.NDArray[np.uint64]


class TermCounts(NamedTuple):
    """Keyed hashes of terms, each with how often the term is there. One may stand there twice."""

    hashes: Hashes
    counts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, hashes: Hashes) -> TermCounts:
        """Each of the hashes with how often it is among them."""
        return cls(*np.unique(hashes, return_counts=True))

    def there(self) -> TermCounts:
        """The same without those that are not there at all."""
        kept = self.counts > 0
        return TermCounts(self.hashes[kept], self.counts[kept])

    def and_once(self, hashes: Hashes) -> TermCounts:
        """The same with more hashes, each of them once."""
        once = np.ones(len(hashes), np.int64)
        return TermCounts(
            np.concatenate((self.hashes, hashes)), np.concatenate((self.counts, once))
        )


class IndexEntry(Struct, frozen=True):
    """What the index knows of one memory.

    ``memory_id`` is a UUID's text; ``content_tag`` and each of ``topics`` are 16-byte keyed
    hashes; ``length`` is the number of tokens in title and body; ``pairs`` are the distinct
    hashes of adjacent terms; ``windows`` are ``(start, end)`` character offsets, one per row of
    ``vectors`` (float [w, d], length 1).
    A memory that is not embedded has vectors of shape ``(0, d)``; its windows are then ignored.
    ``row_tag`` is that of the row, 16 bytes, known when it is written. ``extras`` are its records
    by kind (see :mod:`memory_store.index.extras`): the one thing in here that says words.
    """

    memory_id: str
    version: int
    collection: str
    type: str
    language: str
    created: float
    updated: float
    content_tag: bytes
    topics: tuple[bytes, ...]
    title_terms: TermCounts
    body_terms: TermCounts
    length: int
    pairs: Hashes
    windows: Sequence[tuple[int, int]]
    vectors: npt.NDArray[Any]
    valid_from: float = -math.inf
    valid_to: float = math.inf
    row_tag: bytes = bytes(KEY_BYTES)
    extras: Mapping[str, bytes] = {}


def build(entries: Sequence[IndexEntry], dimensions: int) -> Segment:
    """A segment of ``entries``, in their order. They must be of one collection.

    ``dimensions`` is that of the vectors (0 when nothing is embedded). Raises ``ValueError``
    when an id is not a UUID, a tag is not 16 bytes, or vectors do not have ``dimensions``
    columns and one row per window.
    """
    if len({entry.collection for entry in entries}) > 1:
        raise ValueError("a segment holds one collection")
    fields = [terms for entry in entries for terms in (entry.body_terms, entry.title_terms)]
    counts = _concatenated((terms.counts for terms in fields), np.int64)
    if len(counts) and (counts.min() < 1 or counts.max() >= 1 << 32):
        raise ValueError("a term's count is between 1 and 2**32")
    in_title = np.repeat(np.arange(len(fields)) % 2, [len(terms.counts) for terms in fields])
    topics = _keys([topic for entry in entries for topic in entry.topics])
    pairs = _concatenated((entry.pairs for entry in entries), np.uint64)
    segment = _assembled(
        dimensions,
        {
            "ids": _keys([uuid.UUID(entry.memory_id).bytes for entry in entries]),
            "content_tags": _keys([entry.content_tag for entry in entries]),
            "row_tags": _keys([entry.row_tag for entry in entries]),
            "versions": [entry.version for entry in entries],
            "lengths": [entry.length for entry in entries],
            **{name: [getattr(entry, name) for entry in entries] for name in TIMES},
        },
        [entry.type for entry in entries],
        [entry.language for entry in entries],
        terms=(
            _concatenated((terms.hashes for terms in fields), np.uint64),
            _owners(len(one.body_terms.hashes) + len(one.title_terms.hashes) for one in entries),
            counts * in_title,
            counts * (1 - in_title),
        ),
        topics=(
            topics.view(">u8")[:, 0].astype(np.uint64),
            _owners(len(entry.topics) for entry in entries),
        ),
        pairs=(
            (pairs >> np.uint64(32)).astype(np.uint32),
            _owners(len(entry.pairs) for entry in entries),
        ),
        windows=_windows(entries, dimensions),
    )
    return _with_extras(
        segment,
        {
            name: kind.collect([entry.extras.get(name, b"") for entry in entries], segment)
            for name, kind in KINDS.items()
            if any(name in entry.extras for entry in entries)
        },
    )


def merge(segments: Sequence[tuple[Segment, npt.NDArray[np.bool_]]]) -> Segment:
    """One segment of the rows that each ``alive`` mask marks, in order.

    The arrays are new: the sources may be wiped afterwards. Raises ``ValueError`` when there is
    nothing to merge, or when the vectors have different dimensions.
    """
    if not segments:
        raise ValueError("there is no segment to merge")
    parts: list[_Part] = []
    for segment, alive in segments:
        parts.append(_Part(segment, alive, sum(len(part.rows) for part in parts)))
    embedded = [part for part in parts if len(part.windows)] or parts[:1]
    dimensions = {part.segment.dimensions for part in embedded}
    if len(dimensions) > 1:
        raise ValueError("segments of different dimensions cannot be merged")
    merged = _assembled(
        dimensions.pop(),
        {
            name: np.concatenate([getattr(part.segment, name)[part.rows] for part in parts])
            for name in (*TAGS, *NUMBERS)
        },
        [name for part in parts for name in part.names("types", "type_codes")],
        [name for part in parts for name in part.names("languages", "language_codes")],
        terms=_joined([part.terms() for part in parts]),
        topics=_joined([part.loose(part.segment.topics)[1:] for part in parts]),
        pairs=_joined([part.pairs() for part in parts]),
        windows=(
            np.concatenate([np.diff(p.segment.window_offsets)[p.rows] for p in parts]),
            np.concatenate([part.segment.window_starts[part.windows] for part in parts]),
            np.concatenate([part.segment.window_ends[part.windows] for part in parts]),
            _vectors(embedded),
        ),
    )
    return _with_extras(
        merged,
        {
            name: kind.merge(
                [Source(p.segment, p.segment.extra(name), p.rows) for p in parts], merged
            )
            for name, kind in KINDS.items()
            if any(name in part.segment.kinds for part in parts)
        },
    )


def _with_extras(segment: Segment, extras: Mapping[str, Extra]) -> Segment:
    return replace(
        segment,
        kinds=tuple(extras),
        partial=tuple(name for name, extra in extras.items() if not extra.there.all()),
        extras={name: Late(None, extra) for name, extra in extras.items()},
    )


def _assembled(
    dimensions: int,
    columns: Mapping[str, Any],
    types: Sequence[str],
    languages: Sequence[str],
    *,
    terms: tuple[Array, Array, Array, Array],
    topics: tuple[Array, Array],
    pairs: tuple[Array, Array],
    windows: tuple[Array, Array, Array, npt.NDArray[np.float16]],
) -> Segment:
    """A segment of columns and loose rows: ``terms`` are keys, documents, and counts in title and
    body; ``topics`` and ``pairs`` keys and documents; ``windows`` how many each document has, their
    starts, ends and vectors."""
    count = len(types)
    kinds, type_codes = _coded(types)
    tongues, language_codes = _coded(languages)
    columns = {**columns, "type_codes": type_codes, "language_codes": language_codes}
    keys, docs, *counted = terms
    postings, (titles, bodies) = collect(keys, docs, count, counted)
    counts, starts, ends, vectors = windows
    numbers: dict[str, Any] = {
        name: np.asarray(columns[name], kind) for name, kind in NUMBERS.items()
    }
    return Segment(
        count=count,
        dimensions=dimensions,
        **{name: columns[name] for name in TAGS},
        **numbers,
        types=kinds,
        languages=tongues,
        terms=postings,
        title_counts=titles,
        body_counts=bodies,
        topics=collect(*topics, count)[0],
        window_offsets=np.append(0, np.cumsum(counts, dtype=np.int64)),
        window_starts=starts,
        window_ends=ends,
        late_vectors=Late(None, vectors),
        late_pairs=Late(None, collect_pairs(*pairs, count)),
    )


def _coded(names: Sequence[str]) -> tuple[tuple[str, ...], list[int]]:
    codes: dict[str, int] = {}
    return tuple(dict.fromkeys(names)), [codes.setdefault(name, len(codes)) for name in names]


def _keys(values: Sequence[bytes]) -> npt.NDArray[np.uint8]:
    if any(len(value) != KEY_BYTES for value in values):
        raise ValueError("ids, tags and topic hashes are 16 bytes")
    joined = bytearray(b"".join(values))  # a bytearray, so that the array can be wiped
    return np.frombuffer(joined, dtype=np.uint8).reshape(-1, KEY_BYTES)


def _concatenated(arrays: Iterable[Array], kind: type[np.generic]) -> Array:
    return np.concatenate([np.empty(0, kind), *arrays])


def _owners(counts: Iterable[int]) -> npt.NDArray[np.intp]:
    """The document of each of its ``counts`` rows."""
    each = list(counts)
    return np.repeat(np.arange(len(each)), each)


def _windows(
    entries: Sequence[IndexEntry], dimensions: int
) -> tuple[Array, Array, Array, npt.NDArray[np.float16]]:
    embedded = [entry for entry in entries if len(entry.vectors)]
    for entry in embedded:
        if np.shape(entry.vectors) != (len(entry.windows), dimensions):
            raise ValueError(
                f"vectors of shape {np.shape(entry.vectors)} do not fit {len(entry.windows)} "
                f"windows of {dimensions} dimensions"
            )
    spans = [tuple(window)[:2] for entry in embedded for window in entry.windows]
    bounds = np.array(spans, dtype=np.uint32).reshape(-1, 2)
    vectors = np.zeros((len(spans), dimensions), dtype=np.float16)
    if embedded:
        np.concatenate([entry.vectors for entry in embedded], out=vectors, casting="same_kind")
    counts = np.array([len(entry.vectors) for entry in entries], dtype=np.int64)
    return counts, bounds[:, 0].copy(), bounds[:, 1].copy(), vectors


class _Part:
    """A segment to merge: ``rows`` of it live, the first of them at ``first`` of the result."""

    def __init__(self, segment: Segment, alive: npt.NDArray[np.bool_], first: int) -> None:
        if len(alive) != segment.count:
            raise ValueError("the mask does not fit the segment")
        self.segment, self.alive = segment, alive
        self.rows = np.flatnonzero(alive)
        self.windows = np.flatnonzero(alive[segment.window_rows])
        self._moved = np.cumsum(alive, dtype=np.int64) - 1 + first

    def names(self, names: str, codes: str) -> list[str]:
        """The names of the living rows, by a column of codes."""
        known: tuple[str, ...] = getattr(self.segment, names)
        return [known[code] for code in getattr(self.segment, codes)[self.rows].tolist()]

    def loose(self, postings: Postings) -> tuple[Array, Array, Array]:
        """Which rows of postings live, their keys and their documents in the result."""
        kept = self.alive[postings.docs]
        keys = np.repeat(postings.keys, np.diff(postings.offsets))
        return kept, keys[kept], self._moved[postings.docs[kept]]

    def terms(self) -> tuple[Array, Array, Array, Array]:
        kept, keys, docs = self.loose(self.segment.terms)
        titles, bodies = self.segment.title_counts[kept], self.segment.body_counts[kept]
        return keys, docs, titles.astype(np.int64), bodies.astype(np.int64)

    def pairs(self) -> tuple[Array, Array]:
        pairs = self.segment.pairs
        kept = self.alive[pairs.docs]
        return pairs.hashes[kept], self._moved[pairs.docs[kept]]


def _joined(parts: Sequence[tuple[Array, ...]]) -> Any:
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def _vectors(parts: Sequence[_Part]) -> npt.NDArray[np.float16]:
    ends = np.cumsum([len(part.windows) for part in parts])
    vectors = np.empty((ends[-1], parts[0].segment.dimensions), dtype=np.float16)
    for part, piece in zip(parts, np.split(vectors, ends[:-1]), strict=True):
        # mode: with "raise" NumPy writes to a copy, which would stay in freed memory
        part.segment.vectors.take(part.windows, axis=0, out=piece, mode="clip")
    return vectors
