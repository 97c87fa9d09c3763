"""Calibration: the published curves, fitting one, keeping it, using it from then on."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_store.errors import BadInputError, ModelUnavailableError
from memory_store.models.calibration import (
    CALIBRATIONS,
    Calibration,
    Fitted,
    calibrations_file,
    fit,
    log_loss,
    logit,
    reliability,
    store_fitted,
)
from memory_store.models.reranker import Reranker, load_reranker


@pytest.fixture(autouse=True)
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMORY_STORE_CONFIG", str(tmp_path / "config"))
    return tmp_path / "config"


def raw(value: float) -> float:
    """The raw score of a logit."""
    return 1 / (1 + math.exp(-value))


def judged(seed: int, middle: float, slope: float, n: int = 4000) -> tuple[list[float], list[bool]]:
    """Raw scores of pairs that are relevant as often as a curve says."""
    generator = np.random.default_rng(seed)
    logits = generator.normal(-4, 4, n)
    truth = 1 / (1 + np.exp(-slope * (logits - middle)))
    return [raw(x) for x in logits], list(generator.random(n) < truth)


@pytest.mark.parametrize("name", CALIBRATIONS)
def test_published_examples_fall_into_the_bands_they_deserve(name: str) -> None:
    calibration = CALIBRATIONS[name]
    assert calibration(0.017) >= 0.30  # on topic, best: "excellent"
    assert 0.03 <= calibration(0.0002) < 0.20  # on topic, weakest: kept, "weak"
    assert calibration(raw(-11)) < 0.03  # a random passage: dropped


@given(
    centre=st.floats(-20, 20),
    slope=st.floats(0.01, 200),
    raws=st.lists(st.floats(0, 1), min_size=2),
)
def test_every_curve_keeps_order_and_range(centre: float, slope: float, raws: list[float]) -> None:
    scores = [Calibration(centre, slope)(value) for value in sorted(raws)]
    assert scores == sorted(scores)
    assert all(0 <= score <= 1 for score in scores)


@pytest.mark.parametrize(("centre", "slope"), [(-3.0, 0.55), (0.0, 1.0), (-7.0, 2.0)])
def test_a_fit_finds_the_curve_that_the_judgements_came_from(centre: float, slope: float) -> None:
    found = fit(*judged(1, centre, slope))
    assert found.centre == pytest.approx(centre, abs=0.5)
    assert found.slope == pytest.approx(slope, rel=0.15)


@given(seed=st.integers(0, 50))
def test_no_other_curve_nearby_explains_the_judgements_better(seed: int) -> None:
    scores, relevant = judged(seed, -3, 0.6, n=400)
    best = fit(scores, relevant)
    positives = sum(relevant)
    high, low = (positives + 1) / (positives + 2), 1 / (len(relevant) - positives + 2)

    def loss(curve: Calibration) -> float:
        shares = [min(max(curve(score), 1e-12), 1 - 1e-12) for score in scores]
        targets = [high if fits else low for fits in relevant]
        return -sum(
            t * math.log(p) + (1 - t) * math.log(1 - p)
            for t, p in zip(targets, shares, strict=True)
        )

    for aside, steeper in ((0.05, 1), (-0.05, 1), (0, 1.02), (0, 0.98)):
        assert loss(best) <= loss(Calibration(best.centre + aside, best.slope * steeper))


def test_scores_that_separate_all_pairs_get_a_finite_slope() -> None:
    curve = fit([raw(-9.0)] * 20 + [raw(2.0)] * 10, [False] * 20 + [True] * 10)
    assert 0 < curve.slope < 5
    assert curve(raw(2.0)) > 0.85 > 0.1 > curve(raw(-9.0))


def test_too_few_or_senseless_judgements_are_refused() -> None:
    with pytest.raises(BadInputError, match="too few"):
        fit([raw(1), raw(2), raw(-5)], [True, True, False])
    with pytest.raises(BadInputError, match="no higher"):
        fit([raw(-9.0)] * 10 + [raw(2.0)] * 10, [True] * 10 + [False] * 10)


def test_log_loss_is_of_the_true_answer() -> None:
    assert log_loss([0.5, 0.5], [True, False]) == pytest.approx(math.log(2))
    assert log_loss([0.9], [True]) == pytest.approx(-math.log(0.9))
    assert log_loss([0.0], [True]) < 30  # certain and wrong is bad, not infinite


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=50))
def test_bins_hold_every_pair_once(pairs: list[tuple[float, bool]]) -> None:
    bins = reliability([score for score, _ in pairs], [fits for _, fits in pairs])
    assert sum(one.pairs for one in bins) == len(pairs)
    assert sum(one.pairs * one.relevant for one in bins) == pytest.approx(
        sum(fits for _, fits in pairs)
    )
    assert all(one.low - 1e-9 <= one.score <= one.high + 1e-9 for one in bins)


def fitted(reranker: Reranker, **changes: object) -> Fitted:
    one = Fitted(reranker.name, reranker.fingerprint, -4.0, 0.7, 100, 20, "2024-05-01")
    return replace(one, **changes)


def test_a_model_uses_what_was_fitted_to_it_from_then_on(reranker: Reranker) -> None:
    assert reranker.calibration is None
    store_fitted(fitted(reranker))
    calibration = load_reranker(str(reranker._folder)).calibration  # type: ignore[attr-defined]
    assert calibration is not None
    assert calibration(raw(-4.0)) == pytest.approx(0.5)
    store_fitted(fitted(reranker, centre=-5.0))
    assert reranker.calibration is not None
    assert reranker.calibration(raw(-5.0)) == pytest.approx(0.5)
    assert len(json.loads(calibrations_file().read_text())["calibrations"]) == 1


def test_another_model_of_that_name_is_not_meant_and_the_file_is_private_and_holds_numbers(
    reranker: Reranker,
) -> None:
    path = store_fitted(fitted(reranker, fingerprint="0" * 64))
    assert reranker.calibration is None
    assert path.stat().st_mode & 0o077 == 0
    (row,) = json.loads(path.read_text())["calibrations"]
    assert row.keys() == {
        *("model", "fingerprint", "centre", "slope"),
        *("pairs", "relevant", "fitted"),
    }


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"calibrations": [{"model": "x"}]}', "\x00", '{"calibrations": 3}'],
)
def test_a_damaged_file_is_named_and_the_model_stays_out(
    reranker: Reranker, configuration: Path, content: str
) -> None:
    configuration.mkdir(exist_ok=True)
    (configuration / "calibrations.json").write_text(content)
    with pytest.raises(ModelUnavailableError, match=r"calibrations\.json") as caught:
        load_reranker(str(reranker._folder))  # type: ignore[attr-defined]
    assert caught.value.remedy.startswith("rm ")


def test_a_logit_ends_where_scores_do() -> None:
    assert [logit(one) for one in (0, 0.5, 1)] == pytest.approx([-27.6, 0, 27.6], abs=0.1)
