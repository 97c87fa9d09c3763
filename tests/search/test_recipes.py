"""Every number that a seed document states, asserted where the stages read it."""

from __future__ import annotations

import pytest

from memory_store.records import DEFAULT_LIMIT, LIMIT_DEEP, LIMIT_STANDARD, BadInputError
from memory_store.search import adjustments, previews, reranking
from memory_store.search.planning import DEEP_KEYWORDS
from memory_store.search.recipes import DEFAULT, GNO, GNOSIS, PRX, QMD, RECIPES, recipe_named


@pytest.mark.parametrize(
    ("what", "stated", "built"),
    [
        ("standard limit", 32, LIMIT_STANDARD),
        ("deep limit", 100, LIMIT_DEEP),
        ("deep keywords", 2, DEEP_KEYWORDS),
        ("standard pool", 64, GNOSIS.pool.of(32, deep=False)),
        ("deep pool", 256, GNOSIS.pool.of(100, deep=True)),
        ("vector candidates", 64, GNOSIS.leg_depth("vector", 32, deep=False)),
        ("deep vector candidates", 256, GNOSIS.leg_depth("vector", 100, deep=True)),
        ("topic candidates, 75 %", 48, GNOSIS.leg_depth("topic", 32, deep=False)),
        ("deep topic candidates, 75 %", 192, GNOSIS.leg_depth("topic", 100, deep=True)),
        ("over-fetch", 2, GNOSIS.over_fetch),
        ("RRF k", 60, GNOSIS.rrf_k),
        ("preference in RRF", 1.3, GNOSIS.fusion_boosts["preference"]),
        ("summary in RRF", 1.4, GNOSIS.fusion_boosts["summary"]),
        ("preference after rerank", 1.25, GNOSIS.rerank_boosts["preference"]),
        ("summary after rerank", 1.3, GNOSIS.rerank_boosts["summary"]),
        ("result demotion", 0.6, GNOSIS.demotions["result"]),
        ("done penalty", 0.7, GNOSIS.done_penalty),
        ("keyword floor", 0.30, GNOSIS.keyword_floor),
        ("score floor", 0.03, GNOSIS.score_floor),
        ("skip below", 5, GNOSIS.skip_below),
        ("sigmoid centre", 0.4, reranking.SIGMOID_CENTRE),
        ("synthetic low", 0.40, reranking.SYNTHETIC_LOW),
        ("synthetic high", 0.70, reranking.SYNTHETIC_HIGH),
        ("cap without reranker", 0.70, GNOSIS.unverified_cap),
        ("expanded, standard", 3, previews.EXPAND_STANDARD),
        ("expanded, deep", 5, previews.EXPAND_DEEP),
        ("expansion score", 0.80, previews.EXPAND_SCORE),
        ("expansion characters", 2_048, previews.EXPAND_CHARACTERS),
        ("excellent", 0.30, adjustments.BAND_EXCELLENT),
        ("good", 0.20, adjustments.BAND_GOOD),
    ],
)
def test_gnosis_says(what: str, stated: float, built: float) -> None:
    assert built == stated, what


@pytest.mark.parametrize(
    ("what", "stated", "built"),
    [
        ("RRF k", 60, GNO.rrf_k),
        ("BM25, limit × 2", 20, GNO.leg_depth("keyword", 10, deep=False)),
        ("vector, limit × 2", 20, GNO.leg_depth("vector", 10, deep=False)),
        ("original counted twice", 2.0, GNO.original_weight),
        ("variants", 0.5, GNO.variant_weight),
        ("HyDE", 0.7, GNO.hyde_weight),
        ("reranked", 20, GNO.rerank_depth.of(10, deep=False)),
        ("whole documents", "document", GNO.rerank_text),
        ("scores per query", True, GNO.normalise),
    ],
)
def test_gno_says(what: str, stated: object, built: object) -> None:
    assert built == stated, what


@pytest.mark.parametrize(
    ("what", "stated", "built"),
    [
        ("per list", 20, QMD.leg_depth("keyword", 10, deep=False)),
        ("first two lists", 2.0, QMD.original_weight),
        ("first place", 0.05, QMD.first_bonus),
        ("second and third", 0.02, QMD.podium_bonus),
        ("reranked", 30, QMD.pool.of(10, deep=False)),
        ("chunk by keywords", "substring", QMD.chunk_choice),
        ("strong score", 0.85, QMD.strong_score),
        ("strong gap", 0.15, QMD.strong_gap),
    ],
)
def test_qmd_says(what: str, stated: object, built: object) -> None:
    assert built == stated, what


@pytest.mark.parametrize(
    ("what", "stated", "built"),
    [
        ("k1", 1.5, PRX.k1),
        ("b", 0.75, PRX.b),
        ("top_k × 5", 50, PRX.leg_depth("vector", 10, deep=False)),
        ("alpha, symbols", 0.3, PRX.symbol_alpha),
        ("alpha, language", 0.5, PRX.text_alpha),
    ],
)
def test_prx_says(what: str, stated: object, built: object) -> None:
    assert built == stated, what


@pytest.mark.parametrize(
    ("fusion", "rerank", "rank", "result"),
    [
        (1 / 2, 0.30, 2, 0.45),  # QMD's first example
        (1 / 15, 0.85, 15, 0.537),  # and its second
        (1.0, 0.0, 3, 0.75),
        (1.0, 0.0, 4, 0.60),
        (1.0, 0.0, 10, 0.60),
        (1.0, 0.0, 11, 0.40),
    ],
)
def test_position_aware_blending(fusion: float, rerank: float, rank: int, result: float) -> None:
    assert round(reranking.blended(fusion, rerank, rank), 3) == result


def test_every_recipe_goes_by_its_name() -> None:
    assert set(RECIPES) == {"default", "gnosis", "gno", "qmd", "prx"}
    assert all(recipe_named(name).name == name for name in RECIPES)
    assert set(DEFAULT.legs) == {"keyword", "topic", "vector"}
    assert DEFAULT_LIMIT <= LIMIT_STANDARD


def test_an_unknown_recipe_is_refused_with_what_there_is() -> None:
    with pytest.raises(BadInputError, match="gnosis") as refusal:
        recipe_named("google")
    assert refusal.value.parameter == "recipe"
