"""Fusion goes by rank alone, and the published examples come out to the digit."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_store.records import MemoryDraft
from memory_store.search.candidates import LegList
from memory_store.search.fusion.leg_weights import LegEvidence, agreement, leg_factors
from memory_store.search.fusion.rank_fusion import best_possible, fuse, rrf
from memory_store.search.recipes import DEFAULT, GNO, GNOSIS, QMD, Recipe
from memory_store.store import MemoryStore

_LISTS = st.lists(st.lists(st.integers(0, 30), unique=True, max_size=20), max_size=4)


def leg_weights(recipe: Recipe, evidence: LegEvidence) -> dict[str, float]:
    """How much each leg counts."""
    factors = leg_factors(recipe, evidence)
    return {leg: math.prod(named.values()) for leg, named in factors.items()}


def test_the_rank_offset_moves_every_place() -> None:
    assert rrf([["a"]], k=60, rank_offset=1)["a"] == 1 / 61
    assert rrf([["a"]], k=60, rank_offset=2)["a"] == 1 / 62


def test_a_match_s_own_strength_multiplies_what_its_place_gives() -> None:
    scores = rrf([["a", "b"], ["b"]], strengths=[[0.5, 1.0], []])
    assert scores["a"] == 0.5 / 61
    assert scores["b"] == 1 / 62 + 1 / 61


@given(_LISTS)
def test_full_strengths_change_nothing(lists: list[list[int]]) -> None:
    assert rrf(lists, strengths=[[1.0] * len(ranked) for ranked in lists]) == rrf(lists)


@given(_LISTS, st.randoms(use_true_random=False))
def test_the_order_of_the_lists_does_not_matter(lists: list[list[int]], random: object) -> None:
    shuffled = lists[:]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second = rrf(lists), rrf(shuffled)
    assert first.keys() == second.keys()
    assert all(first[item] == pytest.approx(second[item]) for item in first)


@given(_LISTS, st.permutations(range(31)))
def test_names_do_not_matter(lists: list[list[int]], names: list[int]) -> None:
    renamed = rrf([[names[item] for item in ranked] for ranked in lists])
    assert renamed == {names[item]: score for item, score in rrf(lists).items()}


@given(_LISTS)
def test_another_list_never_lowers_a_score(lists: list[list[int]]) -> None:
    before, after = rrf(lists), rrf([*lists, [0, 1, 2]])
    assert all(after[item] >= score for item, score in before.items())


@given(st.lists(st.integers(0, 30), unique=True, min_size=1))
def test_one_list_keeps_its_order(ranked: list[int]) -> None:
    scores = rrf([ranked])
    assert sorted(scores, key=lambda item: -scores[item]) == ranked


def test_an_item_twice_in_a_list_counts_once() -> None:
    assert rrf([["a", "b", "a"]])["a"] == 1 / 61


def _fused(types: dict[int, str], recipe=GNOSIS):  # type: ignore[no-untyped-def]
    lists = [LegList("vector", tuple(types)), LegList("topic", ())]
    return fuse(lists, recipe, types=types, tie_break=lambda _: {n: (n,) for n in types})


def test_boosts_go_by_type_and_equal_scores_by_id() -> None:
    lists = [LegList("vector", (7,)), LegList("topic", (3,))]
    tied = fuse(lists, GNOSIS, types={7: "note", 3: "note"}, tie_break=lambda _: {7: (2,), 3: (1,)})
    assert [item.ordinal for item in tied] == [3, 7]


def test_shares_are_of_the_best_possible_sum() -> None:
    lists = [LegList("keyword", (1, 2), weight=2.0), LegList("vector", (1,), weight=1.0)]
    assert best_possible(lists, DEFAULT) == pytest.approx(3 / (DEFAULT.rrf_k + 1))
    top, second = fuse(
        lists, DEFAULT, types={1: "note", 2: "note"}, tie_break=lambda _: {1: (1,), 2: (2,)}
    )
    assert top.share == pytest.approx(1.0)
    assert 0 < second.share < top.share


def test_a_model_that_does_not_know_the_language_counts_less() -> None:
    english = frozenset({"en"})
    at_home = leg_weights(DEFAULT, LegEvidence("en", english))
    abroad = leg_weights(DEFAULT, LegEvidence("de", english))
    anywhere = leg_weights(DEFAULT, LegEvidence("de", frozenset()))
    assert abroad["vector"] < at_home["vector"] == anywhere["vector"]
    assert abroad["keyword"] == at_home["keyword"]


def test_recipes_named_after_other_systems_ignore_language() -> None:
    for recipe in (GNOSIS, GNO, QMD):
        at_home = leg_weights(recipe, LegEvidence("en", frozenset({"en"}), 0.0))
        abroad = leg_weights(recipe, LegEvidence("de", frozenset({"en"}), 0.0))
        assert at_home == abroad


def test_agreement_is_what_two_heads_share() -> None:
    assert agreement(range(10), range(10)) == 1.0
    assert agreement(range(10), range(5, 15)) == 0.5
    assert agreement([1, 2], range(10)) == 1.0
    assert agreement([], range(10)) is None


def test_a_preference_that_every_leg_puts_first_stays_first(store: MemoryStore) -> None:
    """Its boosted share was cut at 1 before the boost was taken out again."""
    store.add_many(
        [
            MemoryDraft("Window seats and aisle seats on trains", type="note", ref="second"),
            MemoryDraft("Window seats on night trains please", type="preference", ref="first"),
            *(MemoryDraft(f"Nothing of the kind, number {n}") for n in range(8)),
        ]
    )
    rows = store.search("window seats on night trains please", rerank=False).rows
    assert [row.ref for row in rows[:2]] == ["first", "second"]
    assert rows[0].score == rows[0].fusion_score < 1.0
