"""Nearest documents: one suite for every index, exact against brute force, filters included."""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_entries import DIMENSIONS, all_alive, entry, snapshot_of, unit_vectors

from memory_store.index import vec0_vectors
from memory_store.index.numpy_vectors import NumpyVectors
from memory_store.index.segment import build
from memory_store.index.snapshot import Snapshot
from memory_store.index.vec0_vectors import Vec0Vectors, make_vector_index
from memory_store.index.vectors import VectorHits, VectorIndex
from memory_store.sqlite import ExtensionUnavailable

Maker = Callable[[Snapshot], VectorIndex]


def vec0(snapshot: Snapshot) -> VectorIndex:
    try:
        return Vec0Vectors(snapshot)
    except ExtensionUnavailable as error:
        pytest.skip(f"sqlite-vec cannot be loaded: {error}")


def scanning(snapshot: Snapshot) -> VectorIndex:
    return NumpyVectors(snapshot, exact_up_to=0)


MAKERS: dict[str, Maker] = {
    "numpy": NumpyVectors,
    "vec0": vec0,
}


def grown(snapshot: Snapshot, previous: VectorIndex) -> VectorIndex:
    """An index of the same kind over a newer snapshot."""
    index = make_vector_index(snapshot, previous=previous, strict=previous.kind == "numpy")
    assert index.kind == previous.kind
    return index


@pytest.fixture(params=MAKERS)
def exact_index(request) -> Maker:
    return MAKERS[request.param]


@pytest.fixture(params=[*MAKERS, "scan"])
def any_index(request) -> Maker:
    return {**MAKERS, "scan": scanning}[request.param]


def crowd(seed: int, sizes: list[int], share_alive: float = 1.0) -> Snapshot:
    """Documents of zero to three windows, in one segment per size."""
    rng = np.random.default_rng(seed)
    groups = [
        [
            entry(vectors=unit_vectors(rng, rng.integers(0, 4)), collection=f"c{i % 2}")
            for _ in range(size)
        ]
        for i, size in enumerate(sizes)
    ]
    return snapshot_of(*groups, alive=[rng.random(size) < share_alive for size in sizes])


def brute_force(snapshot: Snapshot, query: Any, k: int, mask: Any = None) -> list[Any]:
    """(ordinal, window, cosine) of the nearest documents, by their best window, then by id."""
    unit = np.asarray(query, dtype=np.float64) / np.linalg.norm(query)
    rows = []
    for ordinal in range(snapshot.size):
        windows = snapshot.document_vectors(ordinal).astype(np.float64)
        if len(windows) and snapshot.alive[ordinal] and (mask is None or mask[ordinal]):
            cosines = windows @ unit
            best = int(cosines.argmax())
            rows.append((ordinal, best, float(cosines[best])))
    return sorted(rows, key=lambda row: (-row[2], snapshot.id(row[0])))[:k]


def assert_same(found: VectorHits, expected: list[Any]) -> None:
    assert found.ordinals.tolist() == [ordinal for ordinal, _, _ in expected]
    assert found.windows.tolist() == [window for _, window, _ in expected]
    assert found.similarities == pytest.approx([cosine for *_, cosine in expected], abs=1e-5)


@given(
    seed=st.integers(0, 2**32),
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=4),
    k=st.integers(1, 80),
    share=st.sampled_from([None, 0.02, 0.5, 0.95, 0.0]),
)
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("kind", MAKERS)
def test_an_index_finds_what_brute_force_finds(kind, seed, sizes, k, share):
    snapshot = crowd(seed, sizes, share_alive=0.8)
    rng = np.random.default_rng(seed + 1)
    mask = None if share is None else rng.random(snapshot.size) < share
    query = rng.normal(size=DIMENSIONS)
    found = MAKERS[kind](snapshot).search(query, k, mask)
    assert_same(found, brute_force(snapshot, query, k, mask))


def test_exact_products_over_many_windows_are_brute_forces(exact_index):
    """More windows than a filtered search ranks directly, so that the selection is exercised."""
    snapshot = crowd(5, [4_000, 1, 700])
    assert snapshot.vectors > 6_000
    index = exact_index(snapshot)
    rng = np.random.default_rng(6)
    for share in (1.0, 0.97, 0.9):
        mask = rng.random(snapshot.size) < share
        query = rng.normal(size=DIMENSIONS)
        assert_same(index.search(query, 40, mask), brute_force(snapshot, query, 40, mask))


def lifelike(rng: np.random.Generator, count: int, dimensions: int) -> Any:
    """Vectors spread as MiniLM's are: wide in few directions, nearest neighbours at .6 to .4."""
    widths = 1 / (1 + np.arange(dimensions) / 10)
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(dimensions, dimensions)))
    rows = (rng.normal(size=(count, dimensions)) * widths) @ turn
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def large(rng: np.random.Generator, count: int, dimensions: int) -> Snapshot:
    rows = lifelike(rng, count, dimensions)
    half = count // 2
    parts = []
    for piece in (rows[:half], rows[half:]):
        entries = [entry(vectors=row[None]) for row in piece]
        segment = build(entries, dimensions)
        parts.append((segment, all_alive(segment), "notes"))
    return Snapshot(parts)


