"""Where no memory holds a word of the query, the answer says that it is merely near."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memory_store import access
from memory_store.access import Grants
from memory_store.records import MemoryDraft, search_request
from memory_store.scopes import EVERYTHING, Scope
from memory_store.search.recipes import RECIPES
from memory_store.store import MemoryStore

NONSENSE = "xyzzy plugh frobnicate"
NEAREST = "these are the nearest in meaning."
ALONE = f"No memory holds any of these words; {NEAREST}"


def test_rows_for_words_that_no_one_wrote_are_called_the_nearest(notes: MemoryStore) -> None:
    for recipe in RECIPES:
        response = notes.search(NONSENSE, recipe=recipe)
        assert response.rows, recipe
        assert response.nearest == ALONE, recipe
        assert notes.search("frobnicate the sourdough", recipe=recipe).nearest is None, recipe


def test_one_leg_by_itself_says_nothing_of_words(notes: MemoryStore) -> None:
    assert notes.search(NONSENSE, mode="vector").nearest is None
    assert notes.search(NONSENSE, mode="keyword").nearest is None
    assert notes.search(NONSENSE, mode="auto").nearest == ALONE


@pytest.mark.parametrize(
    "queries",
    [
        ("sourdough", "SOURDOUGHS frobnicate"),  # in any inflection
        ("errands", "errands xyzzy"),  # a topic, which no text holds
        ("lex: sourdough\nvec: xyzzy", "vec: xyzzy plugh", "xyzzy\nlex: sourdough"),
        ("topic:house", "-sourdough topic:errands", '"brake pads"'),
    ],
    ids=["words", "topics", "typed", "conditions"],
)
def test_nothing_is_said_where_a_word_is_held_or_none_was_asked_for(
    notes: MemoryStore, queries: tuple[str, ...]
) -> None:
    for query in queries:
        response = notes.search(query)
        assert response.rows, query
        assert response.nearest is None, query


def test_nothing_is_said_where_nothing_is_found(notes: MemoryStore) -> None:
    for query, options in (
        (NONSENSE, {"min_score": 1.0}),
        ('"xyzzy plugh"', {}),
        (NONSENSE, {"since": "2030"}),
        (NONSENSE, {"budget": 1}),
    ):
        response = notes.search(query, **options)
        assert (response.rows, response.nearest) == ((), None)


def test_function_words_do_not_count_and_are_not_called_absent(notes: MemoryStore) -> None:
    assert notes.search("what is the xyzzy in my frobnicate").nearest == (
        f"No memory holds any of these words but function words; {NEAREST}"
    )
    assert notes.search("is it in").nearest is None  # nothing else: then they are looked up
    assert notes.search("vec: xyzzy\nlex: plugh").nearest == ALONE
    assert "but function words" in str(notes.search("vec: xyzzy\nlex: in my plugh").nearest)


def test_function_words_are_those_of_the_query_s_language(
    make_store: Callable[..., MemoryStore],
) -> None:
    store = make_store()
    store.add_many(
        MemoryDraft(text)
        for text in (
            "Die Kartoffeln liegen in vier Reihen, und der Apfelbaum blüht früher als sonst",
            "Der Schornsteinfeger kommt am Montag, und die Leiter steht schon im Hof",
        )
    )
    assert "but function words" in str(store.search("und der Frobnikator?").nearest)
    assert store.search("und der Schornsteinfeger?").nearest is None


def test_with_filters_it_is_said_of_what_they_let_through(notes: MemoryStore) -> None:
    filtered = f"No memory that the filters let through holds any of these words; {NEAREST}"
    for query, options in (
        ("sourdough topic:house", {}),
        ("sourdough", {"topic": "house"}),
        ("sourdough", {"until": "2024-02"}),
        ("sourdough -patience", {}),
        ("sourdough -patience", {"sealed": True}),
    ):
        response = notes.search(query, **options)
        assert (bool(response.rows), response.nearest) == (True, filtered), (query, options)
    assert notes.search("sourdough topic:errands").nearest is None


def test_each_page_says_it(notes: MemoryStore) -> None:
    first = notes.search(NONSENSE, limit=5)
    second = notes.search(NONSENSE, limit=5, continue_=first.next)
    assert first.nearest == second.nearest == ALONE


def test_what_is_like_a_memory_was_not_asked_for_by_words(notes: MemoryStore) -> None:
    some = notes.search("sourdough").rows[0].id
    assert notes.search(NONSENSE, like=some).nearest is None
    assert notes.search("", like=some).nearest is None


def test_the_name_that_code_spells_in_parts_is_held(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store()
    store.collections.create("shop", analyser="code")
    store.add("def getUserById(user_id): ...", collection="shop", type="code")
    assert store.search("getUserById").nearest is None
    assert store.search("user").nearest is None
    assert store.search("putOrderFirst").nearest == ALONE


def test_memories_to_be_indexed_again_may_hold_what_is_not_found(notes: MemoryStore) -> None:
    notes.collections.create("shop")
    notes.add("def getUserById(user_id): ...", collection="shop")
    assert notes.search("frobnicate").nearest == ALONE
    notes.collections.set("shop", analyser="code")
    response = notes.search("frobnicate")
    assert any("Try: memory-store reindex" in line for line in response.degraded)
    assert response.nearest is None
    assert notes.search("frobnicate", collection="personal").nearest


def test_it_is_said_of_a_reranker_s_answer_too(notes: MemoryStore) -> None:
    response = notes.search("vehicle", reranker="maxsim")
    assert response.rows[0].ref == "0"
    assert response.nearest == ALONE


def grants(scope: Scope, *, read: bool) -> Grants:
    return Grants(search=scope, decrypt=scope) if read else Grants(search=scope)


@pytest.mark.parametrize("read", [True, False])
def test_it_is_said_of_what_the_asker_may_search_alone(notes: MemoryStore, read: bool) -> None:
    """What is in other collections changes nothing: neither what is said nor whether it is."""
    notes.collections.create("abroad")
    ids = {one.name: one.id for one in notes.collections.list()}
    own = grants(Scope.of([ids["personal"]]), read=read)

    def asked(query: str) -> str | None:
        return access.search(notes, own, search_request(query)).nearest

    assert asked(NONSENSE) == ALONE
    assert asked("sourdough") is None
    notes.add("xyzzy and plugh", topics=("frobnicate",), collection="abroad")
    assert asked(NONSENSE) == ALONE
    assert (
        access.search(notes, grants(EVERYTHING, read=read), search_request(NONSENSE)).nearest
        is None
    )
    notes.add("plugh")
    assert asked(NONSENSE) is None
