"""Calibration: what a cross-encoder's raw score is worth, as a score that means the same anywhere.

A model's logit goes through a logistic curve with a centre and a slope of the model's own. Ours
(:data:`CALIBRATIONS`) are presets, read off published examples and fitted to nothing;
``memory-store calibrate`` fits them to judgements and stores them in the configuration folder, by
model name and fingerprint.

Boundary: sees scores and yes or no, never a text. What it stores are a model's name and numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memory_store.errors import BadInputError, ModelUnavailableError
from memory_store.paths import config_folder, replace_file

FILE = "calibrations.json"
FEWEST = 5  # relevant and irrelevant pairs each: below, two numbers mean nothing
NEWTON_STEPS = 50  # convergence takes about ten
CLOSE_ENOUGH = 1e-10
EDGE = 1e-12  # raw scores are kept this far from 0 and 1, where their logit ends
BINS = 10
LARGEST_POWER = 700.0  # exp() of more is no float

Floats = NDArray[np.float64]


class Calibration(Struct, frozen=True):
    """The curve 1 ÷ (1 + exp(−slope · (logit − centre))); rises strictly, as slope is above 0."""

    centre: float
    slope: float

    def __call__(self, raw: float) -> float:
        """A raw score (0–1) as a comparable 0–1."""
        power = -self.slope * (logit(raw) - self.centre)
        return 1.0 / (1.0 + math.exp(min(power, LARGEST_POWER)))


# search.md: FlashRank's own on-topic examples score .017 to .0002 raw (logits -4.1 and -8.5), so
# the middle cannot be at 0, where the models' training left it. These put .017 in the band
# "excellent" (.30 and above), .0002 just above the score floor (.03), and random passages (logits
# of -11) below it.
CALIBRATIONS: Mapping[str, Calibration] = {
    "ms-marco-TinyBERT-L-2-v2": Calibration(-3.0, 0.55),
    "ms-marco-MiniLM-L-12-v2": Calibration(-3.0, 0.55),
}


class Fitted(Struct, frozen=True):
    """A calibration that was fitted, and to what: ``pairs`` of which ``relevant`` fit."""

    model: str
    fingerprint: str
    centre: float
    slope: float
    pairs: int
    relevant: int
    fitted: str


class _Kept(Struct, frozen=True):
    calibrations: tuple[Fitted, ...]


class Bin(Struct, frozen=True):
    """Pairs whose score lies in [low, high): how many, their mean score, the relevant share."""

    low: float
    high: float
    pairs: int
    score: float
    relevant: float


def logit(raw: float) -> float:
    """The log-odds of a raw score, within ±27.6."""
    inside = min(max(raw, EDGE), 1.0 - EDGE)
    return math.log(inside / (1.0 - inside))


def fit(raw: Sequence[float], relevant: Sequence[bool]) -> Calibration:
    """Logistic regression of relevance on the logit, with Platt's smoothed targets.

    Platt, "Probabilistic Outputs for Support Vector Machines" (1999): targets (N₊ + 1) ÷ (N₊ + 2)
    and 1 ÷ (N₋ + 2) keep the slope finite where scores separate all pairs. Raises
    :class:`BadInputError` with too few pairs of a kind, or if higher scores are not relevant.
    """
    labels = np.asarray(relevant, dtype=bool)
    positives, negatives = int(labels.sum()), int((~labels).sum())
    if min(positives, negatives) < FEWEST:
        raise BadInputError(
            f"qrels: {positives} relevant and {negatives} irrelevant pairs are too few, "
            f"at least {FEWEST} of each are needed",
            "qrels",
        )
    logits = np.array([logit(value) for value in raw])
    targets = np.where(labels, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    slope, offset = _newton(logits, targets)
    if slope <= 0:
        raise BadInputError(
            "qrels: the model scores what is relevant no higher than what is not", "qrels"
        )
    return Calibration(-offset / slope, slope)


def _newton(logits: Floats, targets: Floats) -> tuple[float, float]:
    """Slope and offset that minimise the cross-entropy, by Newton steps halved while they hurt."""
    middle, scale = logits.mean(), logits.std() or 1.0
    design = np.stack([(logits - middle) / scale, np.ones_like(logits)], axis=1)
    weights = np.zeros(2)
    loss = _cross_entropy(design @ weights, targets)
    for _ in range(NEWTON_STEPS):
        share = 1.0 / (1.0 + np.exp(-(design @ weights)))
        curvature = design.T @ (design * (share * (1.0 - share))[:, None]) + 1e-12 * np.eye(2)
        step = np.linalg.solve(curvature, design.T @ (share - targets))
        while (lower := _cross_entropy(design @ (weights - step), targets)) > loss:
            step /= 2
        weights, gained, loss = weights - step, loss - lower, lower
        if gained < CLOSE_ENOUGH:
            break
    slope = float(weights[0] / scale)
    return slope, float(weights[1] - slope * middle)


def _cross_entropy(values: Floats, targets: Floats) -> float:
    return float(np.mean(np.logaddexp(0.0, values) - targets * values))


def log_loss(scores: Sequence[float], relevant: Sequence[bool]) -> float:
    """The mean of −ln(score given to what turned out to be true); 0.693 says nothing."""
    inside = np.clip(np.asarray(scores, dtype=float), EDGE, 1.0 - EDGE)
    return float(-np.log(np.where(np.asarray(relevant, dtype=bool), inside, 1.0 - inside)).mean())


def reliability(scores: Sequence[float], relevant: Sequence[bool]) -> list[Bin]:
    """Scores in ten bins held against the truth in each; bins without pairs are left out."""
    values, labels = np.asarray(scores, dtype=float), np.asarray(relevant, dtype=bool)
    places = np.minimum((values * BINS).astype(int), BINS - 1)
    return [
        Bin(
            place / BINS,
            (place + 1) / BINS,
            int(inside.sum()),
            float(values[inside].mean()),
            float(labels[inside].mean()),
        )
        for place in range(BINS)
        if (inside := places == place).any()
    ]


def calibrations_file(*, make: bool = True) -> Path:
    """Where fitted calibrations are kept; ``make=False`` is for reading them."""
    return config_folder(make=make) / FILE


def fitted_for(model: str) -> list[Fitted]:
    """What was fitted for models of that name, whatever their fingerprint.

    Raises :class:`ModelUnavailableError` when the file cannot be read.
    """
    return [one for one in _stored(calibrations_file(make=False)) if one.model == model]


def store_fitted(fitted: Fitted) -> Path:
    """Keep ``fitted``, in the place of what the same model had. The file's path."""
    path = calibrations_file()
    same = (fitted.model, fitted.fingerprint)
    kept = [one for one in _stored(path) if (one.model, one.fingerprint) != same]
    content = msgspec.json.format(msgspec.json.encode(_Kept((*kept, fitted))), indent=2)
    replace_file(path, content + b"\n")
    return path


def _stored(path: Path) -> tuple[Fitted, ...]:
    try:
        state = path.stat()
    except FileNotFoundError:
        return ()
    return _read(path, (state.st_ino, state.st_mtime_ns))


@functools.lru_cache(maxsize=4)
def _read(path: Path, state: tuple[int, int]) -> tuple[Fitted, ...]:
    """The file's content, read again when it is another file or was changed."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Kept).calibrations
    except (OSError, msgspec.DecodeError) as error:
        raise ModelUnavailableError(f"{path} cannot be read: {error}", f"rm {path}") from error
    if not all(one.slope > 0 and math.isfinite(one.centre + one.slope) for one in found):
        raise ModelUnavailableError(f"{path} holds a curve that does not rise", f"rm {path}")
    return found
