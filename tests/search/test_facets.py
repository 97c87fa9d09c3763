"""Facets count the whole result, and open nothing for it."""

from __future__ import annotations

import pytest

from memory_store.store import MemoryStore


def test_they_count_the_pool_and_not_the_page(notes: MemoryStore) -> None:
    page = notes.search("the spare key", limit=2, rerank=False)
    assert (len(page.rows), page.opened) == (2, 2)
    assert page.facets["type"] == {"note": 12}
    assert page.facets["status"] == {"open": 12}
    assert page.facets["collection"] == {"personal": 12}
    named = {topic for row in page.rows for topic in row.topics}
    assert page.facets["topic"] == dict.fromkeys(sorted(named), 6)


def test_topics_are_complete_where_all_was_read(notes: MemoryStore, reranker: str) -> None:
    notes.add("the spare key to the shed", topics=("shed",))
    page = notes.search("spare key", limit=1)
    assert page.facets["topic"]["shed"] == 1
    results = notes.search("spare key", limit=32).rows
    assert page.facets["type"] == {"note": len(results)}
    assert sum(page.facets["topic"].values()) == len(results)


@pytest.mark.parametrize("rerank", [True, False])
def test_every_page_has_the_same(notes: MemoryStore, reranker: str, rerank: bool) -> None:
    first = notes.search("the spare key", limit=4, rerank=rerank)
    second = notes.search("the spare key", limit=4, rerank=rerank, continue_=first.next)
    for name in ("type", "status", "collection"):
        assert second.facets[name] == first.facets[name]


def test_they_take_completed_ones_for_their_type(notes: MemoryStore) -> None:
    notes.done(notes.add("return the spare key", type="task").id)
    facets = notes.search("spare key", rerank=False).facets
    assert facets["type"] == {"note": 12, "task": 1}
    assert facets["status"] == {"open": 12, "done": 1}


def test_spellings_of_one_topic_are_one(notes: MemoryStore) -> None:
    notes.add("a spare key in the shed", topics=("House",), created="2030-01-01")
    assert sum(notes.search("topic:house", limit=1).facets["topic"].values()) == 7


def test_what_only_texts_decide_is_counted_where_it_was_read(notes: MemoryStore) -> None:
    page = notes.search('"spare key"', rerank=False)
    assert page.facets["type"] == {"note": len(page.rows)} == {"note": 1}


def test_nothing_found_has_no_facets(notes: MemoryStore) -> None:
    page = notes.search("zeppelin", mode="keyword")
    assert page.facets == {"type": {}, "status": {}, "collection": {}, "topic": {}, "created": {}}
