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

import numpy as np
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from memory_store.index.snapshot import Filters, Mask
from memory_store.records import base_type
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
from memory_store.search.candidates import AS_CODE, Candidate, Fetched, LegList, Outcome, Scored
from memory_store.search.facets.selection import narrowing
from memory_store.search.fusion.evidence import AHEAD, ALIKE, FEATURES, HELD, LEG_OF_FEATURE
from memory_store.search.fusion.learned import constants, leads, numbers_of
from memory_store.search.fusion.learned import contributions as added
from memory_store.search.fusion.leg_weights import vector_names
from memory_store.search.fusion.rank_fusion import Fused, Merged
from memory_store.search.query.analysis import Blinding, filters, holds
from memory_store.search.query.plan import Search
from memory_store.search.recipes import Recipe
from memory_store.search.trace import Trace

LENT = 1e-4  # of a strength, from neighbours: less is left out

Way = Sequence[tuple[str, int, Scored]]
"""Stage, rank and result after each stage that put the results in order."""


class Found(Struct, frozen=True):
    """A search with all that its stages handed on."""

    search: Search
    fetched: Fetched
    merged: Merged
    outcome: Outcome


class Restriction(Struct, frozen=True):
    """One filter or condition: its ``kind``, its ``name`` as one types it, what it lets through."""

    kind: str
    name: str
    mask: Mask


def restrictions(search: Search) -> Iterator[Restriction]:
    """The filters and conditions of a search, one by one: what each alone lets through.

    A search works with one mask for all of them; only an account of it asks which of them it was.
    """
    context, options, parsed = search.context, search.options, search.analysis.parsed
    blinding, alive = Blinding(context), context.snapshot.alive
    asked = filters(parsed, context, options, blinding)

    def alone(kind: str, name: str, **asked: Any) -> Restriction:
        return Restriction(kind, name, context.snapshot.mask(Filters(**asked)))

    if asked.collections is not None:
        yield alone(
            "collection", f"in:{_any_of(parsed.collections)}", collections=asked.collections
        )
    if asked.types:
        yield alone("type", f"type:{_any_of(asked.types)}", types=asked.types)
    for name, group in zip(parsed.topics, asked.topics_any, strict=True):
        yield alone("topic", f"topic:{_any_of([name])}", topics_any=(group,))
    if asked.status != "all":
        yield alone("status", f"status:{asked.status}", status=asked.status)
    if asked.since is not None:
        yield alone("since", f"since:{parsed.since}", since=asked.since)
    if asked.until is not None:
        yield alone("until", f"until:{parsed.until}", until=asked.until)
    if options.as_of:
        yield alone("known", f"as_of:{options.as_of}", known_at=asked.known_at)
    if asked.valid_at is not None:
        valid = alone("valid", "superseded:0", valid_at=asked.valid_at)
        if not np.array_equal(valid.mask, alive):
            yield valid
    for name in options.narrow:
        kept = narrowing(context, (name,))
        if kept is not None:
            yield Restriction("narrow", f"narrow={_any_of([name])}", kept.mask & alive)
    for phrase in parsed.required:
        kind = "word" if len(phrase.words) == 1 else "phrase"
        yield Restriction(kind, f'"{phrase.text}"', holds(phrase, context, blinding) & alive)
    for phrase in parsed.excluded:
        held = holds(phrase, context, blinding)
        yield Restriction("excluded", f"-{_any_of([phrase.text])}", ~held & alive)


def _any_of(names: Sequence[str]) -> str:
    """Names as one types them, quoted where there is a blank in one."""
    return " or ".join(f'"{one}"' if any(map(str.isspace, one)) else one for one in names)


def explain(found: Found) -> None:
    """Add to the trace what each stage did and how each row came to its place."""
    trace = found.search.trace
    _of_analysis(trace.of(Analyse), found.search)
    _of_lists(trace.of(Fetch), found)
    _of_fusion(trace.of(Fuse), found)
    _of_results(trace.of(Adjust), found)


def _of_analysis(stage: Analyse, search: Search) -> None:
    """What was searched for, in how many memories, and what each filter alone lets through."""
    analysis = search.analysis
    stage.language = analysis.language
    stage.keywords = tuple(analysis.keywords)
    stage.topic_groups = sum(map(bool, analysis.topics))
    stage.like = UNSET if analysis.like is None else analysis.like.sizes
    stage.searchable = int(analysis.mask.sum())
    count_filters(stage, search)


