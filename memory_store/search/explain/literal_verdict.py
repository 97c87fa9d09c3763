"""Why a literal search did, or did not, find a memory, and in which order.

Boundary: opens nothing. It says what the search itself found out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import UNSET, Struct

from memory_store.records.explanation import (
    Account,
    Analyse,
    Contribution,
    Open,
    Verdict,
    WordsHeld,
)
from memory_store.search.candidates import Candidate, Scored
from memory_store.search.explain.account import Way, count_filters, ranks, ways_of
from memory_store.search.explain.verdict import Fields, left_out, lost, placed, unknown
from memory_store.search.query.holders import Holders
from memory_store.search.query.plan import Search
from memory_store.search.query.regular_expressions import Needs


class LiteralSearch(Struct, frozen=True):
    """A literal search as it went: what the pattern ``needed``, which memories hold that
    (``candidates``), which were ``tried`` and what was ``found`` among them."""

    search: Search
    needed: Needs
    candidates: Sequence[Candidate]
    tried: Sequence[Candidate]
    found: Sequence[Scored]


def explain_literally(literal: LiteralSearch, rows: Sequence[Scored]) -> None:
    """Add to the trace what the filters let through and how each row came to its place.

    ``rows`` are the page's.
    """
    search, trace = literal.search, literal.search.trace
    count_filters(trace.of(Analyse), search)
    ways = ways_of(trace, [row.candidate.ordinal for row in rows])
    trace.of(Open).results = tuple(
        _account(rank, row, ways[row.candidate.ordinal])
        for rank, row in enumerate(rows, search.plan.offset + 1)
    )


def _account(rank: int, row: Scored, way: Way) -> Account:
    """One result: its place by the pattern's words, then among those that match."""
    candidate = row.candidate
    fit = round(candidate.share, 4)
    by_words = Contribution(
        "keyword",
        "original",
        rank=candidate.keyword_rank or UNSET,
        term=candidate.share,
        points=fit,
    )
    return Account(
        rank=rank,
        id=candidate.id,
        fusion_rank=candidate.fusion_rank,
        keyword_rank=candidate.keyword_rank,
        fusion_score=fit,
        contributions=(by_words,),
        ranks=ranks(rank, row, way, "keyword"),
        steps=(),
        score=row.score,
    )


def why_literally(literal: LiteralSearch, shown: Collection[str]) -> Verdict:
    """What became of the memory named by the option ``why``; see :func:`why`."""
    id_ = str(literal.search.options.why)
    ordinal = literal.search.snapshot.ordinal_of(id_)
    if ordinal is None:
        return unknown(id_)
    return Verdict(id=id_, returned=id_ in shown, **_fate(literal, ordinal, shown))


def _fate(literal: LiteralSearch, ordinal: int, shown: Collection[str]) -> Fields:
    """Where the memory's way ended."""
    search, dropped = literal.search, literal.search.trace.dropped
    refused = left_out(search, ordinal)
    if refused is not None:
        return refused
    places = {one.ordinal: place for place, one in enumerate(literal.candidates, 1)}
    if ordinal not in places:
        return _lacks(literal, ordinal)
    by_words = {"keyword_rank": places[ordinal]}
    tried = [places[one.ordinal] for one in literal.tried]
    if places[ordinal] not in tried:
        if tried and places[ordinal] < tried[-1]:
            return {**by_words, "stage": "page", "reason": "an earlier page has tried it"}
        reason = (
            f"it was not tried: by the pattern's words it stands at place {places[ordinal]}, "
            f"and the first {tried[-1] if tried else 0} are opened"
        )
        return {**by_words, "stage": "fetch", "reason": reason}
    id_ = search.snapshot.id(ordinal)
    if id_ in dropped:
        reason = f"it was opened and left out: {dropped[id_]}"
        return {**by_words, "stage": "open", "reason": reason}
    order = [one.candidate.ordinal for one in literal.found]
    if ordinal not in order:
        return {**by_words, **lost(search, ordinal)}
    rank = search.plan.offset + order.index(ordinal) + 1
    return {**by_words, **placed(search.plan, id_, rank, shown)}


def _lacks(literal: LiteralSearch, ordinal: int) -> Fields:
    """What the pattern needs and the sealed memory does not hold."""
    holders = Holders(literal.search.context)
    lacking = dict.fromkeys(holders.lacking(literal.needed, ordinal))
    held = {name: bool(mask[ordinal]) for name, mask in holders.each(literal.needed)}
    return {
        "stage": "fetch",
        "reason": f"it was not tried: the pattern needs {'; '.join(lacking)}",
        "words": WordsHeld(
            held=tuple(name for name, there in held.items() if there),
            missing=tuple(name for name, there in held.items() if not there),
        ),
    }
