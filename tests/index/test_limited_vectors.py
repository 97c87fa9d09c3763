"""The vectors of some collections: found as if there were no others, and not held a second time."""

from __future__ import annotations

import numpy as np
import pytest

from memory_store.index.vec0_vectors import Vec0Vectors, make_vector_index
from memory_store.scopes import Scope
from memory_store.store import MemoryStore


@pytest.fixture
def view(store: MemoryStore) -> MemoryStore:
    """Two of three collections of ten memories each."""
    for number in range(30):
        name = ("work", "home", "diary")[number % 3]
        store.add(f"pump {number} valve {number * 7} of {name}", collection=name)
    ids = {info.name: info.id for info in store.collections.list()}
    return store.limited_to(Scope.of([ids["work"], ids["home"]]))


def test_the_nearest_are_those_of_an_index_of_its_own(view: MemoryStore) -> None:
    snapshot = view.search_context().snapshot
    own, shared = make_vector_index(snapshot), view.vector_index()
    assert shared.kind == own.kind
    for query in np.random.default_rng(1).standard_normal((20, *snapshot.all_dimensions)):
        for k in (1, 5, 40):
            mine, theirs = shared.search(query, k), own.search(query, k)
            assert mine.ordinals.tolist() == theirs.ordinals.tolist()
            assert np.allclose(mine.similarities, theirs.similarities, atol=1e-6)


def test_a_limited_index_is_in_the_table_of_the_whole_one(
    store: MemoryStore, view: MemoryStore
) -> None:
    whole = store.vector_index()
    if not isinstance(whole, Vec0Vectors):
        pytest.skip("sqlite-vec cannot be loaded here")
    limited = view.vector_index()
    assert isinstance(limited, Vec0Vectors)
    for (length, mine), table in zip(limited.lengths.items(), whole.lengths.values(), strict=True):
        assert mine.table is table.table
        assert (length, mine.table.rows) == (view.embedder().dimensions, len(store.list()))


def test_segments_are_shared_and_columns_kept_for_each_scope(
    store: MemoryStore, view: MemoryStore
) -> None:
    whole, limited = (one.search_context().snapshot for one in (store, view))
    assert {id(part.segment) for part in limited.parts} < {id(p.segment) for p in whole.parts}
    assert view.search_context().snapshot is limited
    everything = Scope.of(info.id for info in store.collections.list())
    assert store.limited_to(everything).search_context().snapshot is whole