def test_scanning_signs_finds_nearly_all_and_ranks_them_exactly():
    """Recall of 64 against brute force, with and without filters (measures.md: at least .99)."""
    rng = np.random.default_rng(8)
    snapshot = large(rng, 12_000, 256)
    index, exact = scanning(snapshot), NumpyVectors(snapshot)
    recalls = []
    for share in (1.0, 0.6, 0.6, 1.0):
        mask = rng.random(snapshot.size) < share
        for query in lifelike(rng, 10, 256):
            found, expected = index.search(query, 64, mask), exact.search(query, 64, mask)
            assert len(found.ordinals) == 64
            assert mask[found.ordinals].all()
            common = set(found.ordinals.tolist()) & set(expected.ordinals.tolist())
            recalls.append(len(common) / 64)
            cosines = dict(zip(expected.ordinals.tolist(), expected.similarities, strict=True))
            ours = dict(zip(found.ordinals.tolist(), found.similarities, strict=True))
            assert all(ours[one] == pytest.approx(cosines[one], abs=1e-6) for one in common)
            assert (np.diff(found.similarities) <= 0).all()
    assert np.mean(recalls) >= 0.99


def test_a_rare_filter_is_answered_exactly_by_a_scanning_index():
    rng = np.random.default_rng(9)
    snapshot = large(rng, 9_000, 64)
    mask = rng.random(snapshot.size) < 0.05
    query = rng.normal(size=64)
    found = NumpyVectors(snapshot, exact_up_to=1_000).search(query, 50, mask)
    assert_same(found, brute_force(snapshot, query, 50, mask))


def test_a_filtered_search_returns_as_many_as_there_are(any_index):
    snapshot = crowd(10, [300])
    embedded = np.array([len(snapshot.windows(o)) > 0 for o in range(snapshot.size)])
    mask = np.zeros(snapshot.size, dtype=bool)
    mask[np.flatnonzero(embedded)[::20]] = True
    found = any_index(snapshot).search(np.ones(DIMENSIONS), 1_000, mask)
    assert sorted(found.ordinals.tolist()) == np.flatnonzero(mask).tolist()


def test_documents_with_many_windows_do_not_crowd_out_the_rest(any_index):
    rng = np.random.default_rng(12)
    target = unit_vectors(rng, 1)
    near = target + 0.1 * unit_vectors(rng, 6_000)
    entries = [entry(vectors=near / np.linalg.norm(near, axis=1, keepdims=True))]
    entries += [entry(vectors=row[None]) for row in unit_vectors(rng, 20)]
    snapshot = snapshot_of(entries)
    found = any_index(snapshot).search(target[0], 15)
    assert_same(found, brute_force(snapshot, target[0], 15))


def test_a_long_document_is_found_by_its_best_window(any_index):
    """A fact in a passage's last sentence lies in the last window."""
    rng = np.random.default_rng(13)
    target = unit_vectors(rng, 1)
    crowd_rows = [entry(vectors=unit_vectors(rng, 3)) for _ in range(50)]
    long = entry(vectors=np.concatenate([unit_vectors(rng, 7), target]))
    snapshot = snapshot_of([*crowd_rows, long])
    found = any_index(snapshot).search(target[0], 1)
    assert found.ordinals.tolist() == [50]
    assert found.windows.tolist() == [7]
    assert snapshot.windows(50)[7] == (700, 799)
    assert found.similarities[0] == pytest.approx(1.0, abs=1e-3)


def test_equal_documents_come_in_the_order_of_their_ids(any_index):
    rng = np.random.default_rng(14)
    twin = unit_vectors(rng, 1)
    keys = [str(uuid.UUID(bytes=rng.bytes(16))) for _ in range(30)]
    entries = [entry(vectors=twin, memory_id=key) for key in keys]
    snapshot = snapshot_of(entries[:17], entries[17:])
    found = any_index(snapshot).search(twin[0], 30)
    assert snapshot.ids(found.ordinals) == sorted(keys)
    assert len(set(found.similarities.tolist())) == 1


@pytest.mark.parametrize(
    "query", [np.zeros(DIMENSIONS), np.full(DIMENSIONS, np.nan), np.ones(DIMENSIONS + 1)]
)
def test_a_query_that_points_nowhere_finds_nothing(any_index, query):
    assert any_index(crowd(15, [20])).search(query, 5).ordinals.tolist() == []


def test_nothing_is_found_where_nothing_is_embedded(any_index):
    for snapshot in (Snapshot([]), snapshot_of([entry(["tea"])]), crowd(16, [9], share_alive=0)):
        found = any_index(snapshot).search(np.ones(DIMENSIONS), 5)
        assert [len(column) for column in found[:3]] == [0, 0, 0]
    assert len(any_index(crowd(16, [9])).search(np.ones(DIMENSIONS), 0).ordinals) == 0


