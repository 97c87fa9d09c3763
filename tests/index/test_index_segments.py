"""Segments survive their codec, merge as if built at once, and refuse damaged bytes."""

from __future__ import annotations

import struct
import tracemalloc
import uuid
import zlib

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from made_up_entries import (
    DIMENSIONS,
    all_alive,
    counts,
    entry,
    pair_hash,
    unit_vectors,
    varied_entries,
    word_hash,
)
from msgspec.structs import replace

from memory_store.index.columns import ColumnReader, pack_planes, pack_raw
from memory_store.index.segment import SegmentParts, build, decode, encode, merge
from memory_store.index.snapshot import Snapshot
from memory_store.index.terms import has_pair, has_term
from memory_store.index.topics import with_topic

seeds = st.integers(0, 2**32)
PARTS = ("main", "vectors", "pairs")


def read_wholly(parts: tuple[bytes, bytes, bytes]) -> None:
    segment = decode(*parts)
    _ = segment.vectors, segment.pairs


@given(seeds, st.integers(0, 25))
def test_a_decoded_segment_holds_what_was_encoded(seed, count):
    entries = varied_entries(seed, count)
    segment = decode(*encode(build(entries, DIMENSIONS)))

    snapshot = Snapshot([(segment, all_alive(segment), "notes")])
    assert snapshot.ids(range(snapshot.size)) == [e.memory_id for e in entries]
    for ordinal, e in enumerate(entries):
        assert snapshot.type(ordinal) == e.type
        assert snapshot.language(ordinal) == e.language
        assert snapshot.versions[ordinal] == e.version
        assert snapshot.created[ordinal] == e.created
        assert snapshot.valid_from[ordinal] == e.valid_from
        assert snapshot.valid_to[ordinal] == e.valid_to
        assert snapshot.content_tags[ordinal].tobytes() == e.content_tag
        assert snapshot.lengths[ordinal] == e.length
        assert snapshot.windows(ordinal) == list(e.windows)
        assert np.allclose(snapshot.document_vectors(ordinal), e.vectors, atol=1e-3)
        assert snapshot.ordinal_of(e.memory_id) == ordinal
    held = [{*e.title_terms.hashes.tolist(), *e.body_terms.hashes.tolist()} for e in entries]
    for word in set().union(*held):
        expected = [word in words for words in held]
        assert has_term(snapshot, {"notes": [word]}).tolist() == expected
    pairs = [set(e.pairs.tolist()) for e in entries]
    for pair in set().union(*pairs):
        assert has_pair(snapshot, {"notes": [pair]}).tolist() == [pair in one for one in pairs]
    for topic in {t for e in entries for t in e.topics}:
        held = with_topic(snapshot, {"notes": [topic]}).tolist()
        assert held == [topic in e.topics for e in entries]
        assert not with_topic(snapshot, {"other": [topic]}).any()


def test_hashes_that_differ_only_in_their_last_bit_are_kept_apart():
    """Floats hold 53 bits: a silent conversion would take neighbours above 2**63 for one word."""
    high = 2**64 - 2
    entries = [
        entry(body_terms=counts({high: 1}), length=1),
        entry(body_terms=counts({high + 1: 1}), length=1),
        entry(body_terms=counts({5: 1}), length=1),
    ]
    segment = build(entries, DIMENSIONS)
    snapshot = Snapshot([(segment, all_alive(segment), "notes")])

    assert has_term(snapshot, {"notes": [high]}).tolist() == [True, False, False]
    assert has_term(snapshot, {"notes": [high + 1]}).tolist() == [False, True, False]
    assert has_term(snapshot, {"notes": [high - 1]}).tolist() == [False, False, False]


@given(seeds, st.lists(st.integers(0, 8), min_size=1, max_size=4), st.randoms())
def test_merging_equals_building_at_once_from_what_lives(seed, sizes, chance):
    groups = [varied_entries(seed + i, size) for i, size in enumerate(sizes)]
    masks = [np.array([chance.random() < 0.7 for _ in group], dtype=bool) for group in groups]
    living = [
        e for g, mask in zip(groups, masks, strict=True) for e, a in zip(g, mask, strict=True) if a
    ]

    built = [build(group, DIMENSIONS) for group in groups]
    merged = merge(list(zip(built, masks, strict=True)))

    assert merged.count == len(living)
    if living:
        assert encode(merged) == encode(build(living, DIMENSIONS))


def test_merged_segments_outlive_the_wiping_of_their_sources():
    source = build(varied_entries(1, 10), DIMENSIONS)
    expected = encode(source)
    merged = merge([(source, all_alive(source))])
    source.wipe()
    assert encode(merged) == expected


