"""The pool of one page: what may be opened for it, settled before anything is.

* Every page of a search has the best of fusion, and shows what earlier pages left of it.
* Where only opened text can show whether a memory may be an answer (a phrase's spelling,
  metadata), the search goes on below the pool, up to a bound.

Boundary: works on ordinals and ranks; opens nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory_store.records.degraded import Code, Degraded
from memory_store.search.candidates import Fetched, Scored
from memory_store.search.fusion.rank_fusion import Merged
from memory_store.search.paging import coming
from memory_store.search.query.plan import Plan, Search


def above(plan: Plan, results: Sequence[Scored]) -> list[Scored]:
    """Those that reach the caller's ``min_score``."""
    least = plan.options.min_score
    return [one for one in results if least is None or one.score >= least]


def to_come(search: Search, results: Sequence[Scored]) -> list[Scored]:
    """What earlier pages and narrowing have left of ``results``."""
    place, found = search.plan.place, list(results)
    if place is not None:
        found = [found[n] for n in coming(place, search.snapshot, search.order(results))[0]]
    return [result for result in found if search.plan.keeps(result.candidate.ordinal)]


def untried(search: Search, fetched: Fetched, merged: Merged, tried: int) -> tuple[Degraded, ...]:
    """The line for ``degraded`` when the bound ended a search for what only texts can show.

    ``tried`` memories were opened so far.
    """
    plan = search.plan
    cut = any(len(one.ordinals) >= plan.depth_of(one.leg, one.kind) for one in fetched.lists)
    if tried < plan.tries or not (cut or len(merged.ordered) > tried):
        return ()
    what = "metadata" if plan.options.conditions else "phrases"
    left = max(0, int(search.analysis.mask.sum()) - tried)
    said = (
        f"{what}: the best {tried:,} candidates were opened to look, "
        f"{left:,} more memories were not. Add a word or another filter"
    )
    return (Degraded(Code.LIMIT, said),)


def unfinished(plan: Plan, tried: int, found: int) -> tuple[Degraded, ...]:
    """The same for a list by filters alone, which goes on after a page that is not full."""
    if tried < plan.tries or found >= plan.options.limit:
        return ()
    said = (
        f"metadata: {tried:,} memories were opened to look for this page; the list goes on with "
        "its next page"
    )
    return (Degraded(Code.LIMIT, said),)
