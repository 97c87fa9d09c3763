"""Trigrams in a segment: which documents may hold some stretches, merged, encoded and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_entries import entry
from msgspec import msgpack

from memory_store.index import trigrams as room
from memory_store.index.columns import ColumnReader
from memory_store.index.extras import Source
from memory_store.index.layout import Segment
from memory_store.index.segment import build
from memory_store.index.trigrams import TRIGRAMS, Grams, Trigrams

HASHES = st.sets(st.integers(0, 40) | st.integers(0, (1 << 24) - 1), max_size=12)
DOCUMENTS = st.lists(st.none() | HASHES, min_size=1, max_size=30)
"""``None`` is one that has no record."""
Documents = Sequence["set[int] | None"]


def segment(count: int) -> Segment:
    return build([entry([f"word{n}"]) for n in range(count)], 0)


def collected(documents: Documents) -> Trigrams:
    arrays = [None if one is None else np.array(sorted(one), "<u4") for one in documents]
    records = [b"" if one is None else msgpack.encode(Grams(one.tobytes())) for one in arrays]
    return TRIGRAMS.collect(records, segment(len(documents)))


def holds(trigrams: Trigrams, documents: Documents, asked: set[int]) -> None:
    found = trigrams.holding(np.array(sorted(asked), np.uint32)).tolist()
    assert found == [one is not None and asked <= one for one in documents]
    assert trigrams.written.tolist() == [one is not None for one in documents]


def asked_of(documents: Documents) -> list[set[int]]:
    known = sorted(set().union(*(one for one in documents if one)))
    return [{one} for one in known] + [set(known[at : at + 2]) for at in range(len(known) - 1)]


@given(DOCUMENTS)
def test_a_document_is_found_by_all_that_it_holds(documents: Documents) -> None:
    trigrams = collected(documents)
    for asked in (*asked_of(documents), {41, 42}):
        holds(trigrams, documents, asked)


@given(DOCUMENTS)
def test_they_come_back_from_their_bytes(documents: Documents) -> None:
    encoded = b"".join(map(bytes, TRIGRAMS.encode(collected(documents))))
    reader = ColumnReader(encoded)
    decoded = TRIGRAMS.decode(reader, segment(len(documents)))
    reader.finish()
    for asked in asked_of(documents):
        holds(decoded, documents, asked)


@given(st.lists(DOCUMENTS, min_size=1, max_size=3), st.data(), st.sampled_from([8, 1 << 22]))
def test_a_merge_keeps_the_living(parts: list[Documents], data: st.DataObject, at: int) -> None:
    """``at``: rows merged at a time."""
    sources, living = [], []
    for documents in parts:
        alive = data.draw(st.lists(st.booleans(), min_size=len(documents), max_size=len(documents)))
        extra = collected(documents) if data.draw(st.booleans()) else None
        sources.append(Source(segment(len(documents)), extra, np.flatnonzero(alive)))
        living += [
            document if extra else None
            for document, lives in zip(documents, alive, strict=True)
            if lives
        ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(room, "AT_ONCE", at)
        merged = TRIGRAMS.merge(sources, segment(max(1, len(living))))
    for asked in asked_of(living):
        holds(merged, living, asked)


@given(st.lists(st.integers(0, (1 << 22) - 1), min_size=1, max_size=20, unique=True).map(sorted))
def test_far_rows_take_more_bytes(rows: list[int]) -> None:
    written = np.ones(rows[-1] + 1, np.bool_)
    piece = room._piece(np.zeros(len(rows), np.uint32), np.array(rows))
    trigrams = room._joined([piece], written)
    assert trigrams.pairs(0, 1)[1].tolist() == rows


def test_rows_of_no_document_are_refused() -> None:
    encoded = b"".join(map(bytes, TRIGRAMS.encode(collected([None] * 8 + [{7}]))))
    decoded = TRIGRAMS.decode(ColumnReader(encoded), segment(9))
    assert decoded.holding(np.array([7], np.uint32)).any()
    with pytest.raises(ValueError, match="instead of 2"):
        TRIGRAMS.decode(ColumnReader(encoded), segment(2))
    short = Trigrams(decoded.keys, decoded.offsets, decoded.packed, decoded.written[:2])
    with pytest.raises(ValueError, match="of its documents"):
        short.holding(np.array([7], np.uint32))