def test_vectors_of_another_model_are_left_alone(any_index):
    rng = np.random.default_rng(17)
    old = build([entry(vectors=unit_vectors(rng, 1, 8)) for _ in range(5)], 8)
    new = build([entry(vectors=unit_vectors(rng, 1)) for _ in range(5)], DIMENSIONS)
    snapshot = Snapshot([(old, all_alive(old), "notes"), (new, all_alive(new), "notes")])
    found = any_index(snapshot).search(np.ones(DIMENSIONS), 99)
    assert sorted(found.ordinals.tolist()) == [5, 6, 7, 8, 9]


def test_vectors_of_two_lengths_are_each_found_by_their_own(exact_index):
    rng = np.random.default_rng(18)
    long = build(
        [entry(vectors=unit_vectors(rng, 2), collection="a") for _ in range(40)], DIMENSIONS
    )
    short = build([entry(vectors=unit_vectors(rng, 2, 8), collection="b") for _ in range(40)], 8)
    alone = {
        dimensions: Snapshot([(segment, all_alive(segment), name)])
        for dimensions, segment, name in ((DIMENSIONS, long, "a"), (8, short, "b"))
    }
    both = Snapshot([(long, all_alive(long), "a"), (short, all_alive(short), "b")])
    first = exact_index(alone[DIMENSIONS])
    index = grown(both, first)
    again = grown(both, index)
    for dimensions, base in ((DIMENSIONS, 0), (8, 40)):
        for query in rng.normal(size=(5, dimensions)):
            expected = brute_force(alone[dimensions], query, 7)
            for one in (index, again):
                found = one.search(query, 7)
                assert_same(found._replace(ordinals=found.ordinals - base), expected)
    assert not len(index.search(np.ones(3), 5).ordinals)
    again.wipe()
    assert not len(again.search(np.ones(8), 5).ordinals)


def test_the_length_of_the_query_does_not_matter(any_index):
    index = any_index(crowd(18, [100]))
    query = np.random.default_rng(19).normal(size=DIMENSIONS)
    one, other = index.search(query, 10), index.search(query * 1e-3, 10)
    assert one.ordinals.tolist() == other.ordinals.tolist()
    assert one.similarities == pytest.approx(other.similarities, abs=1e-6)


def test_many_threads_search_one_index_at_once(any_index):
    snapshot = crowd(20, [500, 500])
    index = any_index(snapshot)
    queries = np.random.default_rng(21).normal(size=(40, DIMENSIONS))
    expected = [index.search(query, 10).ordinals.tolist() for query in queries]
    answers: dict[int, list[list[int]]] = {}

    def ask(name: int) -> None:
        answers[name] = [index.search(query, 10).ordinals.tolist() for query in queries]

    threads = [threading.Thread(target=ask, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answers[name] for name in range(6)] == [expected] * 6


def test_an_index_that_grew_from_an_older_one_answers_as_a_new_one(exact_index):
    rng = np.random.default_rng(22)
    segments = [
        build([entry(vectors=unit_vectors(rng, 2)) for _ in range(n)], DIMENSIONS)
        for n in (60, 30, 1)
    ]

    def seen(*chosen: int) -> Snapshot:
        return Snapshot([(segments[i], all_alive(segments[i]), "notes") for i in chosen])

    before, after, changed = seen(0, 1), seen(0, 1, 2), seen(2, 1)
    oldest = exact_index(before)
    newer = grown(after, oldest)
    newest = grown(changed, newer)
    for query in rng.normal(size=(10, DIMENSIONS)):
        for index, snapshot in ((newest, changed), (newer, after), (oldest, before)):
            assert_same(index.search(query, 20), brute_force(snapshot, query, 20))


def test_a_wiped_index_finds_nothing(any_index):
    index = any_index(crowd(23, [50]))
    assert len(index.search(np.ones(DIMENSIONS), 5).ordinals) == 5
    index.wipe()
    assert len(index.search(np.ones(DIMENSIONS), 5).ordinals) == 0


def test_small_vaults_get_vec0_and_say_how_it_was_loaded():
    assert vec0(crowd(24, [5])).kind == "vec0"
    index = make_vector_index(crowd(24, [5]))
    assert index.kind == "vec0"
    assert "loaded by" in index.reason


def test_without_sqlite_vec_small_vaults_get_numpy_and_say_why(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    index = make_vector_index(crowd(24, [5]))
    assert (index.kind, index.reason) == ("numpy", "sqlite-vec is not installed")


def test_large_vaults_get_numpy(monkeypatch):
    monkeypatch.setattr(vec0_vectors, "VEC0_UP_TO", 10)
    index = make_vector_index(crowd(25, [50]))
    assert (index.kind, index.reason) == ("numpy", "more than 10 vectors")


def test_strict_vaults_never_get_vec0():
    index = make_vector_index(crowd(26, [5]), strict=True)
    assert index.kind == "numpy"
    assert "strict" in index.reason
