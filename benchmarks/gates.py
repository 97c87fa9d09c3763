"""The figures of one set, and the gates that they must pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, to_builtins

from benchmarks.development_sets import Gate
from memory_store.evaluation import Comparison, Estimate

LEGS = ("keyword", "vector")
VECTOR_RECALL = 0.99
MAXSIM_SLACK = 0.005  # late interaction blends: below this it is a draw
SEALED_RATIO = 0.995
DIGITS = 6
TIMES = ("seconds_to_build", "seconds_to_rank")


class Reranking(Struct, frozen=True):
    """A reranker's order held against fusion's. ``read`` counts memories over all queries."""

    found: Estimate
    fusion: Estimate
    against: Comparison
    read: int
    slack: float = 0.0


class Figures(Struct, frozen=True):
    """What was measured of one set.

    ``estimates`` are by run, the product's own ranking first (``default``); ``comparisons`` hold
    it against each of the others. ``as_filed`` is the same ranking where the records were imported
    in the order of their file. ``rerankings`` are by the reranker's name: none where none was
    asked to read. ``plain`` is the same with nothing sealed. ``plain_agrees`` counts queries whose
    first ten are the same there, ``keyword_agrees`` those that the keyword leg ranks as FTS5 does.
    ``vector_recall`` is the share of the first ten of an exact scan that the vector leg finds,
    ``float32`` the share of vectors in that scan that are the model's own: the others were read
    back from the vault.
    """

    name: str
    measure: str
    memories: int
    estimates: Mapping[str, Estimate]
    comparisons: Mapping[str, Comparison]
    mrr: Estimate
    as_filed: Estimate | None
    rerankings: Mapping[str, Reranking]
    plain: Estimate
    plain_agrees: int
    keyword_agrees: int
    keyword_queries: int
    vector_recall: float
    float32: float
    seconds_to_build: float
    seconds_to_rank: float

    @property
    def default(self) -> Estimate:
        """The product's own ranking."""
        return self.estimates["default"]

    @property
    def sealed_ratio(self) -> float:
        """Sealed ÷ plain."""
        return self.default.mean / self.plain.mean if self.plain.mean else 1.0

    def as_dict(self) -> dict[str, Any]:
        """The figures as JSON-ready data, to six digits; no times, which differ by machine."""
        data = {**to_builtins(self), "sealed_ratio": self.sealed_ratio}
        return {name: _rounded(value) for name, value in data.items() if name not in TIMES}


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _rounded(one) for name, one in value.items()}
    return round(value, DIGITS) if isinstance(value, float) else value


def failures(figures: Figures, gate: Gate) -> Iterator[str]:
    """What is worse than it must be, in words."""
    found, name = figures.default.mean, figures.name
    leg = max(figures.estimates[one].mean for one in LEGS)
    if gate.least is not None and found < gate.least:
        yield f"{name}: default {found:.4f} is below {gate.least}"
    if found < leg - gate.slack:
        yield f"{name}: default {found:.4f} is below its best leg, {leg:.4f} less {gate.slack}"
    for reranker, one in figures.rerankings.items():
        if not one.read:
            yield f"{name}: {reranker} read nothing"
        elif one.found.mean < one.fusion.mean - one.slack:
            yield f"{name}: {reranker} lowers {one.fusion.mean:.4f} to {one.found.mean:.4f}"
    if figures.keyword_agrees != figures.keyword_queries:
        differing = figures.keyword_queries - figures.keyword_agrees
        yield f"{name}: the keyword order differs from FTS5's on {differing} queries"
    if figures.vector_recall < VECTOR_RECALL:
        yield f"{name}: vector recall@10 {figures.vector_recall:.4f} is below {VECTOR_RECALL}"
    if figures.sealed_ratio < SEALED_RATIO:
        yield f"{name}: sealed ÷ plain {figures.sealed_ratio:.4f} is below {SEALED_RATIO}"
