"""Neighbours in time, and whether a collection is sequential."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_entries import entry, snapshot_of, unit_vectors
from msgspec.structs import replace

from memory_store.index.neighbours import GAP, REACH, SHORT, Neighbours, neighbours_of
from memory_store.index.segment import IndexEntry

START = 1_700_000_000.0


def walk(count: int, seed: int = 1) -> Any:
    """Vectors of a text that drifts: each is half the one before."""
    steps = unit_vectors(np.random.default_rng(seed), count)
    for number in range(1, count):
        steps[number] += steps[number - 1]
        steps[number] /= np.linalg.norm(steps[number])
    return steps


def entries(vectors: Any, times: Sequence[float], collection: str = "notes") -> list[IndexEntry]:
    return [
        entry([f"{collection}{n}"], vectors=vector[None, :], created=time, collection=collection)
        for n, (vector, time) in enumerate(zip(vectors, times, strict=True))
    ]


def at_once(count: int) -> list[float]:
    return [START] * count


def test_a_text_that_drifts_is_sequential():
    found = neighbours_of(snapshot_of(entries(walk(200), at_once(200))))
    assert found.trust.min() == 1.0


def test_unrelated_notes_are_not():
    vectors = unit_vectors(np.random.default_rng(2), 400)
    assert not neighbours_of(snapshot_of(entries(vectors, at_once(400)))).any


@given(st.lists(st.integers(1, 119), max_size=8, unique=True))
def test_how_a_vault_is_cut_into_segments_changes_nothing(cuts):
    reported = entries(walk(120), at_once(120))
    borders = [0, *sorted(cuts), 120]
    pieces = [reported[start:end] for start, end in pairwise(borders)]
    whole, cut = neighbours_of(snapshot_of(reported)), neighbours_of(snapshot_of(*pieces))
    assert cut.trust.tolist() == whole.trust.tolist()
    assert [b.tolist() for b, _ in cut.beside] == [b.tolist() for b, _ in whole.beside]


def test_each_collection_is_judged_by_itself():
    log = entries(walk(100), at_once(100), "log")
    box = entries(unit_vectors(np.random.default_rng(3), 100), at_once(100), "box")
    found = neighbours_of(snapshot_of(log, box))
    assert found.trust[:100].all()
    assert not found.trust[100:].any()
    assert found.beside[0][1][99] == -1, "no link between collections"


def test_two_folders_stored_one_after_the_other_are_not_in_sequence():
    rng = np.random.default_rng(5)
    centres = np.repeat(unit_vectors(rng, 2), 200, axis=0)
    vectors = centres + unit_vectors(rng, 400)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert not neighbours_of(snapshot_of(entries(vectors, at_once(400)))).any


def test_a_long_memory_trusts_its_neighbours_less():
    told_entries = entries(walk(200), at_once(200))
    told_entries[7] = replace(told_entries[7], length=4 * SHORT)
    found = neighbours_of(snapshot_of(told_entries))
    assert found.trust[6] == found.sequential[0] == 1.0
    assert found.trust[7] == 0.25


def test_many_threads_work_neighbours_out_once():
    snapshot = snapshot_of(entries(walk(200), at_once(200)))
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: neighbours_of(snapshot), range(32)))
    assert len(set(map(id, found))) == 1


def test_copies_of_one_text_do_not_make_a_collection_in_sequence():
    vectors = np.repeat(unit_vectors(np.random.default_rng(4), 50), 4, axis=0)
    copies = [
        entry([f"text{n // 4}"], vectors=vector[None, :], created=START)
        for n, vector in enumerate(vectors)
    ]
    assert not neighbours_of(snapshot_of(copies)).any


def test_too_few_neighbours_show_nothing():
    assert not neighbours_of(snapshot_of(entries(walk(20), at_once(20)))).any


def test_memories_without_vectors_show_nothing():
    silent = [entry([f"word{n}"], created=START) for n in range(100)]
    assert not neighbours_of(snapshot_of(silent)).any
    assert not neighbours_of(snapshot_of([])).any


def test_neighbours_are_those_of_the_same_hour_in_the_order_of_their_times():
    times = [START, START + GAP, START + 2 * GAP + 1, START + 2 * GAP + 1]
    shuffled = [2, 0, 3, 1]
    vectors = walk(4)
    found = neighbours_of(snapshot_of(entries(vectors[shuffled], [times[n] for n in shuffled])))
    before, after = found.beside[0]
    assert after.tolist() == [2, 3, -1, -1], "equal times keep the order of storing"
    assert before.tolist() == [-1, -1, 0, 1]
    assert found.beside[1][1].tolist() == [-1] * 4


def test_deleted_memories_are_no_neighbours():
    alive = np.ones(100, dtype=bool)
    alive[50] = False
    found = neighbours_of(snapshot_of(entries(walk(100), at_once(100)), alive=[alive]))
    assert found.beside[0][1][49] == 51
    assert found.trust[50] == 0.0


numbers = st.floats(0, 100, allow_nan=False)


@pytest.fixture(scope="module")
def reported() -> Neighbours:
    return neighbours_of(snapshot_of(entries(walk(60), at_once(60))))


EVERYTHING = np.arange(60, dtype=np.int32)


@given(st.lists(numbers, min_size=60, max_size=60), st.lists(st.floats(0, 1), max_size=REACH))
def test_lifting_lowers_nothing_and_blending_stays_between(reported, values, weights):
    given_values = np.array(values)
    assert (reported.lifted(given_values, weights, EVERYTHING) >= given_values).all()
    blended = reported.blended(given_values, weights, EVERYTHING)
    assert (blended <= given_values.max() + 1e-9).all()
    assert (blended >= given_values.min() - 1e-9).all()


@given(st.lists(numbers, min_size=60, max_size=60), st.lists(st.integers(0, 59), unique=True))
def test_some_documents_get_what_they_get_among_all(reported, values, some):
    given_values, at = np.array(values), np.array(some, dtype=np.int32)
    for work in (reported.lifted, reported.blended):
        assert (
            work(given_values, (0.4, 0.2), at) == work(given_values, (0.4, 0.2), EVERYTHING)[at]
        ).all()


@given(st.lists(numbers, min_size=60, max_size=60))
def test_nothing_changes_without_weights_or_without_trust(reported, values):
    given_values = np.array(values)
    distrusted = Neighbours(reported.beside, np.zeros(60), (0.0,))
    for same in (
        reported.lifted(given_values, (), EVERYTHING),
        reported.blended(given_values, (), EVERYTHING),
        distrusted.lifted(given_values, (0.5, 0.2), EVERYTHING),
        distrusted.blended(given_values, (0.5, 0.2), EVERYTHING),
    ):
        assert (same == given_values).all()


def test_what_is_not_known_of_a_neighbour_counts_as_the_memory_itself(reported):
    values = np.full(60, np.nan)
    values[30] = 0.5
    assert reported.blended(values, (0.4,), EVERYTHING)[30] == pytest.approx(0.5)
    values[31] = 1.0
    mean = (0.5 + 0.4 * 1.0 + 0.4 * 0.5) / 1.8
    assert reported.blended(values, (0.4,), EVERYTHING)[30] == pytest.approx(mean)


def test_around_names_each_memory_and_its_neighbours_once(reported):
    assert reported.around(EVERYTHING[:2], 2).tolist() == [0, 1, 2, 3]
    assert reported.around(EVERYTHING[:0], 2).tolist() == []
