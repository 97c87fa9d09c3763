"""The legs of a hybrid search side by side, beside each of them alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from benchmarks.measuring import side_by_side
from benchmarks.report import Line, Proportion
from memory_store.records import search_request
from memory_store.search.legs.retrieval import fetch
from memory_store.search.query.analysis import analyse
from memory_store.search.query.language import parse
from memory_store.search.query.plan import Search, make_plan
from memory_store.search.trace import Trace
from memory_store.store import MemoryStore

TURNS = 3  # of all queries
MOST = 1.2  # times the slowest leg by itself


def leg_lines(store: MemoryStore, queries: Sequence[str], size: int) -> Iterator[Line | Proportion]:
    """Keyword, topic and vector leg through a filter: at once, and in turn with it each alone.

    All get the same query, mask and depth, and the vector leg embeds the query each time. The peer
    is the leg that takes longest when nothing runs beside it.
    """
    context, options = store.search_context(), search_request(rerank=False, type="note")
    plan = make_plan("hybrid", options)

    def run(*legs: str) -> Callable[[Any], object]:
        by = replace(plan, legs=legs)
        return lambda asked: fetch(Search(context, by, asked, Trace()))

    asked = [
        analyse(parse(replace(options, query=query)), context, options, plan.legs)
        for query in queries
    ]
    alone = {leg: run(leg) for leg in plan.legs}
    taken = side_by_side({"together": run(*plan.legs), **alone}, asked * TURNS)
    slowest = max(alone, key=lambda leg: taken[leg].wall)
    together = taken["together"]
    yield Line(
        "three legs side by side, filtered",
        size,
        together,
        f"the {slowest} leg alone",
        taken[slowest],
        f"≤ {MOST} × the slowest leg",
        MOST * taken[slowest].wall,
        "wall",
    )
    cores = together.cpu / together.wall
    yield Proportion("three legs side by side, cores busy", size, cores, peer="one core")
