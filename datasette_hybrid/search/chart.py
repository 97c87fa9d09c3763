"""The explanation as a picture: each of the first results as a line through its ranks.

Boundary: places and titles that the caller may see anyway; the template escapes them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from .result_views import ResultView

MOST_LINES = 12  # more are a thicket
DEEPEST = 16  # ranks below it share a row
LEFT, STEP_X, TOP, STEP_Y, LABEL = 56, 112, 36, 24, 236  # user units of the drawing
LONGEST = 34  # characters of a title beside its line
FINAL = "final"
READERS = ("rerank", "late interaction", "few candidates", "file rules")


@dataclass(frozen=True)
class Point:
    """A result's place in a list, and where that is in the drawing."""

    x: int
    y: int
    rank: int


@dataclass(frozen=True)
class Line:
    """A result's way: its points, the strokes between neighbouring lists, and it in words."""

    label: str
    told: str
    points: Sequence[Point]
    strokes: Sequence[tuple[Point, Point]]


@dataclass(frozen=True)
class Slopes:
    """The whole drawing: its size, the names of the lists, the rows of ranks, the lines."""

    width: int
    height: int
    columns: Sequence[tuple[str, int]]
    rows: Sequence[tuple[str, int]]
    lines: Sequence[Line]
    last_x: int


def slopes(results: Sequence[ResultView]) -> Slopes | None:
    """The ways of the first results; ``None`` where there is nothing to compare."""
    shown = results[:MOST_LINES]
    ranks = {result.id: _ranks(result) for result in shown}
    names = [name for name in _names() if any(name in one for one in ranks.values())]
    if len(names) < 2 or len(shown) < 2:
        return None
    places = [rank for one in ranks.values() for rank in one.values()]
    depth = min(max(places), max(DEEPEST, len(shown), *(result.rank for result in shown)))
    columns = [(name, LEFT + n * STEP_X) for n, name in enumerate(names)]
    drawn = sorted({min(rank, depth + 1) for rank in places})
    rows = [(f"{rank}{'+' if rank > depth else ''}", _y(rank, drawn)) for rank in drawn]
    last_x = columns[-1][1]
    return Slopes(
        width=last_x + LABEL,
        height=rows[-1][1] + STEP_Y,
        columns=columns,
        rows=rows,
        lines=[_line(result, ranks[result.id], columns, drawn) for result in shown],
        last_x=last_x,
    )


def _names() -> tuple[str, ...]:
    return ("words", "topics", "meaning", "fusion", "reranked", FINAL)


def _ranks(result: ResultView) -> dict[str, int]:
    """List → the result's place in it, where it has one."""
    way = result.account.way if result.account else ()
    read = [move.rank for move in way if move.name in READERS]
    ranks = {
        "words": result.row.keyword_rank,
        "topics": result.row.topic_rank,
        "meaning": result.row.vector_rank,
        "fusion": way[0].rank if way else None,
        "reranked": read[0] if read else None,
        FINAL: result.rank,
    }
    return {name: rank for name, rank in ranks.items() if rank}


def _line(
    result: ResultView,
    ranks: dict[str, int],
    columns: Sequence[tuple[str, int]],
    drawn: Sequence[int],
) -> Line:
    at = [
        Point(x, _y(ranks[name], drawn), ranks[name]) if name in ranks else None
        for name, x in columns
    ]
    neighbours = pairwise(at)
    name = result.id[:8] if result.sealed else result.title.striptags()
    told = ", ".join(f"{name} {rank}" for name, rank in ranks.items())
    return Line(
        label=name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…",
        told=f"{name}: {told}",
        points=[point for point in at if point],
        strokes=[(one, two) for one, two in neighbours if one and two],
    )


def _y(rank: int, drawn: Sequence[int]) -> int:
    """Ranks that nothing shown has take no room."""
    return TOP + bisect_left(drawn, min(rank, drawn[-1])) * STEP_Y
