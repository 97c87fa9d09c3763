"""Search for a pattern: tried on the few memories that a sealed index allows.

What a pattern cannot do without says which memories can match: texts, looked up as sealed trigrams,
or whole words. Only memories that may hold them are opened, 256 for a page, in the order of BM25 of
the words. A literal search tries a regular expression on RE2, whose time is linear in the text
whatever the pattern; a structural one compares syntax.

What a pattern needs is explained in :mod:`memory_store.search.query.regular_expressions`.

Boundary: reads opened text; keeps nothing of it. Patterns may be secrets and are never logged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memory_store.errors import BadInputError
from memory_store.index.terms import keyword_scores, top_k
from memory_store.records import Match
from memory_store.records.explanation import Analyse, Fetch, Open
from memory_store.search.candidates import Candidate, Outcome, Scored
from memory_store.search.context import SearchContext
from memory_store.search.explain.literal_verdict import (
    LiteralSearch,
    explain_literally,
    why_literally,
)
from memory_store.search.fusion.pool import above, to_come
from memory_store.search.opening import Opening, conditions
from memory_store.search.paging import Members, members
from memory_store.search.query.analysis import Analysis, Blinding, filters
from memory_store.search.query.holders import Holders
from memory_store.search.query.language import option_filters
from memory_store.search.query.patterns import PATTERNS, Pattern
from memory_store.search.query.plan import Plan, Search
from memory_store.search.trace import Trace
from memory_store.text.identifiers import CODE

MOST_CANDIDATES = 256  # tried for one page; search.md: "at most 256"
AT_ONCE = 256  # open at a time, where all are tried


class _Tried(Struct):
    """What came of the candidates that were tried: those that match, with what, and how many at
    the end of the list are ``left``: counted so, what is written between two pages moves none."""

    found: list[Scored]
    matches: dict[int, tuple[Match, ...]]
    left: int


def search_by_pattern(context: SearchContext, plan: Plan, trace: Trace) -> tuple[Search, Outcome]:
    """Find the memories that a pattern matches, ranked by its words.

    Raises :class:`BadInputError` (parameter ``q``) for a malformed pattern, (``all``) for one that
    no index can narrow where not all are asked for, (``sealed``) where nothing may be opened.
    """
    options = plan.options
    if options.sealed:
        raise BadInputError(
            "sealed: a pattern can only be tried on opened text", parameter="sealed"
        )
    if plan.mode == "structural" and not options.type:
        plan = replace(plan, options=replace(options, type=(CODE,)))
    with trace.stage(Analyse) as note:
        pattern = PATTERNS[plan.mode](options.query, options.language)
        if pattern.needed.nothing and not options.all_:
            raise BadInputError(
                "all: no index can narrow this pattern, for it needs no three characters in a row; "
                "add some, as in timeout=\\d+, or give --all (all=1) to open every memory and look",
                parameter="all",
            )
        note.words = tuple(pattern.needed.named())
    with trace.stage(Fetch) as fetching:
        search, candidates, known = _fetched(context, plan, pattern, trace)
        plan = search.plan
        fetching.candidates = len(candidates)
    opening = Opening(context.open_memories)
    with trace.stage(Open) as trying:
        came = _try(pattern, search, candidates, opening, known)
        trying.opened, trying.matched = opening.opened, len(came.found)
    found = came.found
    trace.order("pattern", found)
    found = above(plan, found)
    trace.order("min_score", found)
    left, tried = came.left, len(candidates) - came.left
    literal = LiteralSearch(search, pattern.needed, tuple(candidates), tried, tuple(found))
    rows = tuple(to_come(plan, found)[: options.limit])
    if options.explain:
        explain_literally(literal, rows)
    return search, Outcome(
        rows=rows,
        marker=lambda result: pattern.marker(came.matches.get(result.candidate.ordinal, ())),
        ranking=tuple(found),
        found=len(candidates),
        untried=left,
        matches=came.matches,
        opened=opening.opened,
        why=partial(why_literally, literal) if options.why else None,
        degraded=(_left(left),) if left else (),
    )


def _left(left: int) -> str:
    return (
        f"{left:,} more memories may match and were not tried: the next page goes on with them, "
        "--all (all=1) tries all. Or add a word"
    )


def _try(
    pattern: Pattern,
    search: Search,
    candidates: Sequence[Candidate],
    opening: Opening,
    known: Members | None,
) -> _Tried:
    """Open candidates and try the pattern on each.

    A page tries those of the list that come next. As long as something that an earlier page has
    found is to be shown, what is ``known`` from there is tried again, and nothing else.
    """
    plan, place, count = search.plan, search.plan.place, len(candidates)
    left = count if place is None else min(place.tried, count)
    chosen = list(candidates[count - left :])
    if known is not None and known.waiting:
        wanted = known.waiting | known.done
        chosen = [one for one in candidates if one.ordinal in wanted]
    elif plan.options.all_:
        left = 0
    else:
        chosen, left = chosen[:MOST_CANDIDATES], max(0, left - MOST_CANDIDATES)
    keep = conditions(search.analysis.parsed, plan.options.conditions, search.trace)
    came = _Tried([], {}, left)
    for some in _batches(chosen):
        for one in opening.open(some):
            matches = pattern.found(one.opened)
            if matches is None:
                search.trace.drop(one.opened.id, "the pattern matches nothing in it")
            elif keep is None or keep(one.opened):
                came.found.append(one)
                came.matches[one.candidate.ordinal] = matches
        opening.close_all_but(one.candidate.ordinal for one in came.found)
    return came


def _batches(candidates: Sequence[Candidate]) -> Iterator[list[Candidate]]:
    waiting = iter(candidates)
    while some := list(islice(waiting, AT_ONCE)):
        yield some


def _fetched(
    context: SearchContext, plan: Plan, pattern: Pattern, trace: Trace
) -> tuple[Search, list[Candidate], Members | None]:
    """Memories that hold what the pattern needs, still sealed: ranked by BM25 of its words,
    then those without any, newest first."""
    snapshot, blinding, parsed = context.snapshot, Blinding(context), option_filters(plan.options)
    words = tuple(pattern.needed.likely_words())
    groups = tuple(map(blinding.term, words))
    mask = snapshot.mask(filters(parsed, context, plan.options, blinding))
    mask &= Holders(context).of(pattern.needed)
    analysis = Analysis(parsed, "", words, groups, (), (), mask, symbol_like=True)
    search = Search(context, plan, analysis, trace)
    found = keyword_scores(snapshot, groups, k1=plan.recipe.k1, b=plan.recipe.b, mask=mask)
    best = top_k(snapshot, found.ordinals, found.scores, len(found.ordinals))
    listed = list(zip(best.ordinals.tolist(), best.scores.tolist(), strict=True))
    rest = mask.copy()
    rest[best.ordinals] = False
    others = np.flatnonzero(rest)
    newest = others[np.argsort(-snapshot.created[others], kind="stable")]
    listed += [(ordinal, 0.0) for ordinal in newest.tolist()]
    candidates = [
        Candidate(o, snapshot.id(o), snapshot.type(o), score / (1.0 + score), rank, 1.0, rank)
        for rank, (o, score) in enumerate(listed, start=1)
    ]
    if plan.place is None or not plan.place.waiting:
        return search, candidates, None
    held = np.zeros(snapshot.size, dtype=np.bool_)
    held[[ordinal for ordinal, _ in listed]] = True
    known = members(plan.place, context.page_keys(), snapshot, held)
    return replace(search, plan=replace(plan, waiting=known.waiting)), candidates, known
