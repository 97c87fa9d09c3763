"""What a mean over a few dozen queries is worth: intervals, and whether a difference is chance.

Everything random comes from a fixed seed: the same figures give the same answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

CONFIDENCE = 0.95
RESAMPLES = 2_000  # of the bootstrap: the ends of an interval settle to the third digit
PERMUTATIONS = 10_000  # so that p = .05 is known to ± .004 (two standard errors)
BLOCK = 500_000  # random numbers at a time

Values = npt.NDArray[np.float64]
"""One value per query."""


class Estimate(Struct, frozen=True):
    """A mean over ``queries`` with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float
    queries: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


class Comparison(Struct, frozen=True):
    """A run held against another, query by query.

    ``difference`` is the mean of the run's values less the other's, with its 95 % interval; ``p``
    how often chance alone would make it as large, either way; ``better`` and ``worse`` count
    queries.
    """

    difference: float
    low: float
    high: float
    p: float
    better: int
    worse: int

    def __str__(self) -> str:
        return f"{self.difference:+.3f} [{self.low:+.3f}, {self.high:+.3f}], p {shown_p(self.p)}"


def estimate(values: Values, *, seed: int = 0) -> Estimate:
    """The mean of per-query values and its interval by the percentile bootstrap (Efron 1979)."""
    if not len(values):
        return Estimate(0.0, 0.0, 0.0, 0)
    low, high = _interval(values, seed)
    return Estimate(float(values.mean()), low, high, len(values))


def compare(values: Values, baseline: Values, *, seed: int = 0) -> Comparison:
    """Compare two runs over the same queries, in the same order.

    The interval resamples queries, keeping each one's two values together. ``p`` is a paired
    randomisation test (Smucker, Allan and Carterette 2007): were the runs equally good, either
    value of a query might have been either run's. Equal runs give 1.
    """
    if values.shape != baseline.shape:
        raise ValueError("the two runs must have values for the same queries")
    differences = values - baseline
    if not len(differences):
        return Comparison(0.0, 0.0, 0.0, 1.0, 0, 0)
    low, high = _interval(differences, seed)
    return Comparison(
        difference=float(differences.mean()),
        low=low,
        high=high,
        p=_randomisation(differences, seed),
        better=int((differences > 0).sum()),
        worse=int((differences < 0).sum()),
    )


def shown_p(p: float) -> str:
    """A p-value as it is printed: no more digits than it is known to."""
    return "< .001" if p < 0.001 else f"{p:.3f}".lstrip("0") if p < 1 else "1"


def _interval(values: Values, seed: int) -> tuple[float, float]:
    means = np.concatenate(
        [
            values[random.integers(0, len(values), size=(count, len(values)))].mean(axis=1)
            for random, count in _blocks(RESAMPLES, len(values), seed)
        ]
    )
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def _randomisation(differences: Values, seed: int) -> float:
    """The share of random sign flips whose sum is as far from 0, the real one counted in."""
    changed = differences[differences != 0]
    observed = abs(changed.sum()) * (1 - 1e-12)  # sums in another order may lack a last bit
    extreme = 0
    for random, count in _blocks(PERMUTATIONS, len(changed), seed):
        signs = random.integers(0, 2, size=(count, len(changed)), dtype=np.int8) * 2 - 1
        extreme += int((np.abs(signs @ changed) >= observed).sum())
    return (extreme + 1) / (PERMUTATIONS + 1)


def _blocks(total: int, width: int, seed: int) -> Iterator[tuple[np.random.Generator, Any]]:
    """One generator and how many rows to draw with it at a time, ``total`` rows in all."""
    random = np.random.default_rng(seed)
    step = max(1, BLOCK // max(1, width))
    for start in range(0, total, step):
        yield random, min(step, total - start)