@pytest.mark.sampled(0)
def test_more_rows_than_sixteen_bits_can_number_are_kept_apart():
    count = 70_000
    blank = entry()
    every = [
        entry(
            memory_id=f"{row:032x}",
            body_terms=counts({7: 1 + row % 3, 1000 + row: 1}),
            length=2,
            pairs=np.array([(row % 2) << 32], np.uint64),
            content_tag=blank.content_tag,
        )
        for row in range(count)
    ]
    segment = decode(*encode(build(every, DIMENSIONS)))
    snapshot = Snapshot([(segment, all_alive(segment), "notes")])

    assert has_term(snapshot, {"notes": [7]}).all()
    assert np.flatnonzero(has_term(snapshot, {"notes": [1000 + 69_999]})).tolist() == [69_999]
    assert np.flatnonzero(has_pair(snapshot, {"notes": [1 << 32]})).tolist() == [
        *range(1, count, 2)
    ]
    assert encode(segment) == encode(build(every, DIMENSIONS))


def test_counts_above_a_byte_and_above_two_are_exact():
    entries = [
        entry(body_terms=counts({1: n}), title_terms=counts({1: 300}), length=n + 300)
        for n in (1, 255, 256, 70_000)
    ]
    segment = decode(*encode(build(entries, DIMENSIONS)))
    assert segment.body_counts.tolist() == [1, 255, 256, 70_000]
    assert segment.title_counts.tolist() == [300] * 4


@pytest.mark.sampled(1)
@pytest.mark.parametrize("part", range(3), ids=PARTS)
@given(data=st.data())
@settings(max_examples=150)
def test_bytes_cut_anywhere_are_refused(part, data):
    parts = list(encode(build(varied_entries(3, 12), DIMENSIONS)))
    length = data.draw(st.integers(0, len(parts[part]) - 1))
    parts[part] = parts[part][:length]
    with pytest.raises(ValueError, match="segment"):
        read_wholly(SegmentParts(*parts))


@pytest.mark.parametrize("part", range(3), ids=PARTS)
def test_every_flipped_byte_is_refused(part):
    parts = list(encode(build(varied_entries(4, 4), DIMENSIONS)))
    read_wholly(SegmentParts(*parts))
    for place in range(len(parts[part])):
        damaged = bytearray(parts[part])
        damaged[place] ^= 1 << place % 8
        with pytest.raises(ValueError, match="segment"):
            read_wholly(SegmentParts(*parts[:part], bytes(damaged), *parts[part + 1 :]))


def with_valid_checksum(part: bytes | bytearray) -> bytes:
    body = bytes(part[16:])
    return bytes(part[:8]) + struct.pack("<II", zlib.crc32(body), 0) + body


@pytest.mark.sampled(1)
@pytest.mark.parametrize("part", range(3), ids=PARTS)
@given(data=st.data())
@settings(max_examples=400, deadline=None)
def test_forged_bytes_with_a_valid_checksum_never_break_out(part, data):
    """Whatever a forger writes, the outcome is ``ValueError`` or a segment that can be searched."""
    parts = list(encode(build(varied_entries(5, 6), DIMENSIONS)))
    forged = bytearray(parts[part])
    for _ in range(data.draw(st.integers(1, 4))):
        forged[data.draw(st.integers(16, len(forged) - 1))] = data.draw(st.integers(0, 255))
    parts[part] = with_valid_checksum(forged)
    try:
        segment = decode(*parts)
        _ = segment.vectors, segment.pairs
    except ValueError:
        return
    snapshot = Snapshot([(segment, all_alive(segment), "notes")])
    words = [{"notes": segment.terms.keys[:5].tolist()}]
    assert len(has_term(snapshot, words[0])) == segment.count
    assert len(has_pair(snapshot, {"notes": [pair_hash("word1", "word2")]})) == segment.count
    assert len(segment.signatures.T) == segment.windows


@given(st.binary(max_size=200))
@example(b"")
@example(b"MSEG")
def test_any_other_bytes_are_refused(noise):
    good = encode(build(varied_entries(6, 2), DIMENSIONS))
    for parts in ((noise, *good[1:]), (good[0], noise, good[2]), (*good[:2], noise)):
        with pytest.raises(ValueError, match="segment"):
            read_wholly(SegmentParts(*parts))
    with pytest.raises(ValueError, match="segment"):
        read_wholly(
            SegmentParts(*(with_valid_checksum(b"MSEG\x01\x01\0\0" + bytes(8) + noise),) * 3)
        )


def test_parts_of_another_segment_are_refused():
    one, other = (encode(build(varied_entries(s, 9), DIMENSIONS)) for s in (7, 8))
    with pytest.raises(ValueError, match="segment"):
        read_wholly(SegmentParts(one.main, other.vectors, one.pairs))
    with pytest.raises(ValueError, match="segment"):
        read_wholly(SegmentParts(one.pairs, one.vectors, one.main))


