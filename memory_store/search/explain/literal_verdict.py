"""Why a literal search did, or did not, find a memory, and in which order.

Boundary: opens nothing. It says what the search itself found out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec import UNSET, Struct

from memory_store.index.terms import has_term
from memory_store.records.explanation import (
    Account,
    Analyse,
    Contribution,
    Open,
    Verdict,
    WordsHeld,
)
from memory_store.search.adjustments import Scored
from memory_store.search.candidates import Candidate
from memory_store.search.context import SearchContext
from memory_store.search.explain.account import Way, count_filters, ranks, ways_of
from memory_store.search.explain.verdict import Fields, left_out, lost, placed, unknown
from memory_store.search.query.analysis import Blinding
from memory_store.search.query.language import option_filters
from memory_store.search.query.plan import Plan
from memory_store.search.query.regular_expressions import Needs
from memory_store.search.trace import Trace


class LiteralSearch(Struct, frozen=True):
    """A literal search as it went: what the pattern ``needed``, which memories hold that
    (``candidates``), how many were ``tried`` and what was ``found`` among them."""

    context: SearchContext
    plan: Plan
    needed: Needs
    candidates: tuple[Candidate, ...]
    tried: int
    found: tuple[Scored, ...]
    trace: Trace


def explain_literally(search: LiteralSearch, rows: Sequence[Scored]) -> None:
    """Add to the trace what the filters let through and how each row came to its place.

    ``rows`` are the page's.
    """
    context, plan, trace = search.context, search.plan, search.trace
    count_filters(trace.of(Analyse), context, plan, option_filters(plan.options))
    ways = ways_of(trace, [row.candidate.ordinal for row in rows])
    trace.of(Open).results = tuple(
        _account(rank, row, ways[row.candidate.ordinal])
        for rank, row in enumerate(rows, plan.offset + 1)
    )


def _account(rank: int, row: Scored, way: Way) -> Account:
    """One result: its place by the pattern's words, then among those that match."""
    candidate = row.candidate
    score = round(candidate.share, 4)
    by_words = Contribution(
        "keyword",
        "original",
        rank=candidate.keyword_rank or UNSET,
        term=candidate.share,
        points=score,
    )
    return Account(
        rank=rank,
        id=candidate.id,
        fusion_rank=candidate.fusion_rank,
        keyword_rank=candidate.keyword_rank,
        fusion_score=score,
        contributions=(by_words,),
        ranks=ranks(rank, row, way, "keyword"),
        steps=(),
        score=score,
    )


def why_literally(search: LiteralSearch, shown: Collection[str]) -> Verdict:
    """What became of the memory named by the option ``why``; see :func:`why`."""
    plan, context = search.plan, search.context
    id_ = str(plan.options.why)
    ordinal = context.snapshot.ordinal_of(id_)
    if ordinal is None:
        return unknown(id_)
    return Verdict(id=id_, returned=id_ in shown, **_fate(search, ordinal, shown))


def _fate(search: LiteralSearch, ordinal: int, shown: Collection[str]) -> Fields:
    """Where the memory's way ended."""
    plan, context, id_ = search.plan, search.context, search.context.snapshot.id(ordinal)
    refused = left_out(option_filters(plan.options), context, plan.options, ordinal)
    if refused is not None:
        return refused
    places = {one.ordinal: place for place, one in enumerate(search.candidates, 1)}
    if ordinal not in places:
        return _lacks_words(search, ordinal)
    by_words = {"keyword_rank": places[ordinal]}
    if places[ordinal] > search.tried:
        reason = (
            f"it was not tried: by the pattern's words it stands at place {places[ordinal]}, "
            f"and the first {search.tried} are opened"
        )
        return {**by_words, "stage": "fetch", "reason": reason}
    if id_ in search.trace.dropped:
        reason = f"it was opened and left out: {search.trace.dropped[id_]}"
        return {**by_words, "stage": "open", "reason": reason}
    order = [one.candidate.ordinal for one in search.found]
    if ordinal not in order:
        return {**by_words, **lost(plan, search.trace, ordinal)}
    return {**by_words, **placed(plan, id_, order.index(ordinal) + 1, shown)}


def _lacks_words(search: LiteralSearch, ordinal: int) -> Fields:
    """The pattern's words that the sealed memory does not hold."""
    blinding = Blinding(search.context)

    def held(word: str) -> bool:
        return bool(has_term(search.context.snapshot, blinding.term(word))[ordinal])

    lacking = list(dict.fromkeys(_lacking(search.needed, held)))
    return {
        "stage": "fetch",
        "reason": f"it was not tried: the pattern needs {'; '.join(lacking)}",
        "words": WordsHeld(
            held=tuple(word for word in search.needed.all_words() if held(word)),
            missing=tuple(word for word in search.needed.all_words() if not held(word)),
        ),
    }


def _lacking(needed: Needs, held: Callable[[str], bool]) -> Iterator[str]:
    for word in sorted(needed.words):
        if not held(word):
            yield f"the word {word!r}, which it lacks"
    for branches in needed.choices:
        if not any(_holds(branch, held) for branch in branches):
            words = [word for branch in branches for word in branch.all_words()]
            yield f"one of {', '.join(map(repr, words))}, which it lacks"


def _holds(needed: Needs, held: Callable[[str], bool]) -> bool:
    return all(map(held, needed.words)) and all(
        any(_holds(branch, held) for branch in branches) for branches in needed.choices
    )
