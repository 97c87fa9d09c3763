"""Rare filters among 10,000 memories: every mode finds all that they leave, whatever the index.

The index entries are made up, so that ten thousand take a second; keys, hashes and the search are
real.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from memory_store.dates import parse_moment
from memory_store.index.numpy_vectors import NumpyVectors
from memory_store.index.segment import IndexEntry, TermCounts, build
from memory_store.index.snapshot import Snapshot
from memory_store.index.vec0_vectors import Vec0Vectors
from memory_store.records import Memory, SearchRequest, SearchResponse
from memory_store.search.context import SearchContext
from memory_store.search.pipeline import run
from memory_store.sqlite import ExtensionUnavailable
from memory_store.store import MemoryStore

SIZE = 10_000
RARE = 12
HALF_RARE = 90  # carry the filter "half": rare metadata are looked for among them
DIMENSIONS = 64  # the tiny model's

FILTERS: dict[str, dict[str, Any]] = {
    "collection": {"collection": ("small",)},
    "type": {"type": ("decision",)},
    "topic": {"topic": ("rare",)},
    "status": {"status": "done"},
    "since": {"since": "2030-01-01"},
    "until": {"until": "2001-12-31"},
}


@dataclass(frozen=True)
class Made:
    """A memory of the made-up vault, and which filters let it through."""

    memory: Memory
    marks: frozenset[str]


def made(chance: random.Random, collection: str, marks: frozenset[str]) -> Made:
    """A memory about the harbour that exactly the filters of ``marks`` let through."""
    year = 2030 if "since" in marks else 2001 if "until" in marks else 2020
    moment = f"{year}-06-{chance.randrange(1, 29):02}T00:00:00Z"
    kind = "decision" if "type" in marks else "note"
    number = chance.getrandbits(64)
    return Made(
        Memory(
            id=str(uuid.UUID(int=chance.getrandbits(128))),
            collection=collection,
            type=f"{kind}_done" if "status" in marks else kind,
            title=f"Harbour {number}",
            text=f"harbour {number} by the {'old mill' if 'phrase' in marks else 'sea'}",
            topics=tuple(
                {"topic": "rare", "half": "half"}[m] for m in ("topic", "half") if m in marks
            ),
            created=moment,
            updated=moment,
            metadata={"bed": "long"} if "meta" in marks else {},
        ),
        marks,
    )


def all_made(ids: dict[str, str]) -> list[Made]:
    """Twelve for each filter and some for several, at random places among ten thousand."""
    chance = random.Random(20)
    kinds = ["type", "topic", "status", "since", "until", "phrase", "meta"]
    marks = [frozenset({kind}) for kind in kinds for _ in range(RARE - 6)]
    marks += [frozenset(pair) for pair in combinations(kinds, 2) if {"since", "until"} - {*pair}]
    marks += [frozenset({"half", "meta"})] * RARE + [frozenset({"half"})] * (HALF_RARE - RARE)
    counts = {kind: sum(kind in one for one in marks) for kind in kinds}
    marks += [frozenset({kind}) for kind in kinds for _ in range(RARE - counts[kind])]
    marks += [frozenset()] * (SIZE - RARE - len(marks))
    chance.shuffle(marks)
    small = [made(chance, ids["small"], frozenset({"collection"})) for _ in range(RARE)]
    return [made(chance, ids["large"], one) for one in marks] + small


@pytest.fixture(scope="module")
def vault(module_store: MemoryStore) -> MemoryStore:
    """A real vault with two collections, to borrow keys and model from."""
    for name in ("large", "small"):
        module_store.add("harbour", collection=name)
    return module_store


@pytest.fixture(scope="module")
def memories(vault: MemoryStore) -> list[Made]:
    return all_made({info.name: info.id for info in vault.collections.list()})


@pytest.fixture(scope="module")
def snapshot(vault: MemoryStore, memories: list[Made]) -> Snapshot:
    """The index of those memories, in four segments."""
    context = vault.search_context()
    vectors = np.random.default_rng(7).normal(size=(SIZE, DIMENSIONS)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    parts = []
    for start, end in ((0, 3_000), (3_000, 8_000), (8_000, SIZE - RARE), (SIZE - RARE, SIZE)):
        chosen = zip(memories[start:end], vectors[start:end], strict=True)
        entries = [index_entry(one.memory, vector, context) for one, vector in chosen]
        collection = entries[0].collection
        parts.append((build(entries, DIMENSIONS), np.ones(end - start, dtype=bool), collection))
    return Snapshot(parts)


def index_entry(memory: Memory, vector: Any, context: SearchContext) -> IndexEntry:
    blinder = context.blinder(memory.collection)
    words = ["harbour", "old", "mill"] if "mill" in memory.text else ["harbour", "sea"]
    terms = np.array([blinder.term("en", word) for word in words], np.uint64)
    created = parse_moment(memory.created, 0.0)
    return IndexEntry(
        memory_id=memory.id,
        version=1,
        collection=memory.collection,
        type=memory.type,
        language="en",
        created=created,
        updated=created,
        content_tag=uuid.UUID(memory.id).bytes,
        topics=tuple(map(blinder.topic, memory.topics)),
        title_terms=TermCounts.of(terms[:0]),
        body_terms=TermCounts.of(terms),
        length=len(words),
        pairs=np.unique(blinder.pairs(terms)),
        windows=((0, len(memory.text)),),
        vectors=vector[None, :],
    )


def vec0(snapshot: Snapshot) -> Any:
    try:
        return Vec0Vectors(snapshot)
    except ExtensionUnavailable as error:
        pytest.skip(str(error))


INDEXES: dict[str, Callable[[Snapshot], Any]] = {
    "vec0": vec0,
    "exact": NumpyVectors,
    "sign bits": lambda snapshot: NumpyVectors(snapshot, exact_up_to=0),
}


@pytest.fixture(scope="module", params=INDEXES)
def context(
    request: pytest.FixtureRequest, vault: MemoryStore, memories: list[Made], snapshot: Snapshot
) -> SearchContext:
    """A search over the made-up vault, with each index in turn."""

    def open_memories(ordinals: Sequence[int]) -> list[Memory]:
        return [memories[ordinal].memory for ordinal in ordinals]

    return replace(
        vault.search_context(),
        snapshot=snapshot,
        vector_index=INDEXES[request.param](snapshot),
        open_memories=open_memories,
    )


def search(context: SearchContext, query: str, **options: Any) -> SearchResponse:
    return run(context, SearchRequest(query, **{"limit": 32, "rerank": False, **options}))


def wanted(memories: list[Made], *marks: str) -> set[str]:
    return {one.memory.id for one in memories if one.marks >= set(marks)}


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_a_filter_that_leaves_twelve_of_ten_thousand_gives_all_twelve(
    context: SearchContext, memories: list[Made], mode: str
) -> None:
    for name, options in FILTERS.items():
        expected = wanted(memories, name)
        assert len(expected) == RARE
        response = search(context, "harbour", mode=mode, **options)
        assert {row.id for row in response.rows} == expected, name
        assert response.next is None, name
        assert response.opened == RARE, name


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_pairs_of_filters_leave_what_both_let_through(
    context: SearchContext, memories: list[Made], mode: str
) -> None:
    found = 0
    for first, second in combinations(FILTERS, 2):
        if (first, second) == ("since", "until"):
            continue  # nothing is between these
        response = search(context, "harbour", mode=mode, **FILTERS[first], **FILTERS[second])
        ids = {row.id for row in response.rows}
        assert ids == wanted(memories, first, second), (first, second)
        found += len(ids)
    assert found > 5


def test_filters_alone_and_patterns_find_all_twelve_too(
    context: SearchContext, memories: list[Made]
) -> None:
    for name, options in FILTERS.items():
        if name != "status":  # no prefix says it
            listed = search(context, "topic:rare" if name == "topic" else "in:small", **options)
            both = wanted(memories, name, "topic" if name == "topic" else "collection")
            assert {row.id for row in listed.rows} == both, name
        pattern = search(context, r"harbour \d+", mode="literal", **options)
        assert {row.id for row in pattern.rows} == wanted(memories, name), name


def test_a_rare_phrase_is_found_whatever_the_rank_of_its_words(
    context: SearchContext, memories: list[Made]
) -> None:
    for mode in ("hybrid", "keyword", "vector"):
        response = search(context, 'harbour "old mill"', mode=mode)
        assert {row.id for row in response.rows} == wanted(memories, "phrase"), mode
        assert not any("phrases" in line for line in response.degraded)


class TestMetadata:
    def test_rare_metadata_below_the_pool_are_found(
        self, context: SearchContext, memories: list[Made]
    ) -> None:
        for mode in ("hybrid", "keyword", "vector"):
            response = search(
                context, "harbour", mode=mode, topic=("half",), meta=(("bed", "long"),)
            )
            assert {row.id for row in response.rows} == wanted(memories, "half", "meta"), mode
            assert response.opened == HALF_RARE > 64
            assert not any("metadata" in line for line in response.degraded), mode
            assert response.next is None

    def test_a_bound_ends_the_search_and_it_is_said(
        self, context: SearchContext, memories: list[Made]
    ) -> None:
        response = search(context, "harbour", meta=(("bed", "long"),))
        assert {row.id for row in response.rows} <= wanted(memories, "meta")
        assert response.opened == 256
        assert any("best 256" in line and "9,744 more" in line for line in response.degraded)
        deep = search(context, "harbour sea", meta=(("bed", "long"),), deep=True)
        assert deep.opened == 1_000
        assert any("best 1,000" in line and "9,000 more" in line for line in deep.degraded)

    def test_nothing_is_said_while_results_are_still_to_come(
        self, context: SearchContext, memories: list[Made]
    ) -> None:
        found, token = set(), None
        while True:
            page = search(
                context,
                "harbour",
                topic=("half",),
                meta=(("bed", "long"),),
                limit=5,
                continue_=token,
            )
            found |= {row.id for row in page.rows}
            assert not any("metadata" in line for line in page.degraded)
            token = page.next
            if token is None:
                break
        assert found == wanted(memories, "half", "meta")

    def test_a_list_is_looked_through_to_its_end_page_by_page(
        self, context: SearchContext, memories: list[Made]
    ) -> None:
        found, token, pages = set(), None, 0
        while True:
            page = search(
                context, "in:large", meta=(("bed", "long"),), type=("note",), continue_=token
            )
            found |= {row.id for row in page.rows}
            assert page.opened <= 256
            halted = any("the list goes on" in line for line in page.degraded)
            assert halted is (page.opened == 256 and len(page.rows) < 32)
            token, pages = page.next, pages + 1
            if token is None or pages > 60:
                break
        assert (token, found) == (None, wanted(memories, "meta") - wanted(memories, "type"))


def test_facets_count_the_whole_result_and_open_nothing_for_it(
    context: SearchContext, memories: list[Made]
) -> None:
    response = search(context, "harbour", topic=("half",), limit=3)
    assert response.opened == 3
    assert response.facets["topic"] == {"half": 64}  # the pool
    assert response.facets["type"] == {"note": 64}
    assert response.facets["collection"] == {"large": 64}
    listed = search(context, "in:large topic:half", limit=3)
    assert listed.facets["topic"] == {"half": HALF_RARE}
    everything = search(context, "until:2999 in:large", limit=3)
    assert everything.facets["status"] == {"open": SIZE - 2 * RARE, "done": RARE}
    assert everything.facets["type"]["decision"] == RARE
