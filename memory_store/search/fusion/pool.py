"""The pool of one page: what may be opened for it, settled before anything is.

* The first page of a search has the best of fusion.
* A later page has what the first one settled, whatever was written since.
* Where only opened text can show whether a memory may be an answer (a phrase's spelling,
  metadata), the search goes on below the pool, up to a bound.

Boundary: works on ordinals and ranks; opens nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memory_store.records import SearchRequest
from memory_store.search.adjustments import Scored
from memory_store.search.candidates import Candidate, Fetched
from memory_store.search.context import SearchContext
from memory_store.search.fusion.rank_fusion import Fused, Merged
from memory_store.search.legs.depth import depth_of
from memory_store.search.paging import Members
from memory_store.search.query.language import ParsedQuery
from memory_store.search.query.plan import Plan

if TYPE_CHECKING:
    from memory_store.index.snapshot import Mask


def is_conditional(parsed: ParsedQuery, options: SearchRequest) -> bool:
    """Whether only opened text shows which candidates may be answers."""
    return bool(parsed.required or parsed.excluded or options.meta) and not options.sealed


def settled(merged: Merged, members: Members, context: SearchContext) -> Merged:
    """``merged`` with the pool of the first page, in the order that fusion gives it today.

    Members that no leg finds any more come last, with a fusion score of 0.
    """
    wanted = members.waiting | members.done
    found = [one for one in merged.pool if one.ordinal in wanted]
    lost = sorted(wanted - {one.ordinal for one in found})
    snapshot = context.snapshot
    pool = [
        *found,
        *(Candidate(o, snapshot.id(o), snapshot.type(o), share=0.0, fusion_rank=0) for o in lost),
    ]
    fused = {one.ordinal: one for one in merged.ordered}
    ordered = [fused.get(one.ordinal, Fused(one.ordinal, 0.0, 0.0)) for one in pool]
    rest = [one for one in merged.ordered if one.ordinal not in wanted]
    return replace(merged, pool=_numbered(pool), ordered=(*ordered, *rest))


def reaching(merged: Merged, wide: Merged, reach: int) -> Merged:
    """``merged`` with a pool of the first ``reach``; ``wide`` describes those below its own."""
    below = {one.ordinal: one for one in wide.pool}
    more = merged.ordered[len(merged.pool) : reach]
    pool = [*merged.pool, *(below[one.ordinal] for one in more)]
    return replace(merged, pool=_numbered(pool[:reach]))


def above(plan: Plan, results: Sequence[Scored]) -> list[Scored]:
    """Those that reach the caller's ``min_score``; what waits from the first page did then."""
    least, waiting = plan.options.min_score, plan.waiting or ()
    if least is None:
        return list(results)
    return [one for one in results if one.score >= least or one.candidate.ordinal in waiting]


def with_waiting(plan: Plan, results: Sequence[Scored], scored: Sequence[Scored]) -> list[Scored]:
    """``results``, and behind them what waits of ``scored`` but was dropped by a floor since."""
    waiting = (plan.waiting or frozenset()) - {result.candidate.ordinal for result in results}
    return [*results, *(one for one in scored if one.candidate.ordinal in waiting)]


def to_come(plan: Plan, results: Sequence[Scored]) -> list[Scored]:
    """What earlier pages and narrowing have left of ``results``."""
    ordinals = [result.candidate.ordinal for result in results]
    left = still_to_come(ordinals, plan.waiting, plan.kept)
    return [result for result in results if result.candidate.ordinal in left]


def still_to_come(
    ordinals: Iterable[int], waiting: frozenset[int] | None, kept: Mask | None
) -> set[int]:
    """Those that wait from the pages before (``None``: all), and that narrowing keeps."""
    return {
        ordinal
        for ordinal in ordinals
        if (waiting is None or ordinal in waiting) and (kept is None or kept[ordinal])
    }


def untried(
    plan: Plan, fetched: Fetched, merged: Merged, tried: int, searchable: int
) -> tuple[str, ...]:
    """The line for ``degraded`` when the bound ended a search for what only texts can show.

    ``tried`` memories were opened so far, of ``searchable`` that the filters let through.
    """
    cut = any(
        len(one.ordinals) >= depth_of(one.leg, one.kind, plan.depths) for one in fetched.lists
    )
    if tried < plan.tries or not (cut or len(merged.ordered) > tried):
        return ()
    what = "metadata" if plan.options.meta else "phrases"
    return (
        f"{what}: the best {tried:,} candidates were opened to look, "
        f"{max(0, searchable - tried):,} more memories were not. Add a word or another filter",
    )


def unfinished(plan: Plan, tried: int, found: int) -> tuple[str, ...]:
    """The same for a list by filters alone, which goes on after a page that is not full."""
    if tried < plan.tries or found >= plan.options.limit:
        return ()
    return (
        f"metadata: {tried:,} memories were opened to look for this page; the list goes on with "
        "its next page",
    )


def _numbered(pool: Sequence[Candidate]) -> tuple[Candidate, ...]:
    return tuple(
        one if one.fusion_rank == rank else one._replace(fusion_rank=rank)
        for rank, one in enumerate(pool, start=1)
    )
