"""The pipeline: one search from its query to its answer, stage by stage.

    analyse → expand → fetch → fuse → open → rerank → adjust → preview

Boundary: up to and including *fuse* nothing is plain text but the query. The pool is final then;
*open* is the only stage that decrypts, and nothing after it reaches beyond what it opened.

What few searches need (explanations, patterns, feedback) is imported by those: a search from the
command line starts that much sooner.
"""

from __future__ import annotations

from functools import partial

from msgspec import UNSET
from msgspec.structs import replace

from memory_store.errors import BadInputError
from memory_store.records import Ranking, SearchRequest, SearchResponse
from memory_store.records.explanation import Analyse, Expand, Fetch, Fuse
from memory_store.search.answer.meaning_only import meaning_alone
from memory_store.search.answer.response import respond
from memory_store.search.candidates import Fetched, LegList
from memory_store.search.context import SearchContext
from memory_store.search.expansion.wordings import expansion
from memory_store.search.facets.selection import narrowing
from memory_store.search.fusion.pool import (
    is_conditional,
    reaching,
    settled,
    unfinished,
    untried,
)
from memory_store.search.fusion.rank_fusion import Merged, merge
from memory_store.search.legs.neighbours import told_in_order
from memory_store.search.legs.retrieval import MOST_NEWEST, fetch, newest
from memory_store.search.opening import Opening
from memory_store.search.outcome import Outcome, Page, Why
from memory_store.search.paging import continue_place, members, not_yet_listed
from memory_store.search.query.analysis import Analysis, analyse
from memory_store.search.query.language import parse, refuse_nothing, resolve_mode
from memory_store.search.query.plan import NO_CUT, Plan, check_deep, make_plan
from memory_store.search.recipes import by_places
from memory_store.search.reranking.pool_order import Reading
from memory_store.search.trace import Trace

LIKE_NO_PATTERN = "like: a literal search is for a pattern; memories are like others, or not"
STRUCTURAL_LATER = "mode: structural search is not there yet; use literal for patterns"


def run(
    context: SearchContext, request: SearchRequest, *, started: float | None = None
) -> SearchResponse:
    """Answer a request.

    The time limit runs from ``started`` (:func:`time.monotonic`), by default from now.
    Raises :class:`BadInputError` naming the parameter at fault, and what the vault raises when it
    is locked or damaged. A missing model never fails a hybrid search; it is a line in
    ``degraded``.
    """
    trace = Trace(following=request.explain or request.why is not None)
    plan = _plan(context, request, started=started)
    if plan.mode == "literal":
        from memory_store.search.literal import search_literally

        outcome = search_literally(context, plan, trace)
    else:
        outcome = _search(context, plan, trace)
    return respond(context, plan, outcome, trace)


def rank(context: SearchContext, request: SearchRequest, depth: int = 100) -> Ranking:
    """The first ``depth`` memories of the same search, for evaluation.

    Legs and pool are at least ``depth`` deep. Only what a reranker or a condition must read is
    opened: nothing at all in fusion's own order.
    Raises :class:`BadInputError` for literal search, which has no order to measure.
    """
    plan = _plan(context, request, depth=depth)
    if plan.mode == "literal":
        raise BadInputError("mode: a literal search has no order to measure", parameter="mode")
    outcome = _search(context, plan, Trace())
    return Ranking(
        results=tuple((row.candidate.id, row.score) for row in outcome.rows),
        pool=min(plan.pool, outcome.found),
        opened=outcome.opened,
        reranked=outcome.reranked,
        degraded=outcome.degraded,
    )


def _plan(
    context: SearchContext,
    request: SearchRequest,
    *,
    depth: int = 0,
    started: float | None = None,
) -> Plan:
    refuse_nothing(request)
    mode = resolve_mode(request)
    if mode == "structural":
        raise BadInputError(STRUCTURAL_LATER, parameter="mode")
    if mode == "literal" and request.like:
        raise BadInputError(LIKE_NO_PATTERN, parameter="like")
    place = continue_place(context.page_keys, request)
    plan = make_plan(mode, request, depth=depth, started=started, place=place)
    if context.by_places:
        plan = replace(plan, recipe=by_places(plan.recipe, types=not context.strict))
    kept = narrowing(context, request.narrow)
    return plan if kept is None else replace(plan, narrowing=kept, kept=kept.mask)


