"""Literal search: a regular expression, tried on the few memories a sealed index allows.

A pattern's *whole words* say which memories can match: they are looked up as keyed hashes, and
only memories that hold them are opened, at most 256. The expression runs on RE2, whose time is
linear in the text whatever the pattern, so no pattern can hang a search.

What is whole is explained in :mod:`memory_store.search.query.regular_expressions`.

Boundary: reads opened text; keeps nothing of it. Patterns may be secrets and are never logged.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from memory_store.errors import BadInputError
from memory_store.index.terms import has_term, keyword_scores, top_k
from memory_store.records import Memory
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
from memory_store.search.paging import members
from memory_store.search.query.analysis import Analysis, Blinding, filters
from memory_store.search.query.language import is_delimited, option_filters
from memory_store.search.query.plan import Plan, Search
from memory_store.search.query.regular_expressions import Needs, needs
from memory_store.search.trace import Trace

if TYPE_CHECKING:
    from memory_store.index.snapshot import Mask

MOST_CANDIDATES = 256  # search.md: "at most 256"
MOST_PATTERN = 1_000  # characters: more is a program, not a pattern
MAX_MEMORY = 8 << 20  # bytes RE2 may take for one pattern
MOST_MATCHES = 200  # marked in one text


class PatternMarker:
    """Marks what a pattern matches (see :class:`memory_store.search.answer.previews.Marker`)."""

    def __init__(self, pattern: Any) -> None:
        self._pattern = pattern

    def matches(self, memory: Memory) -> bool:
        """Whether the pattern is anywhere in title or text."""
        return any(self._pattern.search(text) for text in (memory.text, memory.title))

    def spans(self, text: str) -> list[tuple[int, int]]:
        found = []
        for match in self._pattern.finditer(text):
            if match.end() > match.start():
                found.append(match.span())
            if len(found) >= MOST_MATCHES:
                break
        return found

    def met(self, text: str) -> set[str]:
        return {text[start:end] for start, end in self.spans(text)}

    def densest(self, text: str, width: int) -> int | None:
        match = self._pattern.search(text)
        return None if match is None else int(match.start())


def search_literally(context: SearchContext, plan: Plan, trace: Trace) -> tuple[Search, Outcome]:
    """Find the memories a pattern matches, ranked by its words.

    Raises :class:`BadInputError` (parameter ``q``) for a malformed pattern or one without a whole
    word, (``sealed``) when nothing may be opened to look.
    """
    options = plan.options
    if options.sealed:
        raise BadInputError(
            "sealed: a pattern can only be tried on opened text", parameter="sealed"
        )
    with trace.stage(Analyse) as note:
        source, marker = compiled(options.query)
        needed = needs(source)
        if needed.nothing:
            raise BadInputError(
                "q: the pattern has no whole word to look up; add one, as in timeout=\\d+",
                parameter="q",
            )
        note.words = tuple(needed.all_words())
    with trace.stage(Fetch) as fetching:
        search, candidates = _fetched(context, plan, needed, trace)
        plan = search.plan
        fetching.candidates = len(candidates)
    opening = Opening(context.open_memories)
    with trace.stage(Open) as trying:
        found = _matching(opening.open(candidates[:MOST_CANDIDATES]), search, marker)
        trying.opened, trying.matched = opening.opened, len(found)
    trace.order("pattern", found)
    found = above(plan, found)
    trace.order("min_score", found)
    left = len(candidates) - MOST_CANDIDATES
    literal = LiteralSearch(search, needed, tuple(candidates), MOST_CANDIDATES, tuple(found))
    rows = tuple(to_come(plan, found)[: options.limit])
    if options.explain:
        explain_literally(literal, rows)
    return search, Outcome(
        rows=rows,
        marker=lambda result: marker,
        ranking=tuple(found),
        found=len(candidates),
        opened=opening.opened,
        why=partial(why_literally, literal) if options.why else None,
        degraded=(f"{left:,} more memories hold these words and were not tried. Add a word",)
        if left > 0
        else (),
    )


def _fetched(
    context: SearchContext, plan: Plan, needed: Needs, trace: Trace
) -> tuple[Search, list[Candidate]]:
    """Memories that hold what the pattern needs, ranked by BM25 of its words, still sealed.

    On a later page only what the first one has found is tried again.
    """
    snapshot, blinding, parsed = context.snapshot, Blinding(context), option_filters(plan.options)
    words = tuple(needed.all_words())
    groups = tuple(map(blinding.term, words))
    mask = snapshot.mask(filters(parsed, context, plan.options, blinding))
    mask &= _holding(needed, context, blinding)
    analysis = Analysis(parsed, "", words, groups, (), (), mask, symbol_like=True)
    search = Search(context, plan, analysis, trace)
    found = keyword_scores(snapshot, groups, k1=plan.recipe.k1, b=plan.recipe.b, mask=mask)
    best = top_k(snapshot, found.ordinals, found.scores, len(found.ordinals))
    ordinals = best.ordinals.tolist()
    ranked = enumerate(zip(ordinals, best.scores.tolist(), strict=True), start=1)
    candidates = [
        Candidate(o, snapshot.id(o), snapshot.type(o), score / (1.0 + score), rank, 1.0, rank)
        for rank, (o, score) in ranked
    ]
    if plan.place is None:
        return search, candidates
    held = np.zeros(snapshot.size, dtype=np.bool_)
    held[ordinals] = True
    known = members(plan.place, context.page_keys(), snapshot, held)
    kept = [one for one in candidates if one.ordinal in known.waiting | known.done]
    return replace(search, plan=replace(plan, waiting=known.waiting)), kept


def _matching(opened: Sequence[Scored], search: Search, marker: PatternMarker) -> list[Scored]:
    """The opened memories that the pattern and the metadata asked for match."""
    keep = conditions(search.analysis.parsed, search.options.conditions, search.trace)
    found = []
    for one in opened:
        if not marker.matches(one.opened):
            search.trace.drop(one.opened.id, "the pattern matches nothing in it")
        elif keep is None or keep(one.opened):
            found.append(one)
    return found


def compiled(query: str) -> tuple[str, PatternMarker]:
    """The pattern's source (without ``/…/``) and the compiled pattern.

    Raises :class:`BadInputError` (parameter ``q``) for a pattern that is malformed or too long.
    """
    import re2

    source = query.strip()
    delimited = is_delimited(source)
    if delimited:
        source = source[1:-1]
    if len(source) > MOST_PATTERN:
        raise BadInputError(
            f"q: the pattern has more than {MOST_PATTERN:,} characters", parameter="q"
        )
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    try:
        return source, PatternMarker(re2.compile(source, options=options))
    except re2.error as error:
        reason = error.args[0] if error.args else "malformed"
        shown = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise BadInputError(f"q: not a regular expression: {shown}", parameter="q") from None


def _holding(needed: Needs, context: SearchContext, blinding: Blinding) -> Mask:
    """bool [documents]: those that hold all words and one alternative of every choice."""
    held = np.ones(context.snapshot.size, dtype=np.bool_)
    for word in needed.words:
        held &= has_term(context.snapshot, blinding.term(word))
    for branches in needed.choices:
        any_branch = np.zeros(context.snapshot.size, dtype=np.bool_)
        for branch in branches:
            any_branch |= _holding(branch, context, blinding)
        held &= any_branch
    return held
