"""The verdict on one memory: why it is, or is not, in an answer.

The stages are asked in their order; the first one that lost the memory gives the reason.

Boundary: says only what the same search could show to the same caller, and opens nothing. Keyed
hashes say which of the caller's own words a sealed memory holds.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from memory_store.records import SearchRequest
from memory_store.records.explanation import Verdict
from memory_store.search.context import SearchContext
from memory_store.search.explain.account import FusionAccounts, Search, figures, ways_of
from memory_store.search.explain.leg_places import leg_places, leg_sentence, words_held
from memory_store.search.explain.restrictions import restrictions
from memory_store.search.query.language import ParsedQuery
from memory_store.search.query.more_like_this import twins
from memory_store.search.query.plan import Plan
from memory_store.search.trace import Trace

UNKNOWN = "there is no such memory in the collections you can read"
IDS_ONLY = "ids only here, whole or the first 8 characters of one: a ref is sealed"
_LIKE_AN_ID = re.compile(r"[0-9a-fA-F-]*")

Fields = dict[str, Any]
"""Fields of a :class:`Verdict`."""


def unknown(id_: str, reason: str = UNKNOWN) -> Verdict:
    """The verdict on a memory that is not there or that the caller may not read: the same."""
    return Verdict(id=id_, returned=False, stage="unknown", reason=reason)


def no_id(given: str) -> Verdict:
    """The verdict where only ids may be asked for, from the look of what was ``given``."""
    return unknown(given, UNKNOWN if _LIKE_AN_ID.fullmatch(given) else IDS_ONLY)


def why(search: Search, shown: Collection[str]) -> Verdict:
    """What became of the memory named by the option ``why`` (its full id).

    ``shown`` are the ids of the rows that the answer holds.
    """
    id_ = str(search.plan.options.why)
    ordinal = search.context.snapshot.ordinal_of(id_)
    if ordinal is None:
        return unknown(id_)
    return Verdict(id=id_, returned=id_ in shown, **_fate(search, ordinal, shown))


def _fate(search: Search, ordinal: int, shown: Collection[str]) -> Fields:
    """Where the memory's way ended."""
    if (same := _is_the_question(search, ordinal)) is not None:
        return same
    refused = left_out(search.analysis.parsed, search.context, search.plan.options, ordinal)
    if refused is not None:
        return refused
    order = [one.ordinal for one in search.merged.ordered]
    if ordinal not in order:
        return _stood_for(search, ordinal, order) or _not_fetched(search, ordinal)
    fusion_rank = order.index(ordinal) + 1
    words, coverage = words_held(search.context, search.analysis, ordinal)
    below = fusion_rank > len(search.merged.pool)
    rest = (
        _below_the_pool(search, ordinal, fusion_rank)
        if below
        else _after_the_pool(search, fusion_rank, shown)
    )
    return {"words": words, "coverage": coverage, **rest}


def _is_the_question(search: Search, ordinal: int) -> Fields | None:
    """Whether it is the memory itself that others should be like, or a copy of it."""
    like = search.analysis.like
    if like is None or not twins(search.context.snapshot, like.ordinal)[ordinal]:
        return None
    itself = "it is the memory that others should be like"
    return {
        "stage": "like",
        "reason": itself if ordinal == like.ordinal else f"{itself}, or has the same content",
    }


def left_out(
    parsed: ParsedQuery, context: SearchContext, options: SearchRequest, ordinal: int
) -> Fields | None:
    """Which filters and conditions leave it out, each with what the memory is instead."""
    asked = restrictions(parsed, context, options)
    refusing = [one for one in asked if not one.mask[ordinal]]
    if not refusing:
        return None
    reasons = [f"{one.name} leaves it out: {one.refusal(context, ordinal)}" for one in refusing]
    return {
        "stage": "filter",
        "reason": "; ".join(reasons),
        "filters": tuple(one.name for one in refusing),
    }


def _stood_for(search: Search, ordinal: int, order: list[int]) -> Fields | None:
    tags = search.context.snapshot.content_tags
    same = [other for other in order if (tags[other] == tags[ordinal]).all()]
    if not same:
        return None
    twin = search.context.snapshot.id(same[0])
    return {
        "stage": "twin",
        "reason": f"it has the same content as {twin}, which stands for both",
        "twin": twin,
    }


def _not_fetched(search: Search, ordinal: int) -> Fields:
    """No leg had it among its first: at which place would each have had it?"""
    if not search.analysis.asks:
        place, created = search.plan.place, search.context.snapshot.created[ordinal]
        if place is not None and place.after is not None and created >= place.after[0]:
            return {"stage": "page", "reason": "an earlier page has listed it"}
        return {"stage": "fetch", "reason": "it is older than the newest that are listed"}
    places = leg_places(search, ordinal)
    words, coverage = words_held(search.context, search.analysis, ordinal)
    each = "; ".join(map(leg_sentence, places))
    lacks = f". Of the words asked for it lacks {', '.join(words.missing)}" if words.missing else ""
    return {
        "stage": "fetch",
        "reason": f"no leg found it near enough: {each}{lacks}",
        "legs": places,
        "words": words,
        "coverage": coverage,
    }


