"""Searching some collections and reading others: one ranking, and rows that are whole or sealed."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from memory_store import access
from memory_store.access import Grants, NotPermittedError
from memory_store.errors import BadInputError, NotFoundError
from memory_store.records import SealedMemory, SearchResponse, search_request
from memory_store.scopes import EVERYTHING, NOTHING, Scope
from memory_store.store import MemoryStore

NAMES = ("work", "home", "diary")


@pytest.fixture
def filled(store: MemoryStore) -> MemoryStore:
    """Three collections of four memories about pumps."""
    for number in range(12):
        name = NAMES[number % 3]
        store.add(
            f"pump number {number} of {name}",
            title=f"Pump {number}",
            collection=name,
            topics=("pumps", f"only-{name}"),
        )
    return store


def scope(store: MemoryStore, *names: str) -> Scope:
    ids = {info.name: info.id for info in store.collections.list()}
    return Scope.of(ids[name] for name in names)


def ask(
    store: MemoryStore, search: Scope, decrypt: Scope, query: str = "pump", **options: Any
) -> SearchResponse:
    return access.search(
        store, Grants(search, decrypt), search_request(query, **{"limit": 12, **options})
    )


def collections(response: SearchResponse) -> set[str]:
    return {row.collection for row in response.rows}


def test_rows_that_may_be_read_are_whole_and_the_others_sealed(filled: MemoryStore) -> None:
    found = ask(filled, scope(filled, "work", "home"), scope(filled, "work"))
    whole = [row for row in found.rows if row.collection]
    sealed = [row for row in found.rows if not row.collection]
    assert (len(whole), len(sealed), found.total) == (4, 4, 8)
    assert all(row.collection == "work" and row.title and row.preview for row in whole)
    for row in sealed:
        assert (row.title, row.preview, row.topics, row.passages, row.ref) == ("", "", (), (), None)
        assert row.id
        assert row.score > 0
        data = access.row_data(row, strict=False)
        assert data["title"] is data["collection"] is None
        assert data["id"] == row.id


def test_nothing_is_read_to_rank_what_one_may_only_search(filled: MemoryStore) -> None:
    mixed = ask(filled, scope(filled, "work", "home"), scope(filled, "work"))
    sealed = ask(filled, scope(filled, "work", "home"), NOTHING)
    assert [(r.id, r.score) for r in mixed.rows] == [(r.id, r.score) for r in sealed.rows]


def test_of_what_is_found_that_alone_is_opened_which_may_be_read(filled: MemoryStore) -> None:
    visible, one = scope(filled, "work", "home"), filled.list(collection="home")[0].id
    questions: list[dict[str, Any]] = [
        {},
        {"mode": "vector"},
        {"like": one},
        {"query": "", "type": "note"},
    ]
    questions += [{"query": '"pump number"'}, {"why": one, "explain": True}, {"deep": True}]
    for options in questions:
        for decrypt, readable in ((NOTHING, 0), (scope(filled, "work"), 4)):
            before = filled.decrypted
            found = ask(filled, visible, decrypt, **{"query": "pump number", **options})
            opened = {name: count - before[name] for name, count in filled.decrypted.items()}
            assert set(opened.values()) == {found.opened} == {readable}, options
            assert len(found.rows) > readable
            assert all(row.type == "note" and row.created for row in found.rows)


def test_a_view_that_may_not_read_has_no_key_to_open_a_memory(filled: MemoryStore) -> None:
    one = filled.add("pump of a ref", collection="home", ref="ledger.md").id
    (row,) = filled.texts([head.content for head in filled.heads([one]).values()]).items()
    before = filled.decrypted
    view = filled.limited_to(EVERYTHING, readable=scope(filled, "work"))
    found = view.get(one)
    assert isinstance(found, SealedMemory)
    assert (found.id, found.type, found.title, found.text, found.ref) == (one, "note", "", "", None)
    assert view.heads([one]) == view.texts([row[0]]) == {}
    assert filled.decrypted == before
    with pytest.raises(NotFoundError):
        view.find_id("ledger.md")
    with pytest.raises(KeyError):  # nor would blanks be written over what it cannot read
        view.edit(one, title="other")
    assert filled.get(one).text == "pump of a ref"
    listed = {memory.id: isinstance(memory, SealedMemory) for memory in view.list()}
    assert sorted(listed.values()) == [False] * 4 + [True] * 9


def test_the_hidden_collection_is_in_no_answer_of_any_kind(filled: MemoryStore) -> None:
    visible = scope(filled, "work", "home")
    for decrypt in (visible, scope(filled, "work"), NOTHING, EVERYTHING):
        found = ask(filled, visible, decrypt, explain=True)
        assert (found.total, len(found.rows)) == (8, 8)
        assert "diary" not in str(found.as_dict())


def test_a_published_copy_is_not_hidden_by_its_sealed_original(filled: MemoryStore) -> None:
    originals = filled.list(collection="home")
    copies = {filled.publish(one.id, "work").id for one in originals}
    for options in ({}, {"mode": "keyword"}, {"mode": "vector"}, {"topic": "only-home"}):
        found = ask(filled, scope(filled, "work", "home"), scope(filled, "work"), **options)
        assert copies <= {row.id for row in found.rows if row.title}, options
        assert {one.id for one in originals} == {row.id for row in found.rows if not row.title}


def test_narrowed_to_what_may_be_read_a_search_is_a_readers(filled: MemoryStore) -> None:
    search, decrypt = scope(filled, "work", "home"), scope(filled, "work")
    for options in ({"collection": "work"}, {"query": "pump in:work"}):
        found = ask(filled, search, decrypt, **{"query": "pump", **options})
        assert collections(found) == {"work"}
        assert found.facets["topic"] == {"only-work": 4, "pumps": 4}
    patterns = ask(filled, search, decrypt, "/number [0-9]+/", mode="literal", collection="work")
    assert len(patterns.rows) == 4


@pytest.mark.parametrize("options", [{"mode": "literal"}, {"meta": {"a": "b"}}, {"budget": 100}])
def test_what_only_text_answers_is_refused_with_where_it_could_be_asked(
    filled: MemoryStore, options: dict[str, Any]
) -> None:
    search = scope(filled, "work", "home")
    with pytest.raises(NotPermittedError, match="collection 'work' alone"):
        ask(filled, search, scope(filled, "work"), **options)
    with pytest.raises(NotPermittedError, match=r"hybrid-decrypt$"):
        ask(filled, search, NOTHING, **options)


def test_a_name_is_known_to_those_alone_who_may_read_it(filled: MemoryStore) -> None:
    search, decrypt = scope(filled, "work", "home"), scope(filled, "work")
    refusals = []
    for name in ("home", "diary", "nowhere"):
        with pytest.raises(BadInputError) as refusal:
            ask(filled, search, decrypt, collection=name)
        refusals.append(str(refusal.value).replace(name, "NAME"))
    assert len(set(refusals)) == 1
    (home,) = scope(filled, "home").collections or ()
    by_id = ask(filled, search, decrypt, collection=home)
    assert (len(by_id.rows), collections(by_id)) == (4, {""})


def test_facets_name_what_may_be_read_and_count_no_more(filled: MemoryStore) -> None:
    found = ask(filled, scope(filled, "work", "home"), scope(filled, "work"))
    assert found.facets["collection"] == {"work": 4}
    assert found.facets["topic"] == {"only-work": 4, "pumps": 4}
    assert found.facets["type"] == {"note": 8}
    assert ask(filled, EVERYTHING, NOTHING).facets["collection"] == {}


def test_pages_go_on_through_whole_and_sealed_rows(filled: MemoryStore) -> None:
    search, decrypt = scope(filled, "work", "home"), scope(filled, "work")
    whole = [row.id for row in ask(filled, search, decrypt).rows]
    first = ask(filled, search, decrypt, limit=5)
    second = ask(filled, search, decrypt, limit=5, continue_=first.next)
    assert [row.id for row in (*first.rows, *second.rows)] == whole
    with pytest.raises(BadInputError, match="continue"):
        ask(filled, scope(filled, "work"), decrypt, limit=5, continue_=first.next)


def test_like_and_why_know_no_hidden_memory(filled: MemoryStore) -> None:
    visible = scope(filled, "work", "home")
    hidden = filled.list(collection="diary")[0].id
    missing = "00000000-0000-4000-8000-000000000000"
    for decrypt in (visible, scope(filled, "work"), NOTHING):
        reported = [ask(filled, visible, decrypt, why=one).why for one in (hidden, missing)]
        assert reported[0] is not None
        assert reported[1] is not None
        assert replace(reported[0], id="") == replace(reported[1], id="")
        refusals = []
        for one in (hidden, missing):
            with pytest.raises(BadInputError) as refusal:
                ask(filled, visible, decrypt, like=one)
            refusals.append(str(refusal.value).replace(one, ""))
        assert refusals[0] == refusals[1]


def test_without_any_scope_nothing_may_be_asked(filled: MemoryStore) -> None:
    with pytest.raises(NotPermittedError, match="hybrid-search"):
        ask(filled, NOTHING, EVERYTHING)
