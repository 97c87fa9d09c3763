"""``topic:home`` also finds what lies below it: ``home/attic``, and ``home/attic/box``."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memory_store import access
from memory_store.access.grants import Grants
from memory_store.index.kinds import KINDS
from memory_store.index.topic_parents import TOPIC_PARENTS
from memory_store.records import search_request
from memory_store.scopes import NOTHING, Scope
from memory_store.session.entries import RECORDS
from memory_store.store import MemoryStore

TOPICS = {
    "home": ["home"],
    "attic": ["home/attic"],
    "box": ["Home/Attic/Box 3", "wood"],
    "homework": ["homework"],
    "wood": ["wood"],
}
BELOW = {"home": {"home", "attic", "box"}, "home/attic": {"attic", "box"}, "wood": {"box", "wood"}}


def fill(store: MemoryStore) -> MemoryStore:
    for title, topics in TOPICS.items():
        store.add(f"The ladder stands there, says {title}.", title=title, topics=topics)
    store.add("The ladder of work.", title="desk", topics=["home/desk"], collection="work")
    return store


@pytest.fixture
def filled(store: MemoryStore) -> MemoryStore:
    return fill(store)


def found(store: MemoryStore, query: str = "", **options: object) -> set[str]:
    return {row.title for row in store.search(query, **options).rows}


@pytest.mark.parametrize("topic", BELOW)
def test_a_topic_finds_what_lies_below_it(filled: MemoryStore, topic: str) -> None:
    options = {"collection": "personal"}
    assert found(filled, f"topic:{topic}", **options) == BELOW[topic]
    assert found(filled, "ladder", topic=topic, **options) == BELOW[topic]
    assert {one.title for one in filled.list(topic=topic, **options)} == BELOW[topic]


def test_each_collection_has_its_own(filled: MemoryStore) -> None:
    assert found(filled, "topic:home") == BELOW["home"] | {"desk"}
    assert found(filled, "topic:home in:work") == {"desk"}
    assert found(filled, "topic:home topic:wood") == {"box"}


def test_a_facet_counts_and_keeps_the_topic_alone(filled: MemoryStore) -> None:
    facet = filled.search("ladder").facets["topic"]
    assert (facet["home"], facet["home/attic"], facet["wood"]) == (1, 1, 2)
    assert found(filled, "ladder", narrow="topic:home") == {"home"}
    assert filled.topics()["home"] == 1


def test_the_topics_of_the_start_page_count_what_a_click_finds(filled: MemoryStore) -> None:
    counts = filled.frequent_topics()
    assert counts["home"] == len(BELOW["home"]) + 1
    assert all(len(found(filled, topic=one)) == count for one, count in counts.items())


def test_it_follows_edits_deletions_and_merged_segments(filled: MemoryStore) -> None:
    titles = {one.title: one.id for one in filled.list()}
    filled.edit(titles["attic"], topics=["garden/shed"])
    filled.delete(titles["box"])
    for number in range(20):
        filled.add(f"Shelf {number}", title=f"shelf {number}", topics=["garden"])
    assert found(filled, "topic:home in:personal") == {"home"}
    assert found(filled, "topic:garden", limit=32) == {
        "attic",
        *(f"shelf {number}" for number in range(20)),
    }


def test_who_may_search_and_not_read_finds_the_same(filled: MemoryStore) -> None:
    every = Scope.of(one.id for one in filled.collections.list())
    grants = Grants(search=every, decrypt=NOTHING)
    response = access.search(filled, grants, search_request("topic:home"))
    assert {row.id for row in response.rows} == {
        one.id for one in filled.list() if one.title in BELOW["home"] | {"desk"}
    }


def test_why_names_the_topic_for_what_does_not_lie_below_it(filled: MemoryStore) -> None:
    ids = {one.title: one.id for one in filled.list()}
    left_out = {
        title: "topic:home" in str(filled.search("ladder topic:home", why=ids[title]).why)
        for title in TOPICS
    }
    assert left_out == {title: title not in BELOW["home"] for title in TOPICS}


def test_a_vault_of_before_finds_the_topic_alone_until_it_is_reindexed(
    monkeypatch: pytest.MonkeyPatch, make_store: Callable[..., MemoryStore]
) -> None:
    with monkeypatch.context() as before:
        before.delitem(KINDS, TOPIC_PARENTS.name)
        before.delitem(RECORDS, TOPIC_PARENTS.name)
        older = fill(make_store("older.db"))
    assert found(older, "topic:home") == {"home"}
    older.reindex()
    assert found(older, "topic:home") == BELOW["home"] | {"desk"}
