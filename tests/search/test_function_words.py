"""A query of function words alone says nothing: without vectors, what holds them is not certain."""

from __future__ import annotations

import pytest

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

NOTES = (
    MemoryDraft("How we buy things now: by the list on the door."),
    MemoryDraft("To be or not to be, said the lamp keeper, and went to bed."),
    *(MemoryDraft(f"Number {number} hangs in a hall beside its key.") for number in range(20)),
)


@pytest.fixture
def notes(store: MemoryStore) -> MemoryStore:
    """Notes in words alone."""
    store.add_many(NOTES, embed=False)
    return store


@pytest.mark.parametrize("query", ["how", "how we", "not", "not or be"])
def test_they_find_and_nothing_is_certain(notes: MemoryStore, query: str) -> None:
    found = notes.search(query)
    assert found.rows
    assert found.rows[0].score < 0.2
    assert found.certain == 0


@pytest.mark.parametrize("query", ["how we buy", "list", "to be or not to be", '"how we"'])
def test_another_word_a_quote_or_the_same_row_of_words_is_an_answer(
    notes: MemoryStore, query: str
) -> None:
    assert notes.search(query).rows[0].score > 0.5
