"""The answer: rows with previews, counts, the topics among them, and where to go on.

Boundary: turns opened memories into what the asker reads. Grants are checked by the surfaces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memory_store.records import Memory, SearchResponse, SearchResult
from memory_store.search.adjustments import Scored, band
from memory_store.search.context import SearchContext
from memory_store.search.paging import continue_token
from memory_store.search.planning import Plan
from memory_store.search.previews import (
    Marker,
    Preview,
    estimated_tokens,
    expands,
    preview,
    within_budget,
)
from memory_store.search.tracing import Trace

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder


Why = Callable[[Collection[str]], Mapping[str, Any]]
"""From the ids of the rows that are shown to what became of the memory asked about."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the stages hand to the answer.

    ``rows`` are the page's opened results, ``more`` whether others follow;
    ``ranking`` is the whole order as far as it is known, sealed rows included. ``found`` counts all
    candidates, ``reranked`` those a model read, ``opened`` those decrypted. ``marker`` gives the
    highlighter for a row.
    """

    rows: tuple[Scored, ...]
    more: bool
    marker: Callable[[Scored], Marker]
    ranking: tuple[Scored, ...] = ()
    found: int = 0
    opened: int = 0
    reranked: int = 0
    calibrated: bool = False
    degraded: tuple[str, ...] = ()
    embedder: Embedder | None = None
    why: Why | None = None

    def completed(
        self,
        *,
        found: int,
        opened: int,
        degraded: Sequence[str],
        embedder: Embedder | None,
        why: Why | None,
    ) -> Outcome:
        """The outcome with what the stages before knew."""
        return replace(
            self,
            found=found,
            opened=opened,
            degraded=(*degraded, *self.degraded),
            embedder=embedder,
            why=why,
        )


def respond(context: SearchContext, plan: Plan, outcome: Outcome, trace: Trace) -> SearchResponse:
    """The response: previews, budget, counts, topics, the token for the next page."""
    options = plan.options
    with trace.stage("preview") as details:
        shown = [
            preview(row, outcome.marker(row), expanded=expands(plan.offset + n, row, options.deep))
            for n, row in enumerate(outcome.rows)
        ]
        chosen = list(range(len(shown)))
        if options.budget is not None:
            chosen = _affordable(outcome, shown, options.budget, details)
        rows = tuple(
            _row(context, plan.offset + n + 1, outcome.rows[n], shown[n], outcome.calibrated)
            for n in chosen
        )
        details |= {"returned": len(rows), "complete": sum(row.complete for row in rows)}
    following = continue_token(plan.query, options, plan.end) if outcome.more else None
    return SearchResponse(
        query=plan.query,
        mode=plan.mode,
        rows=rows,
        counts=f"Reranked {outcome.reranked} of {outcome.found}, returned {len(rows)}",
        opened=outcome.opened,
        total=context.snapshot.total,
        topics=_counted(topic for row in rows for topic in row.topics),
        types=_counted(row.type for row in rows),
        next=following,
        truncated=outcome.more or len(rows) < len(shown),
        degraded=tuple(dict.fromkeys((*context.degraded, *outcome.degraded))),
        milliseconds=trace.milliseconds,
        explain=trace.reports if options.explain else (),
        why=None if outcome.why is None else outcome.why([row.id for row in rows]),
    )


def _affordable(
    outcome: Outcome, shown: Sequence[Preview], budget: int, details: dict[str, Any]
) -> list[int]:
    """Which rows fit the token budget; says how tokens were counted."""
    embedder = outcome.embedder
    count = estimated_tokens if embedder is None else embedder.count_tokens
    texts = [
        f"{_memory(row).title}\n{one.passage.text}"
        for row, one in zip(outcome.rows, shown, strict=True)
    ]
    chosen, spent = within_budget(texts, budget, count)
    details |= {
        "budget": budget,
        "tokens": spent,
        "tokens_counted_with": "length / 4" if embedder is None else embedder.name,
        "skipped_for_budget": len(shown) - len(chosen),
    }
    return chosen


def _row(
    context: SearchContext, rank: int, result: Scored, shown: Preview, calibrated: bool
) -> SearchResult:
    memory, candidate = _memory(result), result.candidate
    collection = context.snapshot.collection(candidate.ordinal)
    return SearchResult(
        rank=rank,
        id=memory.id,
        ref=memory.ref,
        score=_rounded(result.score),
        band=band(result.score, calibrated),
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
    )


def _memory(result: Scored) -> Memory:
    assert result.memory is not None, "only opened results are shown"
    return result.memory


def _rounded(score: float) -> float:
    return round(max(0.0, min(score, 1.0)), 6)


def _counted(names: Iterable[str]) -> dict[str, int]:
    """Names with how often they occur, most frequent first, then by name."""
    return dict(sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])))