def _search(context: SearchContext, plan: Plan, trace: Trace) -> Outcome:
    """Keyword, vector and hybrid search."""
    with trace.stage(Analyse):
        analysis = analyse(parse(plan.options), context, plan.options, plan.legs)
        check_deep(plan.options, analysis.keywords)
    listed = None if analysis.asks else analysis.mask
    if listed is not None and plan.kept is not None:
        analysis = replace(analysis, mask=analysis.mask & plan.kept)
    analysis = _unlisted(context, plan, analysis)
    conditional = is_conditional(analysis.parsed, plan.options)
    plan = plan.reaching(plan.tries) if conditional else plan
    with trace.stage(Expand) as note:
        expanded = expansion(analysis, context, plan, note)
    analysis = expanded.analysis
    merged, fetched = _fused(context, plan, analysis, expanded.probe, trace)
    plan, merged = _paged(context, plan, analysis, merged)
    opening = Opening(context.open_memories)
    reading = Reading(context, plan, analysis, opening, trace)
    outcome = reading.read(merged.pool)
    why = None
    if plan.options.explain or plan.options.why:
        why = _accounted(context, plan, analysis, fetched, merged, outcome, trace)
    tried = (plan.place.tried if plan.place is not None else 0) + outcome.tried
    beyond: tuple[str, ...] = ()
    if conditional and listed is None:
        beyond = untried(plan, fetched, merged, tried, int(analysis.mask.sum()))
    elif conditional:
        beyond = unfinished(plan, outcome.tried, len(outcome.rows))
    return outcome.completed(
        found=len(merged.ordered),
        opened=opening.opened,
        holding=None if conditional or plan.kept is not None else _holding(fetched),
        degraded=(*expanded.degraded, *fetched.degraded, *beyond),
        nearest=meaning_alone(analysis, context, plan, fetched),
        embedder=fetched.embedder,
        why=why,
        page=Page(plan.waiting, tried, listed, conditional),
    )


def _fused(
    context: SearchContext,
    plan: Plan,
    analysis: Analysis,
    probe: LegList | None,
    trace: Trace,
) -> tuple[Merged, Fetched]:
    """Fetch, fuse and cut: the final pool, still sealed."""
    with trace.stage(Fetch) as note:
        if analysis.asks:
            fetched = fetch(analysis, context, plan.recipe, plan.legs, plan.depths, probe)
            note.told_in_order = told_in_order(context, plan.recipe) or UNSET
        else:
            fetched = newest(analysis, context)
        if plan.recipe.feedback and plan.mode == "hybrid":
            from memory_store.search.fusion.vector_feedback import with_feedback

            fetched = with_feedback(fetched, analysis, context, plan, note)
    with trace.stage(Fuse):
        pool = plan.pool if analysis.asks else MOST_NEWEST  # a list to leaf through
        pool = pool if plan.place is None else NO_CUT
        merged = merge(fetched, analysis, context, plan.recipe, plan.mode, pool)
        if is_conditional(analysis.parsed, plan.options) and analysis.asks:
            wide = merge(fetched, analysis, context, plan.recipe, plan.mode, plan.tries)
            merged = reaching(merged, wide, plan.tries)
    return merged, fetched


def _accounted(
    context: SearchContext,
    plan: Plan,
    analysis: Analysis,
    fetched: Fetched,
    merged: Merged,
    outcome: Outcome,
    trace: Trace,
) -> Why | None:
    """What the caller asked to have explained: in the trace, and the verdict on one memory."""
    from memory_store.search.explain.account import Search, explain
    from memory_store.search.explain.verdict import why

    search = Search(context, plan, analysis, fetched, merged, outcome, trace)
    if plan.options.explain:
        explain(search)
    return partial(why, search) if plan.options.why else None


def _holding(fetched: Fetched) -> int | None:
    """How many memories hold a word of the query as typed; ``None`` for one without words."""
    keywords = fetched.of("keyword")
    return None if keywords is None else keywords.holding


def _paged(
    context: SearchContext, plan: Plan, analysis: Analysis, merged: Merged
) -> tuple[Plan, Merged]:
    """On a later page: the pool of the first one, and what waits of it."""
    if plan.place is None or not analysis.asks:
        return plan, merged
    likely = [one.ordinal for one in merged.ordered]
    found = members(plan.place, context.page_keys(), context.snapshot, analysis.mask, likely)
    return replace(plan, waiting=found.waiting), settled(merged, found, context)


def _unlisted(context: SearchContext, plan: Plan, analysis: Analysis) -> Analysis:
    """On a later page of a list by filters alone: what was not on the pages before."""
    if plan.place is None or analysis.asks:
        return analysis
    keys, snapshot = context.page_keys(), context.snapshot
    return replace(analysis, mask=not_yet_listed(plan.place, keys, snapshot, analysis.mask))
