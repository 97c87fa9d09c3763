"""Why a memory is, or is not, in an answer: its way through the stages, in words and numbers.

Boundary: tells only what the same search could tell; opens nothing itself.
"""

from __future__ import annotations

from typing import Any

from memory_store.search.analysis import Analysis, Blinding, filters
from memory_store.search.answering import Outcome
from memory_store.search.candidates import fetch
from memory_store.search.context import SearchContext
from memory_store.search.fusion import Merged
from memory_store.search.planning import Plan


def why(
    context: SearchContext,
    plan: Plan,
    analysis: Analysis,
    merged: Merged,
    outcome: Outcome,
) -> dict[str, Any]:
    """What became of the memory named by the option ``why`` (its full id)."""
    id_ = str(plan.options.why)
    answer: dict[str, Any] = {"id": id_, "returned": False}
    ordinal = context.snapshot.ordinal_of(id_)
    if ordinal is None:
        return {**answer, "reason": "there is no such memory in the collections you can read"}
    if not analysis.mask[ordinal]:
        return {**answer, "reason": _left_out(context, plan, analysis, ordinal)}
    order = [one.ordinal for one in merged.ordered]
    if ordinal not in order:
        return {**answer, **_not_found(context, plan, analysis, merged, ordinal)}
    answer["fusion_rank"] = order.index(ordinal) + 1
    if answer["fusion_rank"] > len(merged.pool):
        reason = f"it came out of fusion below the pool, which ends at {len(merged.pool)}"
        return {**answer, "reason": reason}
    candidate = merged.pool[answer["fusion_rank"] - 1]
    answer |= {
        "keyword_rank": candidate.keyword_rank,
        "topic_rank": candidate.topic_rank,
        "vector_rank": candidate.vector_rank,
    }
    return {**answer, **_placed(plan, outcome, ordinal)}


def _left_out(context: SearchContext, plan: Plan, analysis: Analysis, ordinal: int) -> str:
    asked = filters(analysis.parsed, context, plan.options, Blinding(context))
    if not context.snapshot.mask(asked)[ordinal]:
        return "a filter leaves it out (collection, type, topic, status or date)"
    return "it lacks a required phrase or holds an excluded word"


def _not_found(
    context: SearchContext,
    plan: Plan,
    analysis: Analysis,
    merged: Merged,
    ordinal: int,
) -> dict[str, Any]:
    """No leg had it among its first: at which place would each have had it?"""
    tags = context.snapshot.content_tags
    for other in (one.ordinal for one in merged.ordered):
        if (tags[other] == tags[ordinal]).all():
            standing = context.snapshot.id(other)
            return {"reason": f"it has the same content as {standing}, which stands for both"}
    everything = dict.fromkeys(plan.legs, context.snapshot.size)
    fetched = fetch(analysis, context, plan.recipe, plan.legs, everything)
    places: dict[str, int | None] = dict.fromkeys(plan.legs)
    for one in fetched.lists:
        if one.kind == "original" and ordinal in one.ordinals:
            places[one.leg] = one.ordinals.index(ordinal) + 1
    told = ", ".join(
        f"{leg}: {place or 'not at all'} (first {plan.depths[leg]} are taken)"
        for leg, place in places.items()
    )
    return {"reason": f"no leg found it near enough. {told}", "leg_ranks": places}


def _placed(plan: Plan, outcome: Outcome, ordinal: int) -> dict[str, Any]:
    """It was in the pool: what then?"""
    ranking = [result.candidate.ordinal for result in outcome.ranking]
    if ordinal not in ranking:
        return {"reason": "it was dropped after opening: spelling, metadata or a score floor"}
    rank = ranking.index(ordinal) + 1
    result = outcome.ranking[rank - 1]
    answer = {
        "rank": rank,
        "score": round(result.score, 4),
        "steps": [[name, round(score, 4)] for name, score in result.steps],
    }
    if ordinal in [row.candidate.ordinal for row in outcome.rows]:
        return {**answer, "returned": True, "reason": f"it is result {rank}"}
    page = f"{plan.offset + 1} to {plan.end}"
    return {**answer, "reason": f"it ranks {rank}, this page shows {page}"}
