"""A facet's number comes true: narrowed to a value, the result has as many rows as it said."""

from __future__ import annotations

import pytest

from memory_store.errors import BadInputError
from memory_store.records import SearchResponse
from memory_store.scopes import EVERYTHING, Scope
from memory_store.store import MemoryStore


@pytest.fixture
def shed(notes: MemoryStore) -> MemoryStore:
    """The notes, with some of another type, time, collection and state among them."""
    for number in range(3):
        notes.add(
            f"A spare key for the shed, number {number}",
            type="task",
            topics=("shed", "tools"),
            created=f"202{number}-05-01",
        )
    notes.add("The spare key of the office", type="task", collection="work", topics=("shed",))
    notes.done(notes.add("Cut a spare key", type="task", topics=("tools",)).id)
    return notes


def total(response: SearchResponse) -> int:
    return len(response.rows)


@pytest.mark.parametrize("query", ["the spare key", "since:1990"])
@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_every_number_is_what_choosing_its_value_leaves(
    shed: MemoryStore, query: str, mode: str
) -> None:
    whole = shed.search(query, mode=mode, limit=32)
    for facet, values in whole.facets.items():
        for value, count in values.items():
            narrowed = shed.search(query, mode=mode, limit=32, narrow=f"{facet}:{value}")
            assert total(narrowed) == count, (facet, value)


def test_what_is_kept_keeps_its_order_and_scores(shed: MemoryStore) -> None:
    whole = shed.search("the spare key", limit=32)
    narrowed = shed.search("the spare key", limit=32, narrow=["type:task"])
    tasks = [(row.id, row.score) for row in whole.rows if row.type.startswith("task")]
    assert [(row.id, row.score) for row in narrowed.rows] == tasks
    assert [row.rank for row in narrowed.rows] == list(range(1, len(tasks) + 1))


def test_another_value_of_a_facet_adds_as_many_as_its_number_says(shed: MemoryStore) -> None:
    one = shed.search("the spare key", limit=32, narrow="type:task")
    assert one.facets["type"]["note"] == 12
    both = shed.search("the spare key", limit=32, narrow=["type:task", "type:note"])
    assert total(both) == total(one) + 12


def test_facets_count_what_the_others_keep(shed: MemoryStore) -> None:
    tasks = shed.search("the spare key", limit=32, narrow="type:task")
    assert tasks.facets["status"] == {"open": 4, "done": 1}
    assert tasks.facets["topic"] == {"shed": 4, "tools": 4}
    both = shed.search("the spare key", limit=32, narrow=["type:task", "topic:shed"])
    assert both.facets["topic"] == {"shed": 4, "tools": 3}
    all_three = shed.search(
        "the spare key", limit=32, narrow=["type:task", "topic:shed", "topic:tools"]
    )
    assert total(all_three) == 3


def test_pages_of_a_narrowed_result_show_each_once(shed: MemoryStore) -> None:
    options = {"narrow": "type:task", "limit": 2}
    page = shed.search("the spare key", **options)
    seen = [row.id for row in page.rows]
    while page.next:
        page = shed.search("the spare key", continue_=page.next, **options)
        assert page.facets["type"]["task"] == 5
        seen += [row.id for row in page.rows]
    assert len(seen) == len(set(seen)) == 5


def test_times_are_months_where_few_and_years_where_many(notes: MemoryStore) -> None:
    for month in range(1, 9):
        notes.add(f"ledger of month {month}", created=f"2031-{month:02}-03", topics=("ledger",))
    months = notes.search("topic:ledger").facets["created"]
    assert list(months) == [f"2031-{month:02}" for month in range(8, 0, -1)]
    for year in range(2010, 2020):
        notes.add(f"ledger of {year}", created=f"{year}-07-01", topics=("ledger",))
    years = notes.search("topic:ledger").facets["created"]
    assert years["2031"] == 8
    assert len(years) == 11


def test_literal_results_are_narrowed_too(shed: MemoryStore) -> None:
    whole = shed.search("spare key", mode="literal", limit=32)
    tasks = shed.search("spare key", mode="literal", limit=32, narrow="type:task")
    assert total(tasks) == whole.facets["type"]["task"] == 5


@pytest.mark.parametrize(
    "wrong", ["note", "colour:red", "type:", "status:lost", "created:7d", "created:2025-13"]
)
def test_what_is_no_facet_is_refused_by_name(notes: MemoryStore, wrong: str) -> None:
    with pytest.raises(BadInputError, match=r"^narrow: ") as refusal:
        notes.search("spare key", narrow=wrong)
    assert refusal.value.parameter == "narrow"


def test_names_that_may_not_be_read_neither_count_nor_narrow(shed: MemoryStore) -> None:
    personal = next(one for one in shed.collections.list() if one.name == "personal")
    reader = shed.limited_to(EVERYTHING, readable=Scope(frozenset({personal.id})))
    whole = reader.search("the spare key", limit=32)
    assert whole.facets["collection"] == {"personal": total(whole) - 1}
    assert whole.facets["topic"]["shed"] == 3
    for facet in ("collection", "topic"):
        for value, count in whole.facets[facet].items():
            narrowed = reader.search("the spare key", limit=32, narrow=f"{facet}:{value}")
            assert total(narrowed) == count
