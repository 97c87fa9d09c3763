"""Vector feedback: one more search, from the query towards what the first pass found."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from memory_store.index.numpy_vectors import NumpyVectors
from memory_store.index.vec0_vectors import Vec0Vectors
from memory_store.records import MemoryDraft, SearchRequest, SearchResponse
from memory_store.search import pipeline, recipes
from memory_store.search.fusion.vector_feedback import rocchio
from memory_store.search.recipes import DEFAULT, RECIPES, Recipe
from memory_store.store import MemoryStore


@pytest.fixture
def feeding(monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """A recipe ``feeding``: ours, with feedback from the first three."""
    recipe = replace(DEFAULT, name="feeding", feedback=3)
    known = MappingProxyType({**RECIPES, recipe.name: recipe})
    monkeypatch.setattr(recipes, "RECIPES", known)
    return recipe


def fetched(response: SearchResponse) -> dict[str, Any]:
    return dict(next(report.details for report in response.explain if report.stage == "fetch"))


def kinds(response: SearchResponse) -> list[tuple[str, str]]:
    return [(one["leg"], one["kind"]) for one in fetched(response)["lists"]]


def test_no_recipe_uses_it_unasked(notes: MemoryStore) -> None:
    assert {recipe.feedback for recipe in RECIPES.values()} == {0}
    for name in RECIPES:
        response = notes.search("spare key", recipe=name, explain=True)
        assert "feedback" not in [kind for _, kind in kinds(response)]


def test_its_list_joins_fusion_with_its_own_weight(notes: MemoryStore, feeding: Recipe) -> None:
    response = notes.search("spare key", recipe="feeding", explain=True)
    assert kinds(response)[-1] == ("vector", "feedback")
    assert fetched(response)["feedback_from"] == 3
    adjusted = next(report.details for report in response.explain if report.stage == "adjust")
    results = adjusted["results"]
    parts = {part["kind"]: part for part in results[0]["contributions"] if part["leg"] == "vector"}
    weight = feeding.vector_weight * feeding.feedback_weight
    assert parts["feedback"]["weight"] == pytest.approx(weight)
    assert parts["original"]["weight"] == pytest.approx(feeding.vector_weight)


def test_it_looks_for_what_resembles_the_first_results(store: MemoryStore, feeding: Recipe) -> None:
    store.add_many(
        MemoryDraft(text, ref=ref)
        for ref, text in {
            "1": "zanzibar harbour ferry jetty",
            "2": "zanzibar harbour ferry pier",
            "3": "zanzibar ferry harbour quay",
            "like them": "harbour ferry jetty pier quay",
            **{f"far {n}": f"filler matter number {n} of zinc" for n in range(20)},
        }.items()
    )
    response = store.search("zanzibar", recipe="feeding", limit=32, explain=True)
    adjusted = next(report.details for report in response.explain if report.stage == "adjust")
    ranks = {
        row.ref: {part["kind"]: part for part in account["contributions"]}["feedback"]["rank"]
        for row, account in zip(response.rows, adjusted["results"], strict=True)
    }
    assert sorted(ranks, key=lambda ref: ranks[ref])[3] == "like them"
    context = store.search_context()
    query = store.embedder().embed_query("zanzibar")
    found = {row.ref: context.snapshot.ordinal_of(row.id) or 0 for row in response.rows}
    moved, _ = rocchio(query, [found[ref] for ref in "123"], context.snapshot, beta=0.75)
    likeness = context.snapshot.document_vectors(found["like them"])[0]
    assert likeness @ moved > likeness @ query + 0.2, "by the query alone it was further away"


def test_it_opens_nothing(notes: MemoryStore, feeding: Recipe) -> None:
    options = SearchRequest("spare key", recipe="feeding")
    ranking = pipeline.rank(notes.search_context(), options)
    assert (len(ranking.results) > 3, ranking.opened) == (True, 0)
    sealed = notes.search("spare key", recipe="feeding", sealed=True, limit=4)
    assert sealed.opened == len(sealed.rows) == 4


def test_filters_hold_for_it(notes: MemoryStore, feeding: Recipe) -> None:
    rows = notes.search("spare key topic:house", recipe="feeding", limit=32).rows
    assert rows
    assert {row.topics for row in rows} == {("house",)}


@pytest.mark.parametrize("query", ["topic:house", "lex: spare key"])
def test_without_a_query_to_start_from_there_is_none(
    notes: MemoryStore, feeding: Recipe, query: str
) -> None:
    response = notes.search(query, recipe="feeding", explain=True)
    assert "feedback" not in [kind for _, kind in kinds(response)]
    assert response.rows


def test_a_vault_without_vectors_is_searched_as_ever(store: MemoryStore, feeding: Recipe) -> None:
    store.add_many([MemoryDraft("the spare key")], embed=False)
    assert len(store.search("spare key", recipe="feeding").rows) == 1


@pytest.mark.parametrize("kind", [NumpyVectors, Vec0Vectors])
def test_both_indexes_give_the_same_list(
    notes: MemoryStore, feeding: Recipe, kind: Any, tiny_model: object
) -> None:
    context = notes.search_context()
    index = kind(context.snapshot)
    options = SearchRequest("spare key", recipe="feeding")
    ranked = pipeline.rank(replace(context, vector_index=index), options).results
    usual = pipeline.rank(context, options).results
    assert [id_ for id_, _ in ranked] == [id_ for id_, _ in usual]
    index.wipe()


def test_the_formula(notes: MemoryStore) -> None:
    snapshot = notes.search_context().snapshot
    query = notes.embedder().embed_query("spare key")
    ordinals = [0, 1, 2]
    windows = [snapshot.document_vectors(n) for n in ordinals]
    nearest = [w[int((w @ query).argmax())] for w in windows]
    wanted = query + 0.75 * np.mean(nearest, axis=0)
    moved, used = rocchio(query, ordinals, snapshot, beta=0.75)
    assert used == 3
    assert moved == pytest.approx(wanted / np.linalg.norm(wanted), abs=1e-6)
    assert rocchio(query, ordinals, snapshot, beta=0.0)[0] == pytest.approx(query, abs=1e-6)
    assert rocchio(query, [], snapshot, beta=0.75)[1] == 0
