"""Memories of equal content, told apart by what only opened metadata show."""

from __future__ import annotations

import pytest

from memory_store.store import MemoryStore


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_metadata_find_each_of_equal_contents(store: MemoryStore, mode: str) -> None:
    for bed in ("north", "south", "east"):
        store.add("The ferry leaves at seven", ref=bed, metadata={"bed": bed})
    for bed in ("north", "south", "east"):
        found = store.search("ferry leaves", mode=mode, meta={"bed": bed}).rows
        assert [row.ref for row in found] == [bed]
