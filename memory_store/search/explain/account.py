"""The explanation of a search, filled in: what each stage did, how each result came to its place.

Boundary: places, scores, names of adjustments and the caller's own words; no text of memories. It
opens nothing and runs only when the caller wants an explanation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from memory_store.records.explanation import (
    Account,
    Adjust,
    Analyse,
    Boost,
    Contribution,
    Fetch,
    FilterCount,
    Fuse,
    LegCount,
    ListWeight,
    Place,
    ScoreChange,
)
from memory_store.search.adjustments import Scored, base_type
from memory_store.search.candidates import Candidate, Fetched, LegList
from memory_store.search.context import SearchContext
from memory_store.search.explain.restrictions import restrictions
from memory_store.search.fusion.leg_weights import vector_names
from memory_store.search.fusion.rank_fusion import Fused, Merged, RankedList
from memory_store.search.outcome import Outcome
from memory_store.search.query.analysis import Analysis
from memory_store.search.query.language import ParsedQuery
from memory_store.search.query.plan import Plan
from memory_store.search.recipes import Recipe
from memory_store.search.trace import Trace

LENT = 1e-4  # of a strength, from neighbours: less is left out

Way = Sequence[tuple[str, int, Scored]]
"""Stage, rank and result after each stage that put the results in order."""


class Search(Struct, frozen=True):
    """One search with all that its stages handed on."""

    context: SearchContext
    plan: Plan
    analysis: Analysis
    fetched: Fetched
    merged: Merged
    outcome: Outcome
    trace: Trace


def explain(search: Search) -> None:
    """Add to the trace what each stage did and how each row came to its place."""
    trace = search.trace
    _of_analysis(trace.of(Analyse), search.context, search.plan, search.analysis)
    _of_lists(trace.of(Fetch), search.context, search.fetched)
    _of_fusion(trace.of(Fuse), search.plan, search.merged)
    _of_results(trace.of(Adjust), search)


def _of_analysis(stage: Analyse, context: SearchContext, plan: Plan, analysis: Analysis) -> None:
    """What was searched for, in how many memories, and what each filter alone lets through."""
    stage.language = analysis.language
    stage.keywords = tuple(analysis.keywords)
    stage.topic_groups = len(analysis.topics)
    stage.like = UNSET if analysis.like is None else analysis.like.sizes
    stage.searchable = int(analysis.mask.sum())
    count_filters(stage, context, plan, analysis.parsed)


def count_filters(stage: Analyse, context: SearchContext, plan: Plan, parsed: ParsedQuery) -> None:
    """How many memories there are, and how many of them each filter alone lets through."""
    stage.of = context.snapshot.total
    asked = restrictions(parsed, context, plan.options)
    stage.filters = tuple(FilterCount(one.name, int(one.mask.sum())) for one in asked)


def _of_lists(stage: Fetch, context: SearchContext, fetched: Fetched) -> None:
    """The lists the legs came back with; the vector leg's index and model."""
    names = vector_names(fetched)
    stage.lists = tuple(
        LegCount(names.get(one.model, one.leg), one.kind, len(one.ordinals), *_ends(one))
        for one in fetched.lists
    )
    stage.leg_milliseconds = {leg: round(ms, 3) for leg, ms in fetched.milliseconds.items()}
    if fetched.embedder is not None and context.vector_index is not None:
        stage.model = ", ".join(one.embedder.name for one in fetched.models)
        stage.index = context.vector_index.kind


def _ends(one: LegList) -> tuple[float | None, float | None]:
    """The best and the last score of a list, where it has scores."""
    if not one.scores or one.leg == "recent":
        return None, None
    return _short(one.scores[0]), _short(one.scores[-1])


