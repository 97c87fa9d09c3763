"""A bench: small sealed vaults, searched in the way that a system is said to search.

Each document has a test file of its own, a table of its statements in our words: what it says, the
figure, and how that is seen here, through a search where a search can show it, else through the
stage that does it. ``pytest -v`` reads as the document does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from memory_store.errors import BadInputError
from memory_store.records import MemoryDraft, SearchResponse
from memory_store.search.candidates import Candidate, LegList
from memory_store.search.fusion.rank_fusion import fuse
from memory_store.search.recipes import Recipe
from memory_store.store import MemoryStore

Statement = tuple[str, Any, Callable[..., Any]]


def each_of(statements: Sequence[Statement]) -> pytest.MarkDecorator:
    """A test for each statement: what a document says, its figure, and how that is seen here."""
    named = [pytest.param(figure, observe, id=said) for said, figure, observe in statements]
    return pytest.mark.parametrize(("figure", "observe"), named)


def as_said(figure: Any) -> Any:
    """What has to be seen: a fraction but for its rounding, anything else to the letter."""
    return pytest.approx(figure) if isinstance(figure, float) else figure


LONG_AGO = "Of the weather in the year before there is little to say and much was said of it. "


class Bench:
    """What the tables of statements observe with."""

    def __init__(self, make_store: Callable[..., MemoryStore]) -> None:
        self._make_store = make_store
        self._made = 0

    def vault(self, drafts: Iterable[MemoryDraft | str] = (), *, embed: bool = True) -> MemoryStore:
        """A vault of its own with these memories."""
        self._made += 1
        store = self._make_store(f"bench-{self._made}.db")
        texts = [MemoryDraft(one) if isinstance(one, str) else one for one in drafts]
        store.add_many(texts, embed=embed)
        return store

    def gardens(self, number: int, **fields: Any) -> MemoryStore:
        """So many notes that every leg finds, all different."""
        return self.vault(
            MemoryDraft(f"winter garden {n}", ref=str(n), **fields) for n in range(number)
        )


def found(response: SearchResponse, leg: str, kind: str = "original") -> int:
    """How many candidates a leg came back with, as ``explain`` says."""
    (fetch,) = (report for report in response.explain if report.stage == "fetch")
    lists = fetch.details["lists"]
    (number,) = (one["found"] for one in lists if (one["leg"], one["kind"]) == (leg, kind))
    return int(number)


def told_weights(response: SearchResponse) -> dict[str, float]:
    """The weight of each list of a typed query, as ``explain`` says."""
    (report,) = (report for report in response.explain if report.stage == "adjust")
    parts = [part for row in report.details["results"] for part in row["contributions"]]
    return {f"{part['leg']} {part['kind']}": part["weight"] for part in parts if "rank" in part}


def steps(response: SearchResponse, ref: str) -> list[str]:
    """The names of what changed a result's score, in order, as ``explain`` says."""
    (report,) = (report for report in response.explain if report.stage == "adjust")
    (row,) = (row for row in response.rows if row.ref == ref)
    (reported,) = (one for one in report.details["results"] if one["id"] == row.id)
    return [one["step"] for one in reported["steps"]]


def fusion_ranks(response: SearchResponse) -> dict[str, int]:
    """The place of each row after fusion, by id, as ``explain`` says."""
    (report,) = (report for report in response.explain if report.stage == "adjust")
    return {one["id"]: int(one["fusion_rank"]) for one in report.details["results"]}


def reranked(response: SearchResponse) -> int:
    """How many a model read, as the answer's counts say."""
    return int(response.counts.split()[1])


def refused(search: Callable[[], object]) -> str | None:
    """The parameter that a search is refused for; ``None`` if it is not."""
    try:
        search()
    except BadInputError as refusal:
        return refusal.parameter
    return None


def candidate(number: int = 0, *, rank: int = 1, share: float = 0.5, **known: Any) -> Candidate:
    """One candidate as fusion leaves it."""
    return Candidate(number, f"id-{number}", known.pop("type_", "fact"), share, rank, **known)


def fused(recipe: Recipe, *lists: LegList, types: dict[int, str] | None = None) -> dict:  # type: ignore[type-arg]
    """The raw fusion score of each item of some lists."""
    known = {n: "fact" for one in lists for n in one.ordinals} | (types or {})
    order = fuse(lists, recipe, types=known, tie_break=lambda _: {n: (n,) for n in known})
    return {one.ordinal: one.score for one in order}


def long_text(fact: str, characters: int = 6_000) -> str:
    """A text of about so many characters whose last sentence is the only one to say ``fact``."""
    return f"{LONG_AGO * (characters // len(LONG_AGO))}\n\n{fact}"