def _below_the_pool(search: Search, ordinal: int, fusion_rank: int) -> Fields:
    merged = search.merged
    size = len(merged.pool)
    taken_out = 0.0 if search.plan.recipe.boosts_order else 1.0
    last = min(one.share * one.boost**taken_out for one in merged.ordered[:size])
    share = merged.ordered[fusion_rank - 1].share
    return {
        "stage": "fuse",
        "reason": f"fusion put it at place {fusion_rank} ({share:.3g}), below the pool of the "
        f"first {size} (the last has {last:.3g})",
        "fusion_rank": fusion_rank,
        "fusion_score": round(share, 4),
        "pool": size,
        "last_score": round(last, 4),
        "legs": leg_places(search, ordinal),
    }


def _after_the_pool(search: Search, fusion_rank: int, shown: Collection[str]) -> Fields:
    """It was in the pool: opened, ranked, shown?"""
    candidate = search.merged.pool[fusion_rank - 1]
    places: Fields = {
        "fusion_rank": fusion_rank,
        "fusion_score": round(candidate.share, 4),
        "keyword_rank": candidate.keyword_rank,
        "topic_rank": candidate.topic_rank,
        "vector_rank": candidate.vector_rank,
    }
    if candidate.id in search.trace.dropped:
        reason = f"it was opened and left out: {search.trace.dropped[candidate.id]}"
        return {"stage": "open", "reason": reason, **places}
    way = ways_of(search.trace, [candidate.ordinal])[candidate.ordinal]
    ahead = [result.candidate for result in search.outcome.ranking]
    ahead = [one for one in ahead if one.id not in search.trace.dropped]
    ahead = [one for one in ahead if search.plan.kept is None or search.plan.kept[one.ordinal]]
    listed = search.plan.offset if search.plan.waiting is None else 0  # not in a list's ranking
    place = {one.ordinal: n for n, one in enumerate(ahead, listed + 1)}.get(candidate.ordinal)
    if way:
        fusion = FusionAccounts(search.merged, search.plan.recipe)
        places = figures(place, way[-1][2], fusion, way)
        del places["id"]
    if place is None and not way:
        return {**places, **_unread(search, fusion_rank)}
    if place is None:
        return {**places, **lost(search.plan, search.trace, candidate.ordinal)}
    return {**places, **placed(search.plan, candidate.id, place, shown)}


def _unread(search: Search, fusion_rank: int) -> Fields:
    """Not opened: the search had all it wanted before it came to it, or it is gone."""
    wanted = search.plan.pool
    reason = f"fusion put it at place {fusion_rank}, and {wanted} before it were enough"
    if fusion_rank <= wanted:
        reason = "it was deleted while the search ran"
    return {"stage": "fuse", "reason": reason, "pool": wanted}


def lost(plan: Plan, trace: Trace, ordinal: int) -> Fields:
    """Which stage after the reranker left it out, and at which score."""
    stage, score = _lost_at(trace, ordinal)
    at_least = {
        "score floor": plan.recipe.score_floor,
        "min_score": plan.options.min_score,
    }.get(stage)
    reason = f"it was left out by {stage or 'a change of the vault during the search'}"
    if at_least is not None and score is not None:
        name = "the score floor" if stage == "score floor" else stage
        reason = f"its score of {score:.3g} is below {name}, {at_least:g}"
    return {"stage": "adjust", "reason": reason}


def _lost_at(trace: Trace, ordinal: int) -> tuple[str, float | None]:
    """The first stage whose order lacks the memory, and its score before that."""
    score: float | None = None
    for standing in trace.standings:
        found = [r.score for r in standing.results if r.candidate.ordinal == ordinal]
        if not found:
            return standing.stage, score
        score = found[0]
    return "", score


def placed(plan: Plan, id_: str, rank: int, shown: Collection[str]) -> Fields:
    """Where it stands among the results, and on which page."""
    page = (rank - 1) // plan.options.limit + 1
    place = {"rank": rank, "page": page}
    if id_ in shown:
        return {**place, "stage": "returned", "reason": f"it is result {rank}"}
    if plan.options.budget is not None and plan.offset < rank <= plan.end:
        reason = f"it ranks {rank}, but did not fit the budget of {plan.options.budget} tokens"
        return {**place, "stage": "budget", "reason": reason}
    here = f"{plan.offset + 1} to {plan.end}"
    reason = f"it ranks {rank}, on page {page} of {plan.options.limit} each; this shows {here}"
    return {**place, "stage": "page", "reason": reason}
