"""Lists, newest first, page by page."""

from __future__ import annotations

from memory_store.records import Memory
from memory_store.store import MemoryStore


def pages(store: MemoryStore, size: int) -> list[list[Memory]]:
    """Every page of a list, each begun behind the last memory of the one before."""
    found = [store.list(limit=size)]
    while found[-1]:
        last = found[-1][-1]
        found.append(store.list(limit=size, after=(last.created, last.id)))
    return found[:-1]


def test_pages_hold_everything_once_also_what_came_at_one_moment(store: MemoryStore) -> None:
    for number in range(7):
        day = "2024-05-01" if number % 3 else "2024-05-02"
        store.add(f"Number {number}", created=day)
    whole = store.list()
    found = pages(store, 2)
    assert [len(page) for page in found] == [2, 2, 2, 1]
    assert [memory for page in found for memory in page] == whole
    assert [memory.created[:10] for memory in whole] == ["2024-05-02"] * 3 + ["2024-05-01"] * 4


def test_a_page_goes_on_although_the_memory_it_begins_behind_is_gone(store: MemoryStore) -> None:
    for number in range(5):
        store.add(f"Number {number}", created=f"2024-05-0{number + 1}")
    first = store.list(limit=2)
    store.delete(first[-1].id)
    store.add("Newer than all", created="2024-06-01")
    rest = store.list(after=(first[-1].created, first[-1].id))
    assert [memory.text for memory in rest] == ["Number 2", "Number 1", "Number 0"]
