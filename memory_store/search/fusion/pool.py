"""The pool of one page: what may be opened for it, settled before anything is.

* The first page of a search has the best of fusion.
* A later page has what the first one settled, whatever was written since.
* Where only opened text can show whether a memory may be an answer (a phrase's spelling,
  metadata), the search goes on below the pool, up to a bound.

Boundary: works on ordinals and ranks; opens nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from memory_store.search.candidates import Candidate, Fetched, Scored
from memory_store.search.fusion.rank_fusion import Fused, Merged
from memory_store.search.paging import Members
from memory_store.search.query.plan import Plan, Search


def settled(merged: Merged, members: Members, search: Search) -> Merged:
    """``merged`` with the pool of the first page, in the order that fusion gives it today.

    Members that no leg finds any more come last, with a fusion score of 0.
    """
    wanted = members.waiting | members.done
    found = [one for one in merged.pool if one.ordinal in wanted]
    lost = sorted(wanted - {one.ordinal for one in found})
    snapshot = search.snapshot
    pool = [
        *found,
        *(Candidate(o, snapshot.id(o), snapshot.type(o), share=0.0, fusion_rank=0) for o in lost),
    ]
    fused = {one.ordinal: one for one in merged.ordered}
    ordered = [fused.get(one.ordinal, Fused(one.ordinal, 0.0, 0.0)) for one in pool]
    rest = [one for one in merged.ordered if one.ordinal not in wanted]
    numbered = tuple(one._replace(fusion_rank=rank) for rank, one in enumerate(pool, start=1))
    return replace(merged, pool=numbered, ordered=(*ordered, *rest))


def above(plan: Plan, results: Sequence[Scored]) -> list[Scored]:
    """Those that reach the caller's ``min_score``; what waits from the first page did then."""
    least, waiting = plan.options.min_score, plan.waiting or ()
    if least is None:
        return list(results)
    return [one for one in results if one.score >= least or one.candidate.ordinal in waiting]


def to_come(plan: Plan, results: Sequence[Scored]) -> list[Scored]:
    """What earlier pages and narrowing have left of ``results``."""
    left = plan.awaiting([result.candidate.ordinal for result in results])
    return [result for result in results if result.candidate.ordinal in left]


def untried(search: Search, fetched: Fetched, merged: Merged, tried: int) -> tuple[str, ...]:
    """The line for ``degraded`` when the bound ended a search for what only texts can show.

    ``tried`` memories were opened so far.
    """
    plan = search.plan
    cut = any(len(one.ordinals) >= plan.depth_of(one.leg, one.kind) for one in fetched.lists)
    if tried < plan.tries or not (cut or len(merged.ordered) > tried):
        return ()
    what = "metadata" if plan.options.conditions else "phrases"
    left = max(0, int(search.analysis.mask.sum()) - tried)
    return (
        f"{what}: the best {tried:,} candidates were opened to look, "
        f"{left:,} more memories were not. Add a word or another filter",
    )


def unfinished(plan: Plan, tried: int, found: int) -> tuple[str, ...]:
    """The same for a list by filters alone, which goes on after a page that is not full."""
    if tried < plan.tries or found >= plan.options.limit:
        return ()
    return (
        f"metadata: {tried:,} memories were opened to look for this page; the list goes on with "
        "its next page",
    )
