"""Segments: built from index entries, merged, encoded and decoded.

Boundary: an :class:`IndexEntry` holds keyed hashes, numbers and vectors, never words. The bytes
of an encoded segment are as sensitive as the text: they are sealed before they reach a disk.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.index.codec import SegmentParts, decode, encode
from memory_store.index.columns import Array
from memory_store.index.layout import Late, Pairs, Postings, Segment
from memory_store.index.merging import merge
from memory_store.index.postings import collect, collect_pairs

__all__ = ["IndexEntry", "Segment", "SegmentParts", "build", "decode", "encode", "merge"]

KEY_BYTES = 16  # ids, tags and topic hashes


class IndexEntry(Struct, frozen=True):
    """What the index knows of one memory.

    ``memory_id`` is a UUID's text; ``content_tag`` and each of ``topics`` are 16-byte keyed
    hashes; ``title_terms``/``body_terms`` map uint64 term hashes to counts; ``length`` is the
    number of tokens in title and body; ``pairs`` are uint64 hashes of adjacent terms; ``windows``
    are ``(start, end)`` character offsets, one per row of ``vectors`` (float [w, d], length 1).
    A memory that is not embedded has vectors of shape ``(0, d)``; its windows are then ignored.
    ``row_tag`` is that of the row, 16 bytes, known when it is written.
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
    title_terms: Mapping[int, int]
    body_terms: Mapping[int, int]
    length: int
    pairs: frozenset[int]
    windows: Sequence[tuple[int, int]]
    vectors: npt.NDArray[Any]
    valid_from: float | None = None
    valid_to: float | None = None
    row_tag: bytes = bytes(KEY_BYTES)


def build(entries: Sequence[IndexEntry], dimensions: int) -> Segment:
    """A segment of ``entries``, in their order. They must be of one collection.

    ``dimensions`` is that of the vectors (0 when nothing is embedded). Raises ``ValueError``
    when an id is not a UUID, a tag is not 16 bytes, or vectors do not have ``dimensions``
    columns and one row per window.
    """
    if len({entry.collection for entry in entries}) > 1:
        raise ValueError("a segment holds one collection")
    types, type_codes = _coded([entry.type for entry in entries])
    languages, language_codes = _coded([entry.language for entry in entries])
    terms, titles, bodies = _terms(entries)
    offsets, starts, ends, vectors = _windows(entries, dimensions)
    return Segment(
        count=len(entries),
        dimensions=dimensions,
        ids=_keys([uuid.UUID(entry.memory_id).bytes for entry in entries]),
        versions=np.array([entry.version for entry in entries], dtype=np.int64),
        types=types,
        type_codes=type_codes,
        languages=languages,
        language_codes=language_codes,
        created=np.array([entry.created for entry in entries], dtype=np.float64),
        updated=np.array([entry.updated for entry in entries], dtype=np.float64),
        valid_from=_bounds([entry.valid_from for entry in entries], -math.inf),
        valid_to=_bounds([entry.valid_to for entry in entries], math.inf),
        content_tags=_keys([entry.content_tag for entry in entries]),
        row_tags=_keys([entry.row_tag for entry in entries]),
        lengths=np.array([entry.length for entry in entries], dtype=np.uint32),
        terms=terms,
        title_counts=titles,
        body_counts=bodies,
        topics=_topics(entries),
        window_offsets=offsets,
        window_starts=starts,
        window_ends=ends,
        late_vectors=Late(None, vectors),
        late_pairs=Late(None, _pairs(entries)),
    )


def _coded(names: Sequence[str]) -> tuple[tuple[str, ...], npt.NDArray[np.uint16]]:
    kinds = tuple(dict.fromkeys(names))
    codes = {name: code for code, name in enumerate(kinds)}
    return kinds, np.array([codes[name] for name in names], dtype=np.uint16)


def _keys(values: Sequence[bytes]) -> npt.NDArray[np.uint8]:
    if any(len(value) != KEY_BYTES for value in values):
        raise ValueError("ids, tags and topic hashes are 16 bytes")
    joined = bytearray(b"".join(values))  # a bytearray, so that the array can be wiped
    return np.frombuffer(joined, dtype=np.uint8).reshape(-1, KEY_BYTES)


def _bounds(values: Sequence[float | None], unknown: float) -> npt.NDArray[np.float64]:
    return np.array([unknown if v is None else v for v in values], dtype=np.float64)


def _hashes(values: Iterable[int]) -> npt.NDArray[np.uint64]:
    # The dtype must be said: left to itself, NumPy turns hashes above 2**63 into floats.
    return np.fromiter(values, dtype=np.uint64)


def _terms(entries: Sequence[IndexEntry]) -> tuple[Postings, Array, Array]:
    sizes = [(len(entry.body_terms), len(entry.title_terms)) for entry in entries]
    fields = [terms for entry in entries for terms in (entry.body_terms, entry.title_terms)]
    keys = _hashes(chain.from_iterable(terms.keys() for terms in fields))
    counts = np.fromiter(
        chain.from_iterable(terms.values() for terms in fields), dtype=np.int64, count=len(keys)
    )
    docs = np.repeat(np.arange(len(entries)), [b + t for b, t in sizes])
    in_title = np.repeat(np.arange(2 * len(entries)) % 2, [n for pair in sizes for n in pair])
    if len(counts) and (counts.min() < 1 or counts.max() >= 1 << 32):
        raise ValueError("a term's count is between 1 and 2**32")
    postings, (titles, bodies) = collect(
        keys, docs, len(entries), (counts * in_title, counts * (1 - in_title))
    )
    return postings, titles, bodies


def _topics(entries: Sequence[IndexEntry]) -> Postings:
    if any(len(topic) != KEY_BYTES for entry in entries for topic in entry.topics):
        raise ValueError("ids, content tags and topic hashes are 16 bytes")
    keys = _hashes(int.from_bytes(topic[:8], "big") for e in entries for topic in e.topics)
    docs = np.repeat(np.arange(len(entries)), [len(entry.topics) for entry in entries])
    return collect(keys, docs, len(entries))[0]


def _pairs(entries: Sequence[IndexEntry]) -> Pairs:
    hashes = _hashes(chain.from_iterable(entry.pairs for entry in entries))
    upper = (hashes >> np.uint64(32)).astype(np.uint32)
    docs = np.repeat(np.arange(len(entries)), [len(entry.pairs) for entry in entries])
    return collect_pairs(upper, docs, len(entries))


def _windows(
    entries: Sequence[IndexEntry], dimensions: int
) -> tuple[
    npt.NDArray[np.int64],
    npt.NDArray[np.uint32],
    npt.NDArray[np.uint32],
    npt.NDArray[np.float16],
]:
    embedded = [entry for entry in entries if len(entry.vectors)]
    for entry in embedded:
        if np.shape(entry.vectors) != (len(entry.windows), dimensions):
            raise ValueError(
                f"vectors of shape {np.shape(entry.vectors)} do not fit {len(entry.windows)} "
                f"windows of {dimensions} dimensions"
            )
    spans = [tuple(window)[:2] for entry in embedded for window in entry.windows]
    bounds = np.array(spans, dtype=np.uint32).reshape(-1, 2)
    offsets = np.zeros(len(entries) + 1, dtype=np.int64)
    np.cumsum([len(entry.vectors) for entry in entries], out=offsets[1:])
    vectors = np.zeros((len(spans), dimensions), dtype=np.float16)
    if embedded:
        np.concatenate([entry.vectors for entry in embedded], out=vectors, casting="same_kind")
    return offsets, bounds[:, 0].copy(), bounds[:, 1].copy(), vectors
