"""In a vault of a few notes an answer stands out as it does in a large one, and noise does not."""

from pathlib import Path

import pytest
from tiny_embedder import build

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore


@pytest.fixture
def two_notes(tmp_path: Path) -> MemoryStore:
    """A vault of two notes, embedded by a model of which it is known what is usual."""
    store = MemoryStore.in_memory(embedder=str(build(tmp_path / "all-MiniLM-L6-v2")))
    store.add_many(
        [
            MemoryDraft("The spare key lies under the flower pot.", title="Spare key"),
            MemoryDraft("Flour and water, and salt.", title="Bread"),
        ]
    )
    return store


def test_the_one_answer_is_certain(two_notes: MemoryStore) -> None:
    found = two_notes.search("where is the spare key")
    assert found.rows[0].title == "Spare key"
    assert found.certain == 1


@pytest.mark.parametrize("query", ["tax return 2023", "xqzzv plorf"])
def test_what_no_note_answers_comes_nearest_at_most(two_notes: MemoryStore, query: str) -> None:
    assert all(row.score is None or row.score < 0.15 for row in two_notes.search(query).rows)


def test_what_a_phrase_refuses_is_not_certain(store: MemoryStore) -> None:
    store.add_many([MemoryDraft(f"Nothing of it {number} here") for number in range(30)])
    store.add("The boiler was serviced in spring")
    assert store.search("boiler serviced").totals["certain"] == 1
    refused = store.search('boiler "service"')
    assert (refused.rows, refused.totals["certain"]) == ((), 0)


def test_a_later_page_counts_nothing_as_certain_that_one_before_refused(store: MemoryStore) -> None:
    store.add_many([MemoryDraft(f"Nothing of it {number} here") for number in range(60)])
    store.add("The boiler was serviced, boiler and pump", title="Boiler serviced")
    store.add("The boiler service was in spring, and long")
    store.add("A service, and much of what was done in the cellar that day, where the boiler is")
    query = 'boiler "service"'
    first = store.search(query, limit=1)
    second = store.search(query, limit=1, continue_=first.next)
    assert (first.opened, len(second.rows)) == (2, 1), "the best was opened and refused"
    assert (first.totals["certain"], second.totals["certain"]) == (1, 1)


def test_nothing_is_certain_that_was_not_opened_to_see_whether_it_fits(store: MemoryStore) -> None:
    store.add_many([MemoryDraft(f"Nothing of it {number} here") for number in range(60)])
    for bed in ("north", "south"):
        words = "boiler serviced " * (3 if bed == "north" else 2) + f"in {bed}"
        store.add(words, metadata={"bed": bed})
    assert store.search("boiler serviced").totals["certain"] == 2
    page = store.search("boiler serviced", meta={"bed": "north"}, limit=1)
    assert (page.opened, page.totals["certain"]) == (1, 1)
    assert page.how_many(page.found) == "1 certain; more may fit"
