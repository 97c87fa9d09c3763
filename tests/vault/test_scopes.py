"""Who may use some collections sees a vault in which there are no others.

Of two vaults one also holds a hidden collection. Whatever is asked of the visible collections, both
give the same answer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from itertools import count, product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_store.errors import (
    BadInputError,
    ConflictError,
    LockedError,
    MemoryStoreError,
    NotFoundError,
)
from memory_store.records import MemoryDraft
from memory_store.scopes import EVERYTHING, NOTHING, Scope
from memory_store.store import MemoryStore
from memory_store.vault.keyring import VAULT_SCOPE

Make = Callable[..., MemoryStore]
Pair = tuple[MemoryStore, MemoryStore]

VISIBLE = ("work", "home")
HIDDEN = "diary"
WORDS = ("pump", "ledger", "garden", "pumps", "water", "invoice", "tomato", "boiler", "friday")
OF_ITS_OWN = {"milliseconds", "cpu_milliseconds", "leg_milliseconds", "next", "database"}
QUERIES = (
    "pump ledger",
    "water garden boiler",
    '"pump ledger"',
    "tomato -water",
    "topic:ledger",
    "in:work friday",
    "type:task",
    "/pum[ps]+/",
    "since:2024-01-10",
)
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"deep": True},
    {"mode": "keyword"},
    {"mode": "vector"},
    {"sealed": True},
    {"collection": "home"},
    {"limit": 2, "budget": 60},
    {"recipe": "qmd"},
    {"topic": "ledger", "status": "open"},
    {"narrow": "collection:work"},
)

text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
placed = st.tuples(st.sampled_from((*VISIBLE, HIDDEN)), text)


def draft(number: int, collection: str, text: str) -> MemoryDraft:
    """A memory whose id begins as all the others' do."""
    return MemoryDraft(
        text,
        id=f"0000000{number % 2}-0000-4000-8000-{number:012}",
        collection=collection,
        type=("note", "task", "task_done")[number % 3],
        topics=tuple(dict.fromkeys(text.split()[:2])),
        created=f"2024-01-{1 + number % 28:02}T10:00:00Z",
        updated="2024-02-01T10:00:00Z",
    )


def visible(store: MemoryStore) -> MemoryStore:
    """The store as a person sees it who may use the visible collections alone."""
    ids = {info.name: info.id for info in store.collections.list()}
    return store.limited_to(Scope.of(ids[name] for name in VISIBLE))


def filled(make: Make, name: str, drafts: Sequence[MemoryDraft], **options: Any) -> MemoryStore:
    """A vault of those memories, each written by itself, and the limited view of it."""
    store: MemoryStore = make(name, **options)
    for collection in VISIBLE:
        store.collections.create(collection)
    for one in drafts:
        store.add_many([one])
    return visible(store)


def reported(store: MemoryStore, value: Any) -> Any:
    """An answer as data, without what differs from one search or vault to the next."""
    if isinstance(value, dict):
        return {k: reported(store, v) for k, v in value.items() if k not in OF_ITS_OWN}
    if isinstance(value, list | tuple):
        return [reported(store, item) for item in value]
    if isinstance(value, str):
        return value.replace(str(store.path), "DB")
    return value