def count_filters(stage: Analyse, search: Search) -> None:
    """How many memories there are, and how many of them each filter alone lets through."""
    stage.of = search.snapshot.total
    stage.filters = tuple(
        FilterCount(one.name, int(one.mask.sum())) for one in restrictions(search)
    )


def _of_lists(stage: Fetch, found: Found) -> None:
    """The lists the legs came back with; the vector leg's index and model."""
    fetched, index = found.fetched, found.search.context.vector_index
    names = vector_names(fetched)
    stage.lists = tuple(
        LegCount(names.get(one.model, one.leg), one.kind, len(one.ordinals), *_ends(one))
        for one in fetched.lists
    )
    stage.leg_milliseconds = {leg: round(ms, 3) for leg, ms in fetched.milliseconds.items()}
    if fetched.embedder is not None and index is not None:
        stage.model = ", ".join(one.embedder.name for one in fetched.models)
        stage.index = index.kind


def _ends(one: LegList) -> tuple[float | None, float | None]:
    """The best and the last score of a list, where it has scores."""
    if not one.scores or one.leg == "recent":
        return None, None
    return _short(one.scores[0]), _short(one.scores[-1])


def _of_fusion(stage: Fuse, found: Found) -> None:
    """The recipe, what each leg counted and why, and where the pool was cut."""
    recipe, merged = found.search.recipe, found.merged
    stage.recipe = recipe.name
    stage.candidates, stage.pool = len(merged.ordered), len(merged.pool)
    if merged.evidence is not None:
        stage.weights = dict(numbers_of(merged.evidence).weights)
        names = vector_names(found.fetched).values()
        stage.read = {
            name: round(value, 4) for name, value in zip(names, merged.evidence.read, strict=True)
        }
    elif merged.lists:
        stage.k = recipe.rrf_k
        stage.weights = {leg: round(weight, 4) for leg, weight in merged.weights.items()}
        stage.lists = tuple(_weight(ranked, merged) for ranked in merged.lists)


def _weight(ranked: LegList, merged: Merged) -> ListWeight:
    """What a list counted: the factors of its leg by name, and its own by its kind."""
    factors = dict(merged.factors.get(ranked.leg, {}))
    of_leg = math.prod(factors.values())
    own = "the query as typed" if ranked.kind == "original" else ranked.kind
    factors[own] = ranked.weight / of_leg if of_leg else 1.0
    rounded = {name: _short(value) for name, value in factors.items()}
    return ListWeight(ranked.leg, ranked.kind, _short(ranked.weight), rounded)


def _of_results(stage: Adjust, found: Found) -> None:
    """How many results each adjustment moved, and the account of every row of the page."""
    search, rows = found.search, found.outcome.rows
    stage.moved = Counter(name for result in found.outcome.ranking for name, _ in result.steps)
    ways = ways_of(search.trace, [row.candidate.ordinal for row in rows])
    stage.results = tuple(
        Account(**figures(rank, row, found, ways[row.candidate.ordinal]))
        for rank, row in enumerate(rows, search.plan.offset + 1)
    )


def figures(rank: int | None, result: Scored, found: Found, way: Way) -> dict[str, Any]:
    """The fields of one result's :class:`Account`."""
    candidate, merged, recipe = result.candidate, found.merged, found.search.recipe
    boost = None
    if candidate.boost != 1.0:
        decides = "order" if recipe.boosts_order else "pool"
        boost = Boost(_boost_name(candidate), candidate.boost, decides)
    return {
        "rank": rank,
        "id": candidate.id,
        "fusion_rank": candidate.fusion_rank,
        "keyword_rank": candidate.keyword_rank,
        "topic_rank": candidate.topic_rank,
        "vector_rank": candidate.vector_rank,
        "fusion_score": _short(candidate.share),
        "fusion_sum": fusion_sum(candidate, merged),
        "contributions": contributions(candidate, merged, recipe),
        "boost": boost,
        "rerank_score": None if result.rerank_score is None else _short(result.rerank_score),
        "ranks": ranks(rank, result, way, _first(merged)),
        "steps": _steps(result, way),
        "score": _short(result.score),
    }


def _first(merged: Merged) -> str:
    """What put the candidates in order: fusion, or the one leg that was asked."""
    if merged.lists:
        return "fusion"
    one = merged.pool[0] if merged.pool else None
    if one is None or (one.keyword_rank is None and one.vector_rank is None):
        return "recent"
    return "vector" if one.keyword_rank is None else "keyword"