def _of_fusion(stage: Fuse, plan: Plan, merged: Merged) -> None:
    """The recipe, what each leg counted and why, and where the pool was cut."""
    stage.recipe = plan.recipe.name
    stage.candidates, stage.pool = len(merged.ordered), len(merged.pool)
    if merged.lists:
        stage.k = plan.recipe.rrf_k
        stage.weights = {leg: round(weight, 4) for leg, weight in merged.weights.items()}
        stage.lists = tuple(_weight(ranked, merged) for ranked in merged.lists)


def _weight(ranked: RankedList, merged: Merged) -> ListWeight:
    """What a list counted: the factors of its leg by name, and its own by its kind."""
    factors = dict(merged.factors.get(ranked.leg, {}))
    of_leg = math.prod(factors.values())
    own = "the query as typed" if ranked.kind == "original" else ranked.kind
    factors[own] = ranked.weight / of_leg if of_leg else 1.0
    rounded = {name: _short(value) for name, value in factors.items()}
    return ListWeight(ranked.leg, ranked.kind, _short(ranked.weight), rounded)


def _of_results(stage: Adjust, search: Search) -> None:
    """How many results each adjustment moved, and the account of every row of the page."""
    rows = search.outcome.rows
    stage.moved = Counter(name for result in search.outcome.ranking for name, _ in result.steps)
    ways = ways_of(search.trace, [row.candidate.ordinal for row in rows])
    fusion = FusionAccounts(search.merged, search.plan.recipe)
    stage.results = tuple(
        Account(**figures(rank, row, fusion, ways[row.candidate.ordinal]))
        for rank, row in enumerate(rows, search.plan.offset + 1)
    )


def figures(rank: int | None, result: Scored, fusion: FusionAccounts, way: Way) -> dict[str, Any]:
    """The fields of one result's :class:`Account`."""
    candidate = result.candidate
    return {
        "rank": rank,
        "id": candidate.id,
        "fusion_rank": candidate.fusion_rank,
        "keyword_rank": candidate.keyword_rank,
        "topic_rank": candidate.topic_rank,
        "vector_rank": candidate.vector_rank,
        "fusion_score": _short(candidate.share),
        "fusion_sum": fusion.sum(candidate),
        "contributions": fusion.contributions(candidate),
        "boost": fusion.boost(candidate),
        "rerank_score": None if result.rerank_score is None else _short(result.rerank_score),
        "ranks": ranks(rank, result, way, fusion.first),
        "steps": _steps(result, way),
        "score": _short(result.score),
    }


