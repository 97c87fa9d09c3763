"""What a merge replaced in memory is overwritten: once no search uses it, or at the lock."""

from __future__ import annotations

import gc

from memory_store.store import MemoryStore

MERGED = 8  # parts of one size, of which a larger one is made


def write_until_merged(store: MemoryStore) -> None:
    parts = len(store.search_context().snapshot.parts)
    for number in range(MERGED + 1):
        store.add(f"A later note of {number} herons.")
        store.search("herons", mode="vector")
    assert len(store.search_context().snapshot.parts) < parts + MERGED


def test_a_part_that_was_merged_is_overwritten_once_no_search_uses_it(store: MemoryStore) -> None:
    store.add("The first heron of the year.")
    vectors = store.search_context().snapshot.parts[-1].segment.vectors
    assert vectors.any()
    write_until_merged(store)
    gc.collect()
    assert not vectors.any()


def test_what_a_search_worked_out_of_a_part_after_the_merge_is_overwritten_too(
    store: MemoryStore,
) -> None:
    store.add("The first heron of the year.")
    snapshot = store.search_context().snapshot
    segment = snapshot.parts[-1].segment
    write_until_merged(store)
    words, signs = segment.id_words, segment.signatures
    assert words.any()
    assert signs.any()
    store.lock()
    assert not words.any()
    assert not signs.any()


def test_a_part_is_left_while_searches_work_out_more_of_it(store: MemoryStore) -> None:
    """Once in an hour of reading and writing it ended a search with an error of Python's."""
    store.add("The first heron of the year.")
    segment = store.search_context().snapshot.parts[-1].segment
    arrays = iter(segment.arrays())
    next(arrays)
    assert len(segment.id_order) == 1, "as another thread may do at any moment"
    assert list(arrays)


def test_a_part_that_a_search_still_uses_is_overwritten_at_the_lock(store: MemoryStore) -> None:
    store.add("The first heron of the year.")
    snapshot = store.search_context().snapshot
    vectors = snapshot.parts[-1].segment.vectors
    write_until_merged(store)
    gc.collect()
    assert vectors.any(), "its search goes on"
    store.lock()
    assert not vectors.any()
