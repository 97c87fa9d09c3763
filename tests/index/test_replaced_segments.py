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


def test_a_part_that_a_search_still_uses_is_overwritten_at_the_lock(store: MemoryStore) -> None:
    store.add("The first heron of the year.")
    snapshot = store.search_context().snapshot
    vectors = snapshot.parts[-1].segment.vectors
    write_until_merged(store)
    gc.collect()
    assert vectors.any(), "its search goes on"
    store.lock()
    assert not vectors.any()
