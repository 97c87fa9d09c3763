"""After the reranker: the stated numbers, in the stated order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memory_store.records import Memory
from memory_store.search.adjustments import adjust
from memory_store.search.candidates import Candidate, Scored
from memory_store.search.recipes import DEFAULT, GNO, GNOSIS, Recipe
from memory_store.search.reranking.cross_encoder import in_fusion_order, sigmoid, synthetic_score


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


def test_a_done_preference_is_boosted_to_one_before_it_is_penalised() -> None:
    assert adjusted("preference_done", 0.95) == pytest.approx(0.7)


def test_the_keyword_floor_comes_after_the_demotions() -> None:
    assert adjusted("task_done", 0.01, literal_share=lambda memory: 1.0) == pytest.approx(0.30)


def test_scores_without_calibration_know_no_absolute_floor() -> None:
    assert adjusted("fact", 0.0, calibrated=False) == 0.0


def test_scores_no_one_verified_end_at_the_cap() -> None:
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


@pytest.mark.parametrize("share", [0.0, 0.1, 0.4, 0.9, 1.0])
@pytest.mark.parametrize("cosine", [None, -1.0, 0.0, 0.5, 1.0])
def test_synthetic_scores_stay_within_their_range(share: float, cosine: float | None) -> None:
    assert 0.40 <= synthetic_score(share, cosine) <= 0.70


def test_cosine_modulates_only_what_was_found_by_vector() -> None:
    assert synthetic_score(0.8, 0.9) > synthetic_score(0.8, 0.1)
    assert synthetic_score(0.8, None) == 0.40 + 0.30 * sigmoid(0.8)


def test_without_a_reranker_fusion_s_order_stands_and_scores_are_capped() -> None:
    pool = [candidate(n, share=1 - n / 10) for n in range(10)]
    results = in_fusion_order(pool, GNOSIS)
    assert [result.candidate.ordinal for result in results] == list(range(10))
    assert all(0.40 <= result.score <= 0.70 for result in results)


def test_without_a_reranker_a_learned_score_is_the_probability_as_it_is() -> None:
    pool = [candidate(n, share=1 - n / 10) for n in range(10)]
    assert [one.score for one in in_fusion_order(pool, DEFAULT)] == [one.share for one in pool]


def test_without_a_reranker_what_is_done_still_sinks_below_what_is_not() -> None:
    pool = [candidate(0, "task_done", 0.85), candidate(1, "task", 0.8), candidate(2, "fact", 0.3)]
    order = [result.candidate.ordinal for result in in_fusion_order(pool, DEFAULT)]
    assert order == [1, 0, 2]
