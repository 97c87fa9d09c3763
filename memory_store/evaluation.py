"""Measures of retrieval quality, by trec_eval's conventions.

Boundary: ids, ranks and grades only. A judged query that a run does not answer counts 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from memory_store.records import BadInputError

Judgements = Mapping[str, Mapping[str, int]]
"""Query id → reference → grade (0 and below: not relevant)."""
Run = Mapping[str, Sequence[str]]
"""Query id → references, best first."""
Measure = Callable[[Sequence[str], Mapping[str, int]], float]

RESAMPLES = 2_000
CONFIDENCE = 0.95


def ndcg(ranked: Sequence[str], grades: Mapping[str, int], depth: int = 10) -> float:
    """Normalised discounted cumulative gain, gain = grade, discount log₂(rank + 1)."""
    gains = [max(0, grades.get(ref, 0)) for ref in ranked[:depth]]
    ideal = sorted((g for g in grades.values() if g > 0), reverse=True)[:depth]
    best = _discounted(ideal)
    return _discounted(gains) / best if best else 0.0


def recall(ranked: Sequence[str], grades: Mapping[str, int], depth: int = 10) -> float:
    """The share of relevant references among the first ``depth``."""
    relevant = {ref for ref, grade in grades.items() if grade > 0}
    return len(relevant.intersection(ranked[:depth])) / len(relevant) if relevant else 0.0


def reciprocal_rank(ranked: Sequence[str], grades: Mapping[str, int], depth: int = 10) -> float:
    """One over the rank of the first relevant reference among the first ``depth``."""
    for rank, ref in enumerate(ranked[:depth], start=1):
        if grades.get(ref, 0) > 0:
            return 1.0 / rank
    return 0.0


def _discounted(gains: Iterable[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def per_query(run: Run, judgements: Judgements, measure: Measure) -> np.ndarray:
    """The measure of every query that has a relevant reference, in the judgements' order."""
    return np.array(
        [
            measure(run.get(query, ()), grades)
            for query, grades in judgements.items()
            if any(grade > 0 for grade in grades.values())
        ]
    )


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over queries with its bootstrap interval."""

    mean: float
    low: float
    high: float
    queries: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def estimate(values: np.ndarray, *, seed: int = 0) -> Estimate:
    """The mean of per-query values and its 95 % interval by the percentile bootstrap."""
    if not len(values):
        return Estimate(0.0, 0.0, 0.0, 0)
    generator = np.random.default_rng(seed)
    picks = generator.integers(0, len(values), size=(RESAMPLES, len(values)))
    means = values[picks].mean(axis=1)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(float(values.mean()), float(low), float(high), len(values))


def read_judgements(path: Path) -> dict[str, dict[str, int]]:
    """Judgements from lines of query, reference and grade, apart by tabs (a header is passed over).

    Raises BadInputError naming the file and line.
    """
    judgements: dict[str, dict[str, int]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        parts = line.split("\t")
        try:
            query, reference, grade = parts[0], parts[1], int(parts[2])
        except (IndexError, ValueError):
            if number == 1:
                continue
            raise BadInputError(
                f"{path}:{number}: not a query, a reference and a grade apart by tabs", "qrels"
            ) from None
        judgements.setdefault(query, {})[reference] = grade
    return judgements