def alike(one: Any, other: Any) -> bool:
    """Whether two answers say the same; scores may differ in the seventh digit."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [*one] == [*other] and all(alike(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, abs_tol=1e-6)
    return bool(one == other)


def answer(store: MemoryStore, query: str, options: dict[str, Any]) -> Any:
    """The whole response to a search with its explanation, or the refusal."""
    about = {"explain": True, "why": "00000001-0000-4000-8000-000000000001"}
    try:
        response = store.search(query, **{**about, **options})
    except MemoryStoreError as error:
        return f"{type(error).__name__}: {error}"
    return reported(store, json.loads(json.dumps(response.as_dict(), default=str)))


numbers = count()


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(placed, min_size=4, max_size=24))
def test_a_search_says_what_it_says_where_the_hidden_collection_never_was(
    make_store: Make, contents: list[tuple[str, str]]
) -> None:
    drafts = [draft(number, *content) for number, content in enumerate(contents)]
    number = next(numbers)
    both = filled(make_store, f"with{number}.db", drafts)
    alone = filled(
        make_store, f"without{number}.db", [one for one in drafts if one.collection != HIDDEN]
    )
    for query in QUERIES:
        for options in OPTIONS:
            found, expected = answer(both, query, options), answer(alone, query, options)
            assert alike(found, expected), (query, options, found, expected)


def test_a_vector_shows_not_that_a_hidden_collection_holds_the_same_text(make_store: Make) -> None:
    """The index takes the vectors it knows of an equal text: as they are, not rounded anew."""
    texts = [" ".join(pair) for pair in product(WORDS, repeat=2)]
    hidden = [(HIDDEN, text) for text in texts]
    shown = [draft(number, "work", text) for number, text in enumerate(texts, 1_000)]
    both = filled(make_store, "with.db", [draft(n, *one) for n, one in enumerate(hidden)] + shown)
    alone = filled(make_store, "without.db", shown)
    for query in QUERIES:
        scores = [
            {row.id: row.vector_score for row in store.search(query, mode="vector", limit=20).rows}
            for store in (both, alone)
        ]
        assert scores[0] == scores[1]


@pytest.fixture(params=["default", "strict"])
def pair(request: pytest.FixtureRequest, make_store: Make) -> Pair:
    """Limited views of a vault with a hidden collection, and of one that never had it."""
    contents = [
        ((*VISIBLE, HIDDEN)[number % 3], " ".join(WORDS[number % 5 : number % 5 + 4]))
        for number in range(30)
    ]
    drafts = [draft(number, *content) for number, content in enumerate(contents)]
    mine = [one for one in drafts if one.collection != HIDDEN]
    return (
        filled(make_store, "with.db", drafts, profile=request.param),
        filled(make_store, "without.db", mine, profile=request.param),
    )


HIDDEN_ID = "00000000-0000-4000-8000-000000000002"
SEEN_ID = "00000000-0000-4000-8000-000000000000"


def tried(store: MemoryStore, call: Callable[[MemoryStore], Any]) -> Any:
    """What a call returns or refuses, without what is random."""
    try:
        return reported(store, call(store))
    except MemoryStoreError as error:
        said = str(error).replace(str(store.path), "DB")
        return f"{type(error).__name__}: {said} {getattr(error, 'parameter', '')}"


def without_sizes(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name != "index_bytes"}


CALLS: tuple[Callable[[MemoryStore], Any], ...] = (
    lambda store: store.get(HIDDEN_ID),
    lambda store: store.get(HIDDEN_ID[:12]),
    lambda store: store.get("00000000"),
    lambda store: store.find_id("00000001"),
    lambda store: store.find_id(HIDDEN_ID, refs=False),
    lambda store: store.list(),
    lambda store: store.list(collection=HIDDEN),
    lambda store: store.list(topic="ledger"),
    lambda store: store.topics(),
    lambda store: store.topics(collection=HIDDEN),
    lambda store: [info.name for info in store.collections.list()],
    lambda store: [*store.collections.names().values()],
    lambda store: [*store.collections.membership().values()],
    lambda store: without_sizes(store.stats()),
    lambda store: store.collections.stale(),
    lambda store: [*store.collections.languages().values()],
    lambda store: store.topic_hash("ledger", HIDDEN),
    lambda store: store.topic_hash("ledger"),
    lambda store: store.references(),
    lambda store: store.heads([HIDDEN_ID]),
    lambda store: store.present([HIDDEN_ID]),
    lambda store: store.rank("pump ledger").results,
    lambda store: store.collections.members(HIDDEN),
    lambda store: store.collections.change_members(HIDDEN, {"eve": "owner"}),
    lambda store: store.collections.rename(HIDDEN, "mine"),
    lambda store: store.edit(HIDDEN_ID, text="changed"),
    lambda store: store.done(HIDDEN_ID),
    lambda store: store.delete(HIDDEN_ID),
    lambda store: store.add("anything"),
    lambda store: store.add("anything", collection=HIDDEN),
    lambda store: store.edit(SEEN_ID, collection=HIDDEN),
    lambda store: store.search("pump", like=HIDDEN_ID),
    lambda store: store.search("pump", collection=HIDDEN),
    lambda store: store.search("pump", narrow=f"collection:{HIDDEN}").rows,
    lambda store: store.collections.set(HIDDEN, analyser="de"),
    lambda store: store.reindex(collection=HIDDEN),
    lambda store: store.model_state(HIDDEN),
)


def test_nothing_else_shows_the_hidden_collection_either(pair: Pair) -> None:
    both, alone = pair
    for number, call in enumerate(CALLS):
        assert alike(tried(both, call), tried(alone, call)), number


def test_the_beginning_of_an_id_is_ambiguous_among_the_visible_alone(store: MemoryStore) -> None:
    store.add("seen", id="aaaaaaaa-0000-4000-8000-000000000001", collection="work")
    store.add("hidden", id="aaaaaaaa-0000-4000-8000-000000000002", collection=HIDDEN)
    with pytest.raises(NotFoundError):
        store.get("aaaaaaaa")
    work = store.limited_to(Scope.of([store.collections.list()[1].id]))
    assert work.get("aaaaaaaa").text == "seen"


def test_what_is_written_in_a_limited_view_is_seen_by_all_that_may_see_it(pair: Pair) -> None:
    both, _ = pair
    added = both.add("a new pump", collection="work")
    assert both.search("new pump").rows[0].id == added.id
    assert both.edit(added.id, text="an old valve", collection="home").collection == "home"
    assert both.search("old valve", collection="home").rows[0].id == added.id
    both.delete(added.id)
    with pytest.raises(NotFoundError):
        both.get(added.id)


def test_a_parent_that_is_hidden_is_named_by_who_wrote_it_and_says_no_more(pair: Pair) -> None:
    told_of = [
        store.add("a result", collection="work", parent=HIDDEN_ID, supersedes=HIDDEN_ID)
        for store in pair
    ]
    shown = [replace(one, id="", created="", updated="") for one in told_of]
    assert shown[0] == shown[1]


def test_an_id_that_is_taken_is_refused_in_the_same_words_a_caller_who_holds_it(pair: Pair) -> None:
    both, _ = pair
    for taken in (HIDDEN_ID, SEEN_ID):
        with pytest.raises(ConflictError, match=f"there is a memory {taken} already"):
            both.add("mine", id=taken, collection="work")


def test_a_collection_may_be_made_under_the_name_of_a_hidden_one(pair: Pair) -> None:
    both, alone = (store.limited_to(EVERYTHING, creating=True) for store in pair)
    for store in (both, alone):
        made = store.collections.create(HIDDEN)
        assert made.memories == 0
        assert [info.name for info in store.collections.list()] == [*VISIBLE, HIDDEN]
        assert store.add("mine", collection=HIDDEN).collection == HIDDEN
        assert store.search("mine", collection=HIDDEN).total == store.stats()["memories"]
        with pytest.raises(BadInputError, match="already"):
            store.collections.create(HIDDEN)


def test_without_the_right_to_make_collections_an_unknown_name_is_refused(pair: Pair) -> None:
    both, _ = pair
    with pytest.raises(BadInputError, match=r"no collection 'new'$") as refusal:
        both.add("mine", collection="new")
    assert refusal.value.parameter == "collection"


def test_without_the_personal_collection_one_has_to_be_named(pair: Pair) -> None:
    both, _ = pair
    with pytest.raises(BadInputError, match="say which") as refusal:
        both.add("mine")
    assert refusal.value.parameter == "collection"


def test_pages_go_on_for_the_same_collections_alone(store: MemoryStore) -> None:
    for number in range(6):
        store.add(f"pump {number}", collection=("work", HIDDEN)[number % 2])
    ids = {info.name: info.id for info in store.collections.list()}
    work, diary = (store.limited_to(Scope.of([ids[name]])) for name in ("work", HIDDEN))
    token = work.search("pump", limit=1).next
    assert token is not None
    assert len(work.search("pump", limit=5, continue_=token).rows) == 2
    for other in (diary, store):
        with pytest.raises(BadInputError, match="continue"):
            other.search("pump", limit=1, continue_=token)


def test_a_limited_view_holds_no_other_keys(pair: Pair) -> None:
    both, _ = pair
    keyring = both._opened.vault.keyring
    names = both.collections.names()
    assert set(keyring.collections) == {VAULT_SCOPE, *names}
    assert not hasattr(keyring, "root")
    vault_keys = keyring.of(VAULT_SCOPE)
    with pytest.raises(KeyError):
        vault_keys.seal("head", vault_keys.place("vault_settings", "sealed", "settings"), b"{}")


def test_a_limited_view_is_locked_with_its_store_and_locks_nothing_itself(
    store: MemoryStore,
) -> None:
    store.add("pump", collection="work")
    with store.limited_to(Scope.of([store.collections.list()[1].id])) as work:
        snapshot = work.search_context().snapshot
        assert work.search("pump").total == 1
    assert not store.locked
    store.lock()
    assert work.locked
    assert not snapshot.id_words.any()
    with pytest.raises(LockedError):
        work.search("pump")


def test_nothing_is_visible_in_no_collection_and_everything_in_all(store: MemoryStore) -> None:
    store.add("pump")
    nothing = store.limited_to(NOTHING)
    assert nothing.search("pump").rows == ()
    assert (nothing.list(), nothing.collections.list(), nothing.topics()) == ([], [], {})
    assert store.limited_to(EVERYTHING) is store
    ids = Scope.of(info.id for info in store.collections.list())
    assert store.limited_to(ids).limited_to(NOTHING).list() == []
    assert store.limited_to(ids).search("pump").total == 1


def test_scopes_meet_join_and_cover_one_another() -> None:
    one, both = Scope.of("a"), Scope.of("ab")
    assert [name in one for name in "ab"] == [True, False]
    assert "b" in EVERYTHING
    assert (one & both, one | both, one & EVERYTHING) == (one, both, one)
    assert one | EVERYTHING == EVERYTHING
    assert [bool(scope) for scope in (NOTHING, one, EVERYTHING)] == [False, True, True]
    assert [both.covers(scope) for scope in (NOTHING, one, EVERYTHING)] == [True, True, False]
    assert [scope.covers(both) for scope in (NOTHING, one, EVERYTHING)] == [False, False, True]