def test_a_small_input_cannot_claim_large_memory():
    bomb = zlib.compress(bytes(64 << 20), 9)
    plane = struct.pack("<BxxxxxxxQ", 2, len(bomb)) + bomb + bytes(-len(bomb) % 8)
    claims = [
        struct.pack("<BBBBIQ", 1, 1, 0, 0, 0, 2**40) + plane,  # more than a column may hold
        struct.pack("<BBBBIQ", 1, 1, 0, 0, 0, 2**31) + plane,  # more than DEFLATE can give
        struct.pack("<BBBBIQ", 1, 1, 0, 0, 0, 1000) + plane,  # less than comes out
        struct.pack("<BBBBIQ", 0, 8, 0, 0, 0, 2**28) + bytes(64),  # more than there is
    ]
    for column in claims:
        tracemalloc.start()
        with pytest.raises(ValueError, match="segment"):
            ColumnReader(column).take(["u1", "<u8"])
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1 << 20


def test_planes_of_zeros_cannot_claim_large_memory():
    """A plane left out costs no input, so its items must be backed by something else."""
    column = struct.pack("<BBBBIQ", 1, 4, 0, 0, 0, 2**29) + struct.pack("<BxxxxxxxQ", 0, 0) * 4
    tracemalloc.start()
    with pytest.raises(ValueError, match="segment"):
        ColumnReader(column).take(["<u4"])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


@given(st.lists(st.integers(0, 2**32 - 1), max_size=300), st.sampled_from([1, 2, 4]), st.booleans())
def test_columns_return_their_numbers(numbers, size, delta):
    array = np.array(numbers, dtype=np.uint64).astype(f"<u{size}")
    packed = pack_planes(array, delta=delta)
    reader = ColumnReader(packed)
    assert np.array_equal(reader.take(["<u1", "<u2", "<u4"]), array)
    reader.finish()
    assert np.array_equal(ColumnReader(pack_raw(array)).take([array.dtype.str]), array)


def test_a_segment_decoded_from_a_bytearray_is_wiped_with_it():
    entries = varied_entries(9, 20)
    buffers = [bytearray(part) for part in encode(build(entries, DIMENSIONS))]
    segment = decode(*buffers)
    secret = segment.vectors.tobytes()
    assert secret in buffers[1]
    _ = segment.pairs, segment.signatures, segment.floats, segment.id_order
    arrays = list(segment.arrays())

    segment.wipe()

    assert len(arrays) > 20
    assert not any(array.any() for array in arrays)
    assert bytes(buffers[1][32:]) == bytes(len(secret))
    with pytest.raises(ValueError, match="wiped"):
        _ = segment.vectors


def test_a_segment_decoded_from_bytes_owns_memory_it_can_wipe():
    segment = decode(*encode(build(varied_entries(9, 20), DIMENSIONS)))
    _ = segment.vectors, segment.pairs
    assert all(array.flags.writeable for array in segment.arrays())


def test_vectors_and_pairs_are_fetched_only_when_asked_for():
    parts = encode(build(varied_entries(10, 5), DIMENSIONS))
    fetched = []

    def fetch(name):
        def load():
            fetched.append(name)
            return getattr(parts, name)

        return load

    segment = decode(parts.main, fetch("vectors"), fetch("pairs"))
    snapshot = Snapshot([(segment, all_alive(segment), "notes")])
    has_term(snapshot, {"notes": [word_hash("word1")]})
    assert fetched == []
    has_pair(snapshot, {"notes": [pair_hash("word1", "word2")]})
    assert fetched == ["pairs"]
    _ = segment.vectors, segment.vectors
    assert fetched == ["pairs", "vectors"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"memory_id": "not an id"}, "UUID"),
        ({"content_tag": b"short"}, "16 bytes"),
        ({"topics": (b"short",)}, "16 bytes"),
        ({"vectors": np.zeros((1, DIMENSIONS)), "windows": ()}, "do not fit"),
        ({"vectors": np.zeros((1, 3)), "windows": [(0, 1)]}, "do not fit"),
        ({"body_terms": counts({1: 0})}, "count"),
    ],
)
def test_an_entry_that_cannot_be_indexed_is_refused(changes, complaint):
    with pytest.raises(ValueError, match=complaint):
        build([entry(**changes)], DIMENSIONS)


def test_a_segment_holds_one_collection():
    with pytest.raises(ValueError, match="one collection"):
        build([entry(collection="a"), entry(collection="b")], DIMENSIONS)


def test_an_unembedded_memory_has_no_windows():
    rng = np.random.default_rng(0)
    entries = [entry(windows=[(0, 9)]), entry(vectors=unit_vectors(rng, 2))]
    segment = build(entries, DIMENSIONS)
    assert segment.windows == 2
    assert segment.window_rows.tolist() == [1, 1]


@given(st.lists(st.integers(0, 5), max_size=12), st.lists(st.integers(0, 7), max_size=12))
def test_many_ids_are_found_where_each_is(held, asked):
    ids = [uuid.UUID(int=number // 2 << 64 | number % 2) for number in range(8)]
    segment = build([replace(entry(), memory_id=str(ids[one])) for one in held], 0)
    halves = [divmod(ids[one].int, 2**64) for one in asked]
    each = [row for high, low in halves for row in segment.rows_of(high, low)]
    assert segment.rows_of_all(np.array(halves, np.uint64).reshape(-1, 2)).tolist() == each
