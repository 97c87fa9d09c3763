"""Who may not read gets places, never similarities: those would be a vector, and so a text."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from memory_store import access
from memory_store.access import ALL_GRANTS, Grants
from memory_store.records import search_request
from memory_store.scopes import EVERYTHING, Scope
from memory_store.search.degraded import BY_PLACES
from memory_store.search.recipes import RECIPES
from memory_store.store import MemoryStore

from .conftest import Served

ONE = "00000000-0000-4000-8000-000000000001"
SEARCHER = Grants(search=EVERYTHING)
READER = ALL_GRANTS
SECRET = "Dr Osei said the biopsy was malignant and surgery is in March"
WORDS = [a + b + c for a in "bdmsprtlc" for b in "aeiou" for c in ("n", "rs", "lt", "ch", "gn")]
NEARNESS = {"vector_score", "rerank_score", "best", "last", "coverage", "own_strength"}
"""Names of figures that say how near, not which is nearer."""


@pytest.fixture
def store(make_store: Callable[..., MemoryStore]) -> MemoryStore:
    """A memory that a person is after, among others."""
    store = make_store()
    store.add(SECRET, id=ONE)
    for text in ("The tomatoes want water", "The train leaves at nine", "A bank by the river"):
        store.add(text)
    return store


def questions(count: int) -> Iterator[str]:
    """Queries as an attacker makes them up."""
    chosen = random.Random(1)
    return (" ".join(chosen.sample(WORDS, 6)) for _ in range(count))


def reached(store: MemoryStore, grants: Grants) -> dict[str, float]:
    """How near least squares over each figure of a row come to the secret's vector (cosine)."""
    embedder, rows = store.embedder(), []
    for query in questions(200):
        found = access.search(store, grants, search_request(query, mode="vector")).rows
        row = next((row for row in found if row.id == ONE), None)
        if row is not None:
            rows.append((embedder.embed_query(query).ravel(), row))
    secret = embedder.embed([SECRET]).ravel()
    nearness = {}
    for figure in ("vector_score", "score", "fusion_score", "vector_rank"):
        reported = [(vector, value) for vector, row in rows if (value := getattr(row, figure))]
        if reported:  # 0 is also said of whatever is below it
            asked = np.array([[*vector, 1.0] for vector, _ in reported])
            values = np.array([value for _, value in reported])
            vector = np.linalg.lstsq(asked, values, rcond=0.02)[0][:-1]
            norms = np.linalg.norm(vector) * np.linalg.norm(secret)
            nearness[figure] = abs(float(vector @ secret / norms))
    return nearness


def test_questions_do_not_add_up_to_a_vector(store: MemoryStore) -> None:
    assert reached(store, READER)["vector_score"] > 0.95
    found = reached(store, SEARCHER)
    assert found.keys() == {"score", "fusion_score", "vector_rank"}
    assert max(found.values()) < 0.85  # what orders give away


def figures(data: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in ``data`` with the name it has there."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from figures(value, key)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from figures(value, name)
    else:
        yield name, data


@pytest.mark.parametrize("recipe", sorted(RECIPES))
@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_all_that_a_searcher_gets_follows_from_places(
    make_store: Callable[..., MemoryStore], mode: str, recipe: str
) -> None:
    """Two vaults in which the same stand at the same places, nearer in one than in the other."""

    def reported(database: str, first: str, second: str) -> Any:
        store = make_store(database)
        store.add(first, id=ONE, created="2024-05-06")
        store.add(second, id=f"{ONE[:-1]}2", created="2024-05-06")
        options = {"mode": mode, "recipe": recipe, "explain": True, "limit": 1, "why": ONE}
        response = access.search(store, SEARCHER, search_request("biopsy surgery march", **options))
        clocks = ("milliseconds", "cpu_milliseconds", "leg_milliseconds", "next")
        skipped = {*clocks, "keyword", "vector", "topic"}
        return [one for one in figures(response.as_dict()) if one[0] not in skipped]

    near = reported("near.db", "biopsy surgery march", "biopsy surgery")
    far = reported(
        "far.db", f"{SECRET} biopsy", "biopsy and a train, water, a river, bread and milk"
    )
    assert near == far
    assert not [one for one in near if one[0] in NEARNESS and one[1] is not None]


def test_scores_of_places_fall_and_stay_between_0_and_1(store: MemoryStore) -> None:
    for mode in ("hybrid", "keyword", "vector"):
        response = access.search(store, SEARCHER, search_request("biopsy tomatoes", mode=mode))
        scores = [row.score for row in response.rows]
        assert scores == sorted(scores, reverse=True)
        assert 0 < scores[-1] <= scores[0] <= 1
        assert BY_PLACES in response.degraded
        least = {"mode": mode, "min_score": scores[0] - 1e-5}
        kept = access.search(store, SEARCHER, search_request("biopsy tomatoes", **least)).rows
        assert len(kept) == scores.count(scores[0])
    assert BY_PLACES not in access.search(store, SEARCHER, search_request("", type="note")).degraded
    assert BY_PLACES not in access.search(store, READER, search_request("biopsy")).degraded


def test_a_row_that_may_be_read_shows_its_own_similarity_and_no_others(
    store: MemoryStore,
) -> None:
    own = store.collections.create("own")
    store.add("The biopsy of the tomatoes", collection=own.name)
    mixed = Grants(search=EVERYTHING, decrypt=Scope.of([own.id]))
    for mode in ("hybrid", "vector"):
        rows = access.search(store, mixed, search_request("biopsy", mode=mode)).rows
        blind = access.search(store, SEARCHER, search_request("biopsy", mode=mode)).rows
        assert [(row.id, row.score) for row in rows] == [(row.id, row.score) for row in blind]
        shown = {row.collection: row.vector_score is not None for row in rows}
        assert shown == {"own": True, "": False}


def test_a_strict_vaults_scores_do_not_show_types(make_store: Callable[..., MemoryStore]) -> None:
    scores = []
    for kind in ("note", "summary", "task_done"):
        store = make_store(f"{kind}.db", profile="strict")
        store.add("The biopsy", type=kind)
        scores.append(access.search(store, SEARCHER, search_request("biopsy")).rows[0].score)
    assert len(set(scores)) == 1


async def test_no_surface_shows_a_searcher_how_near(served: Served) -> None:
    alice = served.by("alice")
    seen = [(await alice.get(f".json?q=tomatoes&explain=1&why={ONE}")).json()]
    seen += [(await alice.get(".json?q=tomatoes&mode=vector&_shape=array")).json()]
    sql = "select hybrid_search('tomatoes') a, hybrid_explain('tomatoes') b"
    seen += [json.loads(one) for one in (await alice.sql(sql))[0].values()]
    assert not [one for one in figures(seen) if one[0] in NEARNESS and one[1] is not None]
    compact = (await alice.get(".json?q=tomatoes&_shape=compact")).json()[0][0]
    assert (compact["vector_score"], compact["rerank_score"]) == (None, None)
    assert compact["score"] > 0
    names, first, *_ = (await alice.get(".csv?q=tomatoes")).text.splitlines()
    cells = dict(zip(names.split(","), first.split(","), strict=True))
    assert (cells["vector_score"], cells["rerank_score"]) == ("", "")
    page = (await alice.get(f"?q=tomatoes&explain=1&why={ONE}")).text
    assert BY_PLACES[1:] in page, "as a sentence, with a capital"