class FusionAccounts:
    """How fusion came to the scores of one search: its own formula, term by term."""

    def __init__(self, merged: Merged, recipe: Recipe) -> None:
        self._merged = merged
        self._recipe = recipe
        self._places = [
            {ordinal: place for place, ordinal in reversed([*enumerate(ranked.ordinals)])}
            for ranked in merged.lists
        ]

    @property
    def first(self) -> str:
        """What put the candidates in order: fusion, or the one leg that was asked."""
        if self._merged.lists:
            return "fusion"
        one = self._merged.pool[0] if self._merged.pool else None
        if one is None or (one.keyword_rank is None and one.vector_rank is None):
            return "recent"
        return "vector" if one.keyword_rank is None else "keyword"

    def sum(self, candidate: Candidate) -> float:
        """The raw fusion score, which the contributions add up to."""
        return self._fused(candidate).score

    def contributions(self, candidate: Candidate) -> tuple[Contribution, ...]:
        """What each list, bonus and boost added; ``points`` are on the scale of the share (0–1)."""
        fused = self._fused(candidate)
        scale = candidate.share / fused.score if fused.score else 0.0
        return tuple(
            replace(part, points=_short(part.term * scale))
            for part in self._parts(candidate, fused)
        )

    def boost(self, candidate: Candidate) -> Boost | None:
        """The type's factor by name, and whether it decides the order or who enters the pool."""
        if candidate.boost == 1.0:
            return None
        decides = "order" if self._recipe.boosts_order else "pool"
        return Boost(_boost_name(candidate), candidate.boost, decides)

    def _fused(self, candidate: Candidate) -> Fused:
        return self._merged.ordered[candidate.fusion_rank - 1]

    def _parts(self, candidate: Candidate, fused: Fused) -> Iterator[Contribution]:
        if not self._merged.lists:
            yield from _only_leg(candidate, fused)
            return
        total = 0.0
        best: int | None = None
        for ranked, places in zip(self._merged.lists, self._places, strict=True):
            place = places.get(candidate.ordinal)
            if place is not None:
                best = place if best is None else min(best, place)
                part = self._term(ranked, place)
                total += part.term
                yield part
        bonus = self._bonus(best)
        if bonus is not None:
            total += bonus.term
            yield bonus
        counted = self._recipe.boosts_order or candidate.fusion_rank > len(self._merged.pool)
        if candidate.boost != 1.0 and counted:
            term = total * (candidate.boost - 1.0)
            yield Contribution("type", _boost_name(candidate), term=term)

    def _term(self, ranked: RankedList, place: int) -> Contribution:
        strength = ranked.strengths[place] if ranked.strengths else 1.0
        own = ranked.own_strengths[place] if ranked.own_strengths else strength
        divisor = self._recipe.rrf_k + place + self._recipe.rank_offset
        return Contribution(
            ranked.leg,
            ranked.kind,
            rank=place + 1,
            weight=_short(ranked.weight),
            strength=_short(strength),
            own_strength=UNSET if abs(own - strength) < LENT else _short(own),
            term=ranked.weight * strength / divisor,
        )

    def _bonus(self, best: int | None) -> Contribution | None:
        if best == 0 and self._recipe.first_bonus:
            return Contribution("bonus", "first place", term=self._recipe.first_bonus)
        if best in (1, 2) and self._recipe.podium_bonus:
            return Contribution("bonus", "top three", term=self._recipe.podium_bonus)
        return None


def _only_leg(candidate: Candidate, fused: Fused) -> Iterator[Contribution]:
    """One leg by itself: its own score is all there is."""
    for leg in ("keyword", "vector"):
        rank = getattr(candidate, f"{leg}_rank")
        if rank is not None:
            yield Contribution(leg, "original", rank=rank, term=fused.score)


def _boost_name(candidate: Candidate) -> str:
    return f"{base_type(candidate.type)} boost"


def ways_of(trace: Trace, ordinals: Sequence[int]) -> Mapping[int, Way]:
    """The way of each of ``ordinals``."""
    ways: dict[int, list[tuple[str, int, Scored]]] = {ordinal: [] for ordinal in ordinals}
    for standing in trace.standings:
        for rank, result in enumerate(standing.results, 1):
            if result.candidate.ordinal in ways:
                ways[result.candidate.ordinal].append((standing.stage, rank, result))
    return ways


def ranks(rank: int | None, result: Scored, way: Way, first: str) -> tuple[Place, ...]:
    """Place and score after fusion (or what was ``first``), after the first stage that put the
    results in order, and after each later one that changed either; ``steps``: what moved it there
    itself."""
    candidate = result.candidate
    place, score, known = candidate.fusion_rank, candidate.share, 0
    places = [Place(first, place, _short(score))]
    for stage, now, then in way:
        if now == place and then.score == score and len(places) > 1:
            continue
        own = tuple(name for name, _ in then.steps[known:])
        place, score, known = now, then.score, len(then.steps)
        places.append(Place(stage, now, _short(score), own))
    if rank is not None and rank != place:
        places.append(Place("left out others", rank, _short(result.score)))
    return tuple(places)


def _steps(result: Scored, way: Way) -> tuple[ScoreChange, ...]:
    """Every change of the score, with the score before and after it."""
    start = next((then.score for _, _, then in way if not then.steps), result.candidate.share)
    scores = [("", start), *result.steps]
    return tuple(
        ScoreChange(name, _short(before), _short(after))
        for (_, before), (name, after) in pairwise(scores)
    )


def _short(score: float) -> float:
    return round(float(score), 4)
