"""Search for a pattern: tried on the few memories that a sealed index allows.

What a pattern cannot do without says which memories can match: texts, looked up as sealed trigrams,
or whole words. Only memories that may hold them are opened, 256 for a page, in the order of BM25 of
the words. A literal search tries a regular expression on RE2, whose time is linear in the text
whatever the pattern; a structural one compares syntax.

What a pattern needs is explained in :mod:`memory_store.search.query.regular_expressions`.

A result is a match and has a score of 1: how well its words fit is its ``fusion_score`` alone.

Boundary: reads opened text; keeps nothing of it. Patterns may be secrets and are never logged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np
from msgspec.structs import replace

from memory_store.errors import BadInputError
from memory_store.index.terms import keyword_scores, top_k
from memory_store.records import Match
from memory_store.records.degraded import Code, Degraded
from memory_store.records.explanation import Analyse, Fetch, Open
from memory_store.search.candidates import Candidate, Outcome, Scored
from memory_store.search.context import SearchContext
from memory_store.search.explain.literal_verdict import (
    LiteralSearch,
    explain_literally,
    why_literally,
)
from memory_store.search.opening import Opening, conditions
from memory_store.search.paging import coming
from memory_store.search.query.analysis import Analysis, Blinding, filters, ranked_as_code
from memory_store.search.query.holders import Holders
from memory_store.search.query.language import option_filters
from memory_store.search.query.patterns import ALL_MATCHES, MOST_MATCHES, PATTERNS, Pattern
from memory_store.search.query.plan import Plan, Search
from memory_store.search.trace import Trace
from memory_store.text.identifiers import CODE

MATCH = 1.0  # the score of what matches: it does, or it does not
MOST_CANDIDATES = 256  # tried for one page; search.md: "at most 256"
AT_ONCE = 256  # open at a time, where all are tried


def search_by_pattern(context: SearchContext, plan: Plan, trace: Trace) -> tuple[Search, Outcome]:
    """Find the memories that a pattern matches, ranked by its words.

    Raises :class:`BadInputError` (parameter ``q``) for a malformed pattern, (``all``) for a regular
    expression that no index can narrow where not all are asked for, (``sealed``) where nothing may
    be opened. A structural pattern is tried on source code alone, of its language where it is said.
    """
    options = plan.options
    if options.sealed:
        raise BadInputError(
            "sealed: a pattern can only be tried on opened text", parameter="sealed"
        )
    with trace.stage(Analyse) as note:
        pattern = PATTERNS[plan.mode](options.query, options.language)
        if pattern.needed.nothing and plan.mode == "literal" and not options.all_:
            raise BadInputError(
                "all: no index can narrow this pattern, for it needs no three characters in a row; "
                "add some, as in timeout=\\d+, or give --all in a terminal to try every memory",
                parameter="all",
            )
        note.words = tuple(pattern.needed.named())
    with trace.stage(Fetch) as fetching:
        search, candidates = _fetched(context, plan, pattern, trace)
        fetching.candidates = len(candidates)
    opening = Opening(context)
    everything = tuple(Scored(one, one.share) for one in candidates)
    still = coming(plan.place, search.snapshot, search.order(everything))[0] if plan.place else None
    chosen = candidates if still is None else [candidates[n] for n in still]
    left = 0 if options.all_ else max(0, len(chosen) - MOST_CANDIDATES)
    chosen = chosen[: len(chosen) - left]
    with trace.stage(Open) as trying:
        found, matches, cut = _try(pattern, search, chosen, opening)
        trying.opened, trying.matched = opening.opened, len(found)
    unread = "" if found else pattern.unread()  # what is found shows that it can be read
    trace.order("pattern", found)
    literal = LiteralSearch(search, pattern.needed, candidates, chosen, found)
    rows = tuple([one for one in found if plan.keeps(one.candidate.ordinal)][: options.limit])
    if options.explain:
        explain_literally(literal, rows)
    return search, Outcome(
        rows=rows,
        marker=lambda result: pattern.marker(matches.get(result.candidate.ordinal, ())),
        ranking=tuple(found),
        found=plan.offset + len(found),
        candidates=everything,
        refused=frozenset(one.ordinal for one in chosen).difference(
            one.candidate.ordinal for one in found
        ),
        matches=matches,
        opened=opening.opened,
        why=partial(why_literally, literal) if options.why else None,
        degraded=(
            *([_left(left, narrowed=not pattern.needed.nothing)] if left else []),
            *([_cut(cut, all_=options.all_)] if cut else []),
            *([Degraded(Code.UNREAD, unread)] if unread else []),
        ),
    )


def _cut(cut: int, *, all_: bool) -> Degraded:
    many = f"{cut:,} of these {'matches' if cut == 1 else 'match'} in more places than are listed"
    most = f"{ALL_MATCHES:,} of each are the most" if all_ else "--all in a terminal lists them"
    return Degraded(Code.LIMIT, f"{many}: {most}")


def _left(left: int, *, narrowed: bool) -> Degraded:
    why = "" if narrowed else "no index can narrow this pattern, for it holds no word: "
    return Degraded(
        Code.LIMIT,
        f"{why}{left:,} more memories may match and were not tried: the next page goes on with "
        "them, --all in a terminal tries all. Or add a word",
    )


def _try(
    pattern: Pattern, search: Search, chosen: Sequence[Candidate], opening: Opening
) -> tuple[list[Scored], dict[int, tuple[Match, ...]], int]:
    """Open candidates and try the pattern on each: those that match, with what those of this page
    match, and of how many of these that is not all.

    The title of a note is tried, too; that of a repository's file is its name, and no text.
    """
    most = ALL_MATCHES if search.options.all_ else MOST_MATCHES
    of_code = ranked_as_code(search.context)
    keep = conditions(search.analysis.parsed, search.options.conditions, search.trace)
    found, matched, cut = list[Scored](), dict[int, tuple[Match, ...]](), 0
    for some in _batches(chosen):
        for one in opening.open(some):
            titled = of_code is None or not of_code[one.candidate.ordinal]
            shown = len(matched) < search.options.limit and search.plan.keeps(one.candidate.ordinal)
            matches = pattern.found(one.opened, titled=titled, most=most + 1 if shown else 1)
            if matches is None:
                search.trace.drop(one.opened.id, "the pattern matches nothing in it")
            elif keep is None or keep(one.opened):
                found.append(one._replace(score=MATCH))
                if shown:
                    matched[one.candidate.ordinal] = matches[:most]
                    cut += len(matches) > most
        opening.close_all_but(one.candidate.ordinal for one in found)
    return found, matched, cut


def _batches(candidates: Sequence[Candidate]) -> Iterator[list[Candidate]]:
    waiting = iter(candidates)
    while some := list(islice(waiting, AT_ONCE)):
        yield some


def _fetched(
    context: SearchContext, plan: Plan, pattern: Pattern, trace: Trace
) -> tuple[Search, list[Candidate]]:
    """Memories that hold what the pattern needs, still sealed: ranked by BM25 of its words,
    then those without any, newest first."""
    snapshot, blinding, parsed = context.snapshot, Blinding(context), option_filters(plan.options)
    if plan.mode == "structural" and not parsed.types:
        parsed = replace(parsed, types=(CODE,))
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
    return search, candidates
