"""After the reranker: the stated numbers, in the stated order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memory_store.records import Memory
from memory_store.search.adjustments import adjust, band
from memory_store.search.candidates import Candidate, Scored
from memory_store.search.recipes import DEFAULT, GNO, GNOSIS, Recipe
from memory_store.search.reranking.cross_encoder import (
    in_fusion_order,
    sigmoid,
    skips_reranker,
    synthetic_score,
)


def candidate(number: int = 0, type_: str = "fact", share: float = 0.5) -> Candidate:
    return Candidate(number, f"id-{number}", type_, share, number + 1)


def memory(text: str) -> Memory:
    return Memory("id", "personal", "fact", "", text, (), "2024-01-01", "2024-01-01")


def adjusted(
    type_: str,
    score: float,
    recipe: Recipe = GNOSIS,
    literal_share: Callable[[Memory], float] = lambda memory: 0.0,
    **flags: bool,
) -> float | None:
    """The score one memory ends with, ``None`` when it is dropped."""
    start = Scored(candidate(type_=type_), score, memory("text"), rerank_score=score)
    flags = {"calibrated": True, "verified": True, **flags}
    results = adjust([start], recipe, literal_share=literal_share, **flags)
    return results[0].score if results else None


@pytest.mark.parametrize(
    ("type_", "factor"),
    [
        ("fact", 1.0),
        ("preference", 1.25),
        ("summary", 1.3),
        ("result", 0.6),
        ("task_done", 0.7),
        ("result_done", 0.6 * 0.7),
        ("preference_done", 0.875),
    ],
)
@pytest.mark.parametrize("recipe", [GNOSIS, DEFAULT])
def test_each_type_has_its_factor(type_: str, factor: float, recipe: Recipe) -> None:
    assert adjusted(type_, 0.5, recipe) == pytest.approx(0.5 * factor)


@pytest.mark.parametrize("type_", ["preference", "summary"])
def test_boosts_end_at_one(type_: str) -> None:
    assert adjusted(type_, 0.95) == 1.0


def test_a_done_preference_is_boosted_to_one_before_it_is_penalised() -> None:
    assert adjusted("preference_done", 0.95) == pytest.approx(0.7)


@pytest.mark.parametrize(("share", "floor"), [(1.0, 0.30), (0.5, 0.15)])
def test_the_keyword_floor_rises_with_the_share_of_words_found(share: float, floor: float) -> None:
    assert adjusted("fact", 0.008, literal_share=lambda memory: share) == pytest.approx(floor)


def test_the_keyword_floor_is_a_floor_and_not_a_boost() -> None:
    assert adjusted("fact", 0.45, literal_share=lambda memory: 1.0) == 0.45
    assert adjusted("fact", 0.20, literal_share=lambda memory: 0.5) == 0.20


def test_the_keyword_floor_comes_after_the_demotions() -> None:
    assert adjusted("task_done", 0.01, literal_share=lambda memory: 1.0) == pytest.approx(0.30)


def test_below_the_score_floor_nothing_is_returned() -> None:
    assert adjusted("fact", 0.03) == 0.03
    assert adjusted("fact", 0.0299) is None


def test_scores_without_calibration_know_no_absolute_floor() -> None:
    assert adjusted("fact", 0.0, calibrated=False) == 0.0


def test_results_are_sorted_again_after_each_group() -> None:
    facts = [
        Scored(candidate(0), 0.5, memory("")),
        Scored(candidate(1, "summary"), 0.4, memory("")),
    ]
    results = adjust(facts, GNOSIS, literal_share=lambda m: 0.0, calibrated=True, verified=True)
    assert [result.candidate.ordinal for result in results] == [1, 0]
    assert results[0].steps == (("summary boost", pytest.approx(0.52)),)


def test_scores_nobody_verified_end_at_the_cap() -> None:
    assert adjusted("summary", 0.69, verified=False) == 0.70


def test_gno_stretches_its_scores_per_query() -> None:
    scores = [Scored(candidate(n), score, memory("")) for n, score in enumerate((0.9, 0.5, 0.1))]
    results = adjust(scores, GNO, literal_share=lambda m: 0.0, calibrated=True, verified=True)
    assert [result.score for result in results] == pytest.approx([1.0, 0.5, 0.0])


def test_what_no_model_read_does_not_move_the_scores_of_what_one_did() -> None:
    read = [Scored(candidate(n), s, memory(""), rerank_score=s) for n, s in enumerate((0.9, 0.5))]
    unread = [Scored(candidate(n), 0.5 - n / 10, memory("")) for n in (2, 3)]
    for pool in (read, [*read, *unread]):
        results = adjust(pool, GNO, literal_share=lambda m: 0.0, calibrated=True, verified=True)
        assert [result.score for result in results[:2]] == [1.0, 0.0]
        assert all(result.score == 0.0 for result in results[2:])


@pytest.mark.parametrize(
    ("score", "name"), [(0.30, "excellent"), (0.299, "good"), (0.20, "good"), (0.19, "weak")]
)
def test_bands(score: float, name: str) -> None:
    assert band(score, calibrated=True) == name
    assert band(score, calibrated=False) is None


def test_the_sigmoid_is_centred_at_four_tenths() -> None:
    assert sigmoid(0.4) == 0.5
    assert sigmoid(0.2) < 0.5 < sigmoid(0.6)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.4, 0.9, 1.0])
@pytest.mark.parametrize("cosine", [None, -1.0, 0.0, 0.5, 1.0])
def test_synthetic_scores_stay_within_their_range(share: float, cosine: float | None) -> None:
    assert 0.40 <= synthetic_score(share, cosine) <= 0.70


def test_cosine_modulates_only_what_was_found_by_vector() -> None:
    assert synthetic_score(0.8, 0.9) > synthetic_score(0.8, 0.1)
    assert synthetic_score(0.8, None) == 0.40 + 0.30 * sigmoid(0.8)


@pytest.mark.parametrize(
    ("candidates", "deep", "skips"), [(4, False, True), (5, False, False), (4, True, False)]
)
def test_only_a_standard_search_with_fewer_than_five_skips(
    candidates: int, deep: bool, skips: bool
) -> None:
    assert skips_reranker(candidates, GNOSIS, deep) is skips
    assert not skips_reranker(candidates, GNO, deep)


def test_without_a_reranker_fusion_s_order_stands_and_scores_are_capped() -> None:
    results = in_fusion_order([candidate(n, share=1 - n / 10) for n in range(10)], DEFAULT)
    assert [result.candidate.ordinal for result in results] == list(range(10))
    assert all(0.40 <= result.score <= 0.70 for result in results)


def test_without_a_reranker_what_is_done_still_sinks_below_what_is_not() -> None:
    pool = [candidate(0, "task_done", 0.85), candidate(1, "task", 0.8), candidate(2, "fact", 0.3)]
    order = [result.candidate.ordinal for result in in_fusion_order(pool, DEFAULT)]
    assert order == [1, 0, 2]
