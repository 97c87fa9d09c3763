"""Measures of one ranking against one query's grades, by trec_eval's conventions.

Gains are linear in the grade; grades of 0 and below are not relevant; what was not judged is not
relevant either. Something that stands in a ranking twice counts at its better place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

Ranked = Sequence[Hashable]
"""What was found, best first."""
Grades = Mapping[Any, int]
"""What was judged, with its grade."""


class Measure(Struct, frozen=True):
    """A measure of the first ``depth`` of a ranking; ``label`` is its name in print."""

    label: str
    depth: int
    function: Callable[[Ranked, Grades, int], float]

    def __call__(self, ranked: Ranked, grades: Grades) -> float:
        """The measure of one ranking, 0–1."""
        return self.function(ranked, grades, self.depth)


def ndcg(ranked: Ranked, grades: Grades, depth: int = 10) -> float:
    """Normalised discounted cumulative gain: gain = grade, discount log₂(rank + 1)."""
    gains = [max(0, grades.get(item, 0)) for item in _first(ranked, depth)]
    ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:depth]
    best = _discounted(ideal)
    return _discounted(gains) / best if best else 0.0


def recall(ranked: Ranked, grades: Grades, depth: int = 10) -> float:
    """The share of what is relevant that is among the first ``depth``."""
    relevant = {item for item, grade in grades.items() if grade > 0}
    return len(relevant.intersection(_first(ranked, depth))) / len(relevant) if relevant else 0.0


def reciprocal_rank(ranked: Ranked, grades: Grades, depth: int = 10) -> float:
    """One over the rank of the first that is relevant, 0 when none of the first ``depth`` is."""
    for rank, item in enumerate(_first(ranked, depth), start=1):
        if grades.get(item, 0) > 0:
            return 1.0 / rank
    return 0.0


def _first(ranked: Ranked, depth: int) -> list[Hashable]:
    return list(dict.fromkeys(ranked))[:depth]


def _discounted(gains: Iterable[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


MEASURES: Mapping[str, Measure] = {
    "ndcg@10": Measure("nDCG@10", 10, ndcg),
    "recall@10": Measure("Recall@10", 10, recall),
    "recall@100": Measure("Recall@100", 100, recall),
    "mrr@10": Measure("MRR@10", 10, reciprocal_rank),
}
