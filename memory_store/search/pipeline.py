"""The pipeline: one search from its query to its answer, stage by stage.

    analyse → fetch → fuse → open → rerank → adjust → preview

Boundary: up to and including *fuse* nothing is plain text but the query. The pool is final then;
*open* is the only stage that decrypts, and nothing after it reaches beyond what it opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from memory_store.records import (
    BadInputError,
    Memory,
    ModelUnavailableError,
    SearchOptions,
    SearchResponse,
)
from memory_store.search.adjustments import Scored, adjust
from memory_store.search.analysis import Analysis, analyse
from memory_store.search.answering import Outcome, respond
from memory_store.search.candidates import Candidate, Fetched, fetch, newest
from memory_store.search.context import SearchContext
from memory_store.search.fusion import merge
from memory_store.search.literal import search_literally
from memory_store.search.matching import WordMatcher
from memory_store.search.opening import Opened, Opening, conditions
from memory_store.search.planning import Plan, check_deep, make_plan
from memory_store.search.query import ParsedQuery, checked, parse, resolve_mode
from memory_store.search.reranking import (
    Reranked,
    few,
    in_fusion_order,
    missing_model,
    rerank,
    skips_reranker,
)
from memory_store.search.tracing import Trace

if TYPE_CHECKING:
    from memory_store.models.reranker import Reranker

Matchers = Callable[[Opened], WordMatcher]

STRUCTURAL_LATER = "mode: structural search is not there yet; use literal for patterns"
PAIRS_DECIDE = (
    "sealed: phrases were matched by their stems, not their spelling. Search without --sealed"
)


def run(context: SearchContext, query: str, options: SearchOptions) -> SearchResponse:
    """Answer a query.

    Raises :class:`BadInputError` naming the parameter at fault, and what the vault raises when it
    is locked or damaged. A missing model never fails a hybrid search; it is a line in
    ``degraded``.
    """
    trace = Trace()
    clean = checked(query)
    mode = resolve_mode(clean, options.mode)
    if mode == "structural":
        raise BadInputError(STRUCTURAL_LATER, parameter="mode")
    plan = make_plan(clean, mode, options)
    if mode == "literal":
        outcome = search_literally(context, plan, trace)
    else:
        outcome = _search(context, plan, trace)
    return respond(context, plan, outcome, trace)


def rank(
    context: SearchContext, query: str, options: SearchOptions, depth: int = 100
) -> list[tuple[str, float]]:
    """The first ``depth`` memories as ``(id, fusion score 0–1)``, for evaluation.

    Nothing is opened: this is the order of fusion, with legs and pool at least ``depth`` deep.
    """
    clean = checked(query)
    mode = resolve_mode(clean, options.mode)
    plan = make_plan(clean, mode, options, depth=depth)
    parsed = parse(clean, options)
    analysis = analyse(parsed, context, options)
    candidates, _ = _candidates(context, plan, analysis, {})
    ordered = _sealed_order(plan, candidates)
    return [(result.candidate.id, result.score) for result in ordered[:depth]]


def _search(context: SearchContext, plan: Plan, trace: Trace) -> Outcome:
    """Keyword, vector and hybrid search."""
    with trace.stage("analyse") as details:
        parsed = parse(plan.query, plan.options)
        analysis = analyse(parsed, context, plan.options)
        check_deep(plan.options, analysis.keywords)
        details |= {
            "language": analysis.language,
            "keywords": list(analysis.keywords),
            "topic_groups": len(analysis.topics),
            "searchable": int(analysis.mask.sum()),
        }
    with trace.stage("fetch") as details:
        candidates, fetched = _candidates(context, plan, analysis, details)
    pool = candidates[: plan.pool]
    opening = Opening(context.open_memories)
    outcome = _read(context, plan, analysis, pool, opening, trace)
    return outcome.completed(
        found=len(candidates),
        opened=opening.opened,
        degraded=fetched.degraded,
        embedder=fetched.embedder,
    )


def _candidates(
    context: SearchContext, plan: Plan, analysis: Analysis, details: dict[str, Any]
) -> tuple[list[Candidate], Fetched]:
    """Fetch and fuse: every candidate, best first, still sealed."""
    parsed = analysis.parsed
    if not parsed.text and not parsed.variants:
        fetched = newest(analysis, context)
    else:
        fetched = fetch(analysis, context, plan.recipe, plan.legs, plan.depths)
    candidates, weights = merge(fetched, analysis, context, plan.recipe, plan.mode)
    details |= {
        "legs": {f"{one.leg} ({one.kind})": len(one.ordinals) for one in fetched.lists},
        "milliseconds_by_leg": {leg: round(ms, 3) for leg, ms in fetched.milliseconds.items()},
        "weights": weights,
        "candidates": len(candidates),
        "pool": min(len(candidates), plan.pool),
    }
    return candidates, fetched


def _read(
    context: SearchContext,
    plan: Plan,
    analysis: Analysis,
    pool: Sequence[Candidate],
    opening: Opening,
    trace: Trace,
) -> Outcome:
    """Choose how the pool is read: sealed, in fusion's order, skipped as few, or reranked."""
    parsed = analysis.parsed
    degraded: list[str] = []
    if plan.reads and parsed.reading and pool:
        if skips_reranker(len(pool), plan.recipe, plan.options.deep):
            return _reranked(plan, analysis, context, pool, opening, trace, None)
        try:
            model = context.reranker(plan.options.reranker)
        except ModelUnavailableError as error:
            degraded.append(missing_model(error))
        else:
            return _reranked(plan, analysis, context, pool, opening, trace, model)
    if plan.options.sealed and (parsed.required or parsed.excluded):
        degraded.append(PAIRS_DECIDE)
    return _unread(plan, parsed, analysis, context, pool, opening, trace, degraded)