def contributions(candidate: Candidate, merged: Merged, recipe: Recipe) -> tuple[Contribution, ...]:
    """What each list, bonus and boost added to the fusion score, by the recipe's own formula.

    ``points`` are on the scale of the share (0–1).
    """
    if merged.evidence is not None:
        return tuple(_evidence(candidate, merged))
    fused = merged.ordered[candidate.fusion_rank - 1]
    scale = candidate.share / fused.score if fused.score else 0.0
    parts = _terms(candidate, merged, recipe) if merged.lists else _only_leg(candidate, fused)
    return tuple(replace(part, points=_short(part.term * scale)) for part in parts)


def fusion_sum(candidate: Candidate, merged: Merged) -> float:
    """What the terms of :func:`contributions` add up to: of evidence, the logarithm of the odds."""
    if merged.evidence is None:
        return merged.ordered[candidate.fusion_rank - 1].score
    return math.fsum(part.term for part in _evidence(candidate, merged))


def _evidence(candidate: Candidate, merged: Merged) -> Iterator[Contribution]:
    """What each feature adds to the logarithm of the odds; ``points`` is its share of the score."""
    found = merged.evidence
    assert found is not None
    row = int(np.searchsorted(found.ordinals, candidate.ordinal))
    if row == len(found.ordinals) or found.ordinals[row] != candidate.ordinal:
        return
    values, terms = found.features[row].tolist(), added(found)[row].tolist()
    alike, lead = float(constants(found)[row]), float(leads(found)[row])
    as_code = _odds(candidate, merged) - math.fsum((*terms, alike, lead))
    as_code = 0.0 if abs(as_code) < LENT else as_code
    whole = max(math.fsum((*terms, as_code)), 0.0)
    number = int(found.compared_by[row])
    for leg, feature, value, term in zip(LEG_OF_FEATURE, FEATURES, values, terms, strict=True):
        if not term:
            continue
        own = float(found.own_held[row]) if feature == HELD and len(found.own_held) else None
        yield Contribution(
            f"{leg} ({number})" if leg == "vector" and number > 1 else leg,
            feature,
            rank=getattr(candidate, f"{leg}_rank", None) or UNSET,
            strength=_short(value) if leg in ("keyword", "topic") else UNSET,
            own_strength=UNSET if own is None or abs(own - value) < LENT else _short(own),
            term=term,
            points=_short(candidate.share * term / whole) if whole else 0.0,
        )
    yield Contribution("search", ALIKE, term=alike)
    yield Contribution("search", AHEAD, term=lead)
    if as_code:
        points = _short(candidate.share * as_code / whole) if whole else 0.0
        rank = _place_as_code(candidate, merged)
        yield Contribution("keyword", AS_CODE, rank=rank, term=as_code, points=points)


def _odds(candidate: Candidate, merged: Merged) -> float:
    """The logarithm of the odds that the candidate's probability stands for."""
    probable = merged.ordered[candidate.fusion_rank - 1].score
    return math.log(probable) - math.log1p(-probable)


def _place_as_code(candidate: Candidate, merged: Merged) -> int | UnsetType:
    """Its place in the list of code, whose recipe gave it the probability of another."""
    for ranked, places in zip(merged.lists, merged.places, strict=True):
        if ranked.kind == AS_CODE and candidate.ordinal in places:
            return places[candidate.ordinal] + 1
    return UNSET


def _terms(candidate: Candidate, merged: Merged, recipe: Recipe) -> Iterator[Contribution]:
    total, best = 0.0, 3  # the first place that earns no bonus
    for ranked, places in zip(merged.lists, merged.places, strict=True):
        place = places.get(candidate.ordinal)
        if place is not None:
            best = min(best, place)
            part = _term(ranked, place, recipe)
            total += part.term
            yield part
    name, bonus = "first place", recipe.first_bonus
    if best:
        name, bonus = "top three", recipe.podium_bonus if best < 3 else 0.0
    if bonus:
        total += bonus
        yield Contribution("bonus", name, term=bonus)
    counted = recipe.boosts_order or candidate.fusion_rank > len(merged.pool)
    if candidate.boost != 1.0 and counted:
        term = total * (candidate.boost - 1.0)
        yield Contribution("type", _boost_name(candidate), term=term)


def _term(ranked: LegList, place: int, recipe: Recipe) -> Contribution:
    strength = ranked.strengths[place] if ranked.strengths else 1.0
    own = ranked.own_strengths[place] if ranked.own_strengths else strength
    return Contribution(
        ranked.leg,
        ranked.kind,
        rank=place + 1,
        weight=_short(ranked.weight),
        strength=_short(strength),
        own_strength=UNSET if abs(own - strength) < LENT else _short(own),
        term=ranked.weight * strength / (recipe.rrf_k + place + recipe.rank_offset),
    )


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
