"""Facets count the whole result, and open nothing for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_store.scopes import EVERYTHING, Scope
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
    names = ("type", "status", "collection", "topic", "folder", "created")
    assert page.facets == {name: {} for name in names}


@pytest.fixture
def vault(store: MemoryStore, tmp_path: Path) -> MemoryStore:
    """Notes in folders within folders, of two imported ones, and one that is in none."""
    for name in ("a/home/lease", "a/home/flat/key", "a/home/flat/rent", "a/top", "b/home/b/weir"):
        path = tmp_path / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"The spare key, as {name} says.")
    store.import_paths([tmp_path / "a"])
    store.import_paths([tmp_path / "b"], collection="work")
    store.add("A spare key in no folder.")
    return store


def test_a_folder_counts_what_is_in_it_and_below(vault: MemoryStore) -> None:
    folders = {"home": 4, "home/flat": 2, "home/b": 1}
    for query in ("spare key", "since:1990"):
        page = vault.search(query, mode="keyword", limit=32)
        assert page.facets["folder"] == folders
        for folder, count in folders.items():
            kept = vault.search(query, mode="keyword", limit=32, narrow=f"folder:{folder}")
            assert len(kept.rows) == count, folder
        both = vault.search(
            query, mode="keyword", limit=32, narrow=["folder:home", "folder:home/flat"]
        )
        assert {row.ref for row in both.rows} == {"home/flat/key.md", "home/flat/rent.md"}
        assert both.facets["folder"] == {"home": 2, "home/flat": 2}
    vault.delete(vault.find_id("home/flat/key.md"))
    again = vault.search("spare key", mode="keyword", limit=32).facets["folder"]
    assert again == {"home": 3, "home/b": 1, "home/flat": 1}


def test_folders_of_what_may_not_be_read_are_not_named(vault: MemoryStore) -> None:
    work = next(one.id for one in vault.collections.list() if one.name == "work")
    theirs = vault.limited_to(EVERYTHING, readable=Scope.of([work]))
    page = theirs.search("spare key", mode="keyword", sealed=True, limit=32)
    assert page.facets["folder"] == {"home": 1, "home/b": 1}
    none = theirs.search(
        "spare key", mode="keyword", sealed=True, limit=32, narrow="folder:home/flat"
    )
    assert none.rows == ()