def _reranked(
    plan: Plan,
    analysis: Analysis,
    context: SearchContext,
    pool: Sequence[Candidate],
    opening: Opening,
    trace: Trace,
    model: Reranker | None,
) -> Outcome:
    """Open the whole pool, let the reranker read it (or skip it), adjust."""
    matcher = matchers(context, analysis)
    with trace.stage("open") as details:
        keep = conditions(analysis.parsed, plan.options.meta)
        opened = [o for o in opening.open(pool) if keep is None or keep(o.memory)]
        details |= {"opened": opening.opened, "kept": len(opened)}
    with trace.stage("rerank") as details:
        answer = _scores(plan, analysis, opened, matcher, model)
        details |= {
            "how": answer.why,
            "reranked": answer.reranked,
            "calibrated": answer.calibrated,
        }
    with trace.stage("adjust") as details:
        by_id = {o.memory.id: o for o in opened}

        def literal_share(memory: Memory) -> float:
            return matcher(by_id[memory.id]).literal_share(memory.title, memory.text)

        results = adjust(
            answer.results,
            plan.recipe,
            literal_share=literal_share,
            calibrated=answer.calibrated,
            verified=answer.verified,
        )
        details["results"] = [explained(n, result) for n, result in enumerate(results, start=1)]
    results = _above(plan, results)
    return Outcome(
        rows=tuple(results[plan.offset : plan.end]),
        more=len(results) > plan.end,
        reranked=answer.reranked,
        calibrated=answer.calibrated and answer.verified,
        degraded=answer.degraded,
        marker=lambda result: matcher(Opened(result.candidate, _text_of(result))),
    )


def _scores(
    plan: Plan,
    analysis: Analysis,
    opened: Sequence[Opened],
    matcher: Matchers,
    model: Reranker | None,
) -> Reranked:
    if model is None or not opened:
        return few(opened)
    return rerank(
        analysis.parsed.reading,
        opened,
        plan.recipe,
        model,
        matcher,
        depth=plan.rerank_depth,
        deadline=plan.deadline,
    )


def _unread(
    plan: Plan,
    parsed: ParsedQuery,
    analysis: Analysis,
    context: SearchContext,
    pool: Sequence[Candidate],
    opening: Opening,
    trace: Trace,
    degraded: Sequence[str],
) -> Outcome:
    """Fusion's order; only the page's own rows are opened (and what its conditions refuse)."""
    matcher = matchers(context, analysis)
    results = _above(plan, _sealed_order(plan, pool))
    keep = None if plan.options.sealed else conditions(parsed, plan.options.meta)
    with trace.stage("open") as details:
        if keep is None:
            page = results[plan.offset : plan.end]
            opened = opening.open([result.candidate for result in page])
            more = len(results) > plan.end
        else:
            wanted = [result.candidate for result in results]
            opened = list(opening.open_until(wanted, keep, plan.end))[plan.offset :]
            more = opening.opened < len(results)
        details |= {"opened": opening.opened, "kept": len(opened)}
    scores = {result.candidate.ordinal: result for result in results}
    rows = [_with_text(scores[o.candidate.ordinal], o.memory) for o in opened]
    with trace.stage("adjust") as details:
        details["results"] = [explained(n, r) for n, r in enumerate(rows, start=plan.offset + 1)]
    return Outcome(
        rows=tuple(rows),
        more=more,
        degraded=tuple(degraded),
        marker=lambda result: matcher(Opened(result.candidate, _text_of(result))),
    )


def _sealed_order(plan: Plan, candidates: Sequence[Candidate]) -> list[Scored]:
    """The order and scores that need no text."""
    if plan.mode == "hybrid":
        return in_fusion_order(candidates, plan.recipe)
    cap = plan.recipe.unverified_cap
    return [Scored(candidate, cap * candidate.share) for candidate in candidates]


def _above(plan: Plan, results: Sequence[Scored]) -> list[Scored]:
    least = plan.options.min_score
    return [result for result in results if least is None or result.score >= least]


def _text_of(result: Scored) -> Memory:
    assert result.memory is not None, "only opened results are shown"
    return result.memory


def _with_text(result: Scored, memory: Memory) -> Scored:
    return Scored(result.candidate, result.score, memory, steps=result.steps)


def matchers(context: SearchContext, analysis: Analysis) -> Matchers:
    """A function from an opened candidate to the matcher for its language, made once each."""
    phrases = tuple(phrase.text for phrase in analysis.parsed.required)

    @cache
    def of_language(language: str) -> WordMatcher:
        return WordMatcher(analysis.keywords, phrases, language)

    def of(opened: Opened) -> WordMatcher:
        return of_language(context.snapshot.language(opened.candidate.ordinal))

    return of


def explained(position: int, result: Scored) -> dict[str, Any]:
    """One result's way through the stages, as data."""
    candidate = result.candidate
    return {
        "rank": position,
        "id": candidate.id,
        "fusion_rank": candidate.fusion_rank,
        "keyword_rank": candidate.keyword_rank,
        "topic_rank": candidate.topic_rank,
        "vector_rank": candidate.vector_rank,
        "fusion_score": round(candidate.share, 4),
        "fusion_boost": candidate.boost,
        "rerank_score": None if result.rerank_score is None else round(result.rerank_score, 4),
        "steps": [[name, round(score, 4)] for name, score in result.steps],
        "score": round(result.score, 4),
    }
