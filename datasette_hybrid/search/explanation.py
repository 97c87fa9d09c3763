"""The explanation of a search as the search page shows it: each result's way, then each stage.

Boundary: works on what :mod:`memory_store.access` left of the answer, so that a searcher
who may not read sees ranks and no more. The templates escape all text.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET, UnsetType

from memory_store.host import Account, Verdict, words
from memory_store.records import SearchResponse


@dataclass(frozen=True)
class TermView:
    """A part of a fusion score: ``percent`` of the whole score's scale, 0–100."""

    name: str
    place: str
    weight: str
    strength: str
    points: str
    percent: int


@dataclass(frozen=True)
class AccountView:
    """How one result came to its place."""

    way: tuple[words.Move, ...]
    terms: tuple[TermView, ...]
    score_name: str
    fusion_score: str
    boost: str
    rerank_score: str
    changes: tuple[tuple[str, str, str], ...]

    @property
    def moved(self) -> int:
        """Places won (above 0) or lost since fusion."""
        return sum(move.up for move in self.way)


@dataclass(frozen=True)
class WhyView:
    """The answer to why a memory is or is not among the results."""

    about: str
    returned: bool
    reason: str
    figures: tuple[tuple[str, str], ...]
    tables: tuple[words.Table, ...]
    account: AccountView | None


def account_views(response: SearchResponse) -> dict[str, AccountView]:
    """Id → how that result came to its place; empty unless the search explained itself."""
    return {id_: _account(account) for id_, account in words.accounts(response).items()}


def stages(response: SearchResponse) -> list[words.StageWords]:
    """The explanation, stage by stage."""
    return list(map(words.stage_words, response.explain))


def why_view(why: Verdict | None) -> WhyView | None:
    """What became of the memory asked about; ``None`` when none was."""
    if why is None:
        return None
    one = words.why_words(why)
    returned = bool(why.returned)
    without_reason = "it is among the results" if returned else "it is not among the results"
    return WhyView(
        about=words.why_about(why),
        returned=returned,
        reason=why.reason or without_reason,
        figures=one.figures,
        tables=one.tables,
        account=_account(why) if why.ranks else None,
    )


def _account(account: Account) -> AccountView:
    return AccountView(
        way=tuple(words.moves(account)),
        terms=tuple(map(_term, words.terms(account))),
        score_name=words.score_name(account),
        fusion_score=_hundredths(account.fusion_score),
        boost=words.boost_sentence(account),
        rerank_score=_hundredths(account.rerank_score),
        changes=tuple(
            (name, _hundredths(before), _hundredths(after))
            for name, before, after in words.changes(account)
        ),
    )


def _term(term: words.Term) -> TermView:
    return TermView(
        name=term.name,
        place=words.ordinal(term.rank) if term.rank else "–",
        weight="–" if term.weight is None else f"{term.weight:.3g}",
        strength="–" if term.strength is None else f"{term.strength:.0%}",
        points=_hundredths(term.points),
        percent=max(0, min(100, round(term.points * 100))),
    )


def _hundredths(score: float | UnsetType | None) -> str:
    """A score of 0–1 as the page shows scores: ``83``; one decimal below 10."""
    if score is None or score is UNSET:
        return ""
    shown = score * 100
    return f"{shown:.0f}" if abs(shown) >= 10 or shown == 0 else f"{shown:.1f}"
