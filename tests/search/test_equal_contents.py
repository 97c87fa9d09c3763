"""Memories of equal content, told apart by what only opened metadata show."""

from __future__ import annotations

import pytest

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_metadata_find_each_of_equal_contents(store: MemoryStore, mode: str) -> None:
    for bed in ("north", "south", "east"):
        store.add("The ferry leaves at seven", ref=bed, metadata={"bed": bed})
    for bed in ("north", "south", "east"):
        found = store.search("ferry leaves", mode=mode, meta={"bed": bed}).rows
        assert [row.ref for row in found] == [bed]


def test_equal_contents_of_which_one_has_vectors_are_found_once_and_with_a_score(
    store: MemoryStore,
) -> None:
    """As while a collection is being embedded: either of two equal memories may stand for both."""
    for embed in (True, False):
        store.add_many(
            (
                MemoryDraft(
                    f"The ferry to island {number} leaves at seven",
                    ref=f"{number} {embed}",
                    created=f"2024-02-{number + 1:02}",
                    collection="one" if embed else "another",
                )
                for number in range(20)
            ),
            embed=embed,
        )
    found = store.search("ferry island seven", limit=32).rows
    assert len(found) == len({row.ref.split()[0] for row in found if row.ref}) == 20
    assert all(0 < row.score <= 1 for row in found)
