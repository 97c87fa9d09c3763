"""The answer: rows with previews, counts, the topics among them, and where to go on.

Boundary: turns opened memories into what the caller reads. Grants are checked by the surfaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memory_store.records import Memory, SearchResponse, SearchResult, explanation
from memory_store.search.adjustments import Scored, band
from memory_store.search.answer.previews import Preview, expands, preview
from memory_store.search.answer.token_budget import Spending, spend, token_counter
from memory_store.search.context import SearchContext
from memory_store.search.facets.counts import counted, facets
from memory_store.search.fusion.pool import still_to_come
from memory_store.search.outcome import Outcome
from memory_store.search.paging import continue_token, following
from memory_store.search.query.plan import Plan
from memory_store.search.trace import Trace
from memory_store.titles import shown_title

if TYPE_CHECKING:
    from memory_store.index.snapshot import Mask


def respond(context: SearchContext, plan: Plan, outcome: Outcome, trace: Trace) -> SearchResponse:
    """The response: previews, budget, counts, facets, the token for the next page."""
    options = plan.options
    with trace.stage(explanation.Preview) as note:
        shown, budget, spending = _previewed(plan, outcome)
        rows = tuple(
            _row(context, plan.offset + rank, outcome, n, shown[n])
            for rank, n in enumerate(spending.taken, start=1)
        )
        note.returned, note.complete = len(rows), sum(row.complete for row in rows)
        if budget is not None:
            note.budget, note.tokens = budget["limit"], budget["spent"]
            note.tokens_counted_with = budget["counted_with"]
            note.skipped_for_budget = budget["skipped"] + len(budget["too_large"])
    next_token = _next(context, plan, outcome, spending)
    whole = outcome.rows if outcome.page.conditional and _is_sealed(outcome) else outcome.ranking
    return SearchResponse(
        query=plan.query,
        mode=plan.mode,
        rows=rows,
        counts=f"Reranked {outcome.reranked} of {outcome.found}, returned {len(rows)}",
        opened=outcome.opened,
        total=context.snapshot.total,
        topics=counted(topic for row in rows for topic in row.topics),
        types=counted(row.type for row in rows),
        facets=facets(context, whole, outcome.rows, _all_listed(outcome), plan.narrowing),
        budget=budget,
        next=next_token,
        truncated=next_token is not None or len(rows) < len(shown),
        nearest=outcome.nearest if rows else None,
        degraded=tuple(
            dict.fromkeys((*context.degraded, *outcome.degraded, *_measured(plan, outcome, rows)))
        ),
        milliseconds=trace.milliseconds,
        explain=trace.stages if options.explain else (),
        why=None if outcome.why is None else outcome.why([row.id for row in rows]),
        holding=outcome.holding,
    )


def _previewed(
    plan: Plan, outcome: Outcome
) -> tuple[list[Preview], dict[str, Any] | None, Spending]:
    """What would be shown of every row, and which rows the token budget buys.

    A whole text that is larger than the budget by itself is shown in part.
    """
    limit = plan.options.budget
    name, count = token_counter(outcome.embedder)
    shown, costs = [], []
    for n, row in enumerate(outcome.rows):
        expanded = expands(plan.offset + n, row, plan.options.deep)
        one = preview(row, outcome.marker(row), expanded=expanded)
        cost = 0 if limit is None else count(_text(row, one))
        if limit is not None and expanded and cost > limit:
            one = preview(row, outcome.marker(row), expanded=False)
            cost = count(_text(row, one))
        shown.append(one)
        costs.append(cost)
    spending = spend(costs, limit)
    if limit is None:
        return shown, None, spending
    too_large = [
        {"id": outcome.rows[n].candidate.id, "tokens": costs[n]} for n in spending.too_large
    ]
    budget = {
        "limit": limit,
        "spent": spending.spent,
        "counted_with": name,
        "skipped": len(spending.skipped),
        "too_large": too_large,
    }
    return shown, budget, spending


def _text(row: Scored, shown: Preview) -> str:
    """What a row costs: its title and its preview."""
    return f"{_memory(row).title}\n{shown.passage.text}"


def _next(context: SearchContext, plan: Plan, outcome: Outcome, spending: Spending) -> str | None:
    """The token for what is still to come: what follows the page, and what did not fit it."""
    page, ordinals = outcome.page, [result.candidate.ordinal for result in outcome.ranking]
    skipped = {outcome.rows[n].candidate.ordinal for n in spending.skipped}
    gone = outcome.refused | {row.candidate.ordinal for row in outcome.rows} - skipped
    left = still_to_come(ordinals, page.waiting, plan.kept)
    keys = context.page_keys()
    place = following(
        plan.place,
        keys,
        context.snapshot,
        shown=len(spending.taken),
        tried=page.tried,
        pool=ordinals,
        waiting=[o for o in ordinals if o in left and o not in gone],
        listing=page.listed is not None,
    )
    return None if place is None else continue_token(keys, plan.options, place)


def _is_sealed(outcome: Outcome) -> bool:
    """Whether some of the ranking was not opened, so that it is not known to be an answer."""
    return any(result.memory is None for result in outcome.ranking)


def _all_listed(outcome: Outcome) -> Mask | None:
    return None if outcome.page.conditional else outcome.page.listed


def _measured(plan: Plan, outcome: Outcome, rows: Sequence[SearchResult]) -> tuple[str, ...]:
    """Sealed search with a budget: what was opened only to be measured is said."""
    left = len(outcome.rows) - len(rows)
    if not (plan.options.sealed and left):
        return ()
    return (f"sealed: {left} more were opened to see that they do not fit the budget",)


def _row(
    context: SearchContext, rank: int, outcome: Outcome, n: int, shown: Preview
) -> SearchResult:
    result = outcome.rows[n]
    memory, candidate = _memory(result), result.candidate
    collection = context.snapshot.collection(candidate.ordinal)
    title = shown_title(memory.title, shown.passage.text, shown.passage.start)
    return SearchResult(
        rank=rank,
        id=memory.id,
        ref=memory.ref,
        score=_rounded(result.score),
        band=band(result.score, outcome.calibrated),
        collection=context.collection_names.get(collection, collection),
        type=memory.type,
        created=memory.created,
        topics=memory.topics,
        title=memory.title,
        preview=shown.passage.text,
        complete=shown.complete,
        keyword_rank=candidate.keyword_rank,
        topic_rank=candidate.topic_rank,
        vector_rank=candidate.vector_rank,
        vector_score=None if candidate.vector_score is None else _rounded(candidate.vector_score),
        fusion_score=_rounded(candidate.share),
        rerank_score=None if result.rerank_score is None else _rounded(result.rerank_score),
        passages=(shown.passage,),
        title_highlights=tuple(outcome.marker(result).spans(title)),
    )


def _memory(result: Scored) -> Memory:
    assert result.memory is not None, "only opened results are shown"
    return result.memory


def _rounded(score: float) -> float:
    return round(max(0.0, min(score, 1.0)), 6)
