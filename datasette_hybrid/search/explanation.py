"""The explanation of a search as the page shows it: each result's way, in words and drawn.

Boundary: works on what :mod:`memory_store.access` left of the answer, so that a searcher
who may not read sees ranks and no more. The templates escape all text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from memory_store.host import Account, Verdict, words
from memory_store.records import SearchResponse

if TYPE_CHECKING:
    from .result_views import ResultView

MOST_LINES = 12  # more are a thicket
DEEPEST = 16  # ranks below it share a row
LEFT, STEP_X, TOP, STEP_Y, LABEL = 56, 112, 36, 24, 236  # user units of the drawing
LONGEST = 34  # characters of a title beside its line
FINAL = "final"
LISTS = ("words", "topics", "meaning", "fusion", "reranked", FINAL)
READERS = ("rerank", "late interaction", "few candidates", "file rules")

Point = tuple[int, int]


@dataclass(frozen=True)
class AccountView:
    """How one result came to its place.

    ``terms`` of the fusion score: name, place, weight, strength, points, and these as percent of
    the whole score's scale. ``because`` says it in one sentence.
    ``changes`` afterwards: name, score before, score after.
    """

    because: str
    way: Sequence[words.Move]
    terms: Sequence[tuple[str, str, str, str, str, int]]
    score_name: str
    fusion_score: str
    boost: str
    rerank_score: str
    changes: Sequence[tuple[str, str, str]]

    @property
    def moved(self) -> int:
        """Places won (above 0) or lost since fusion."""
        return sum(move.up for move in self.way)


@dataclass(frozen=True)
class Line:
    """A result's way: its points, the strokes between neighbouring lists, and it in words."""

    label: str
    sentence: str
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


def account_views(response: SearchResponse) -> dict[str, AccountView]:
    """Id → how that result came to its place; empty unless the search explained itself."""
    return {id_: _account(account) for id_, account in words.accounts(response).items()}


def why_view(why: Verdict | None) -> Mapping[str, Any] | None:
    """What became of the memory asked about; ``None`` when none was."""
    if why is None:
        return None
    return {
        "about": words.why_about(why),
        "returned": bool(why.returned),
        "reason": why.reason or f"it is {'' if why.returned else 'not '}among the results",
        "words": words.why_words(why),
        "account": _account(why) if why.ranks else None,
    }


def slopes(results: Sequence[ResultView]) -> Slopes | None:
    """The ways of the first results, drawn; ``None`` where there is nothing to compare."""
    shown = results[:MOST_LINES]
    ranks = {result.row.id: _ranks(result) for result in shown}
    names = [name for name in LISTS if any(name in one for one in ranks.values())]
    if len(names) < 2 or len(shown) < 2:
        return None
    places = [rank for one in ranks.values() for rank in one.values()]
    depth = min(max(places), max(DEEPEST, len(shown), *(result.row.rank for result in shown)))
    columns = [(name, LEFT + n * STEP_X) for n, name in enumerate(names)]
    drawn = sorted({min(rank, depth + 1) for rank in places})
    rows = [(f"{rank}{'+' if rank > depth else ''}", _y(rank, drawn)) for rank in drawn]
    return Slopes(
        width=columns[-1][1] + LABEL,
        height=rows[-1][1] + STEP_Y,
        columns=columns,
        rows=rows,
        lines=[_line(result, ranks[result.row.id], columns, drawn) for result in shown],
        last_x=columns[-1][1],
    )


def _account(account: Account) -> AccountView:
    return AccountView(
        because=words.because(account),
        way=words.moves(account),
        terms=[
            (
                term.name,
                words.ordinal(term.rank) if term.rank else "–",
                "–" if term.weight is None else f"{term.weight:.3g}",
                "–" if term.strength is None else f"{term.strength:.0%}",
                _hundredths(term.points),
                max(0, min(100, round(term.points * 100))),
            )
            for term in words.terms(account)
        ],
        score_name=words.score_name(account),
        fusion_score=_hundredths(account.fusion_score),
        boost=words.boost_sentence(account),
        rerank_score=_hundredths(account.rerank_score),
        changes=[
            (name, _hundredths(before), _hundredths(after))
            for name, before, after in words.changes(account)
        ],
    )


def _hundredths(score: float | UnsetType | None) -> str:
    """A score of 0–1 as the page shows scores: ``83``; one decimal below 10."""
    if score is None or score is UNSET:
        return ""
    shown = score * 100
    return f"{shown:.0f}" if abs(shown) >= 10 or shown == 0 else f"{shown:.1f}"


def _ranks(result: ResultView) -> dict[str, int]:
    """List → the result's place in it, where it has one."""
    way = result.account.way if result.account else ()
    read = [move.rank for move in way if move.name in READERS]
    row = result.row
    places = (
        *(row.keyword_rank, row.topic_rank, row.vector_rank),
        *(way[0].rank if way else None, read[0] if read else None, row.rank),
    )
    return {name: rank for name, rank in zip(LISTS, places, strict=True) if rank}


def _line(
    result: ResultView,
    ranks: Mapping[str, int],
    columns: Sequence[tuple[str, int]],
    drawn: Sequence[int],
) -> Line:
    at = [(x, _y(ranks[name], drawn)) if name in ranks else None for name, x in columns]
    name = result.row.id[:8] if result.sealed else result.title.striptags()
    ranked = ", ".join(f"{name} {rank}" for name, rank in ranks.items())
    return Line(
        label=name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…",
        sentence=f"{name}: {ranked}",
        points=[point for point in at if point],
        strokes=[(one, two) for one, two in pairwise(at) if one and two],
    )


def _y(rank: int, drawn: Sequence[int]) -> int:
    """Ranks that nothing shown has take no room."""
    return TOP + bisect_left(drawn, min(rank, drawn[-1])) * STEP_Y
