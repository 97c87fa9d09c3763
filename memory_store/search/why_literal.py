"""Why a literal search did, or did not, find a memory.

Boundary: as :mod:`memory_store.search.why`: opens nothing, tells what the search itself found out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from memory_store.index.terms import has_term
from memory_store.search.adjustments import Scored
from memory_store.search.analysis import Blinding
from memory_store.search.candidates import Candidate
from memory_store.search.context import SearchContext
from memory_store.search.patterns import Needs
from memory_store.search.planning import Plan
from memory_store.search.query import option_filters
from memory_store.search.tracing import Trace
from memory_store.search.why import left_out, lost, placed, unknown


@dataclass(frozen=True, slots=True)
class LiteralSearch:
    """A literal search as it went: what the pattern ``needed``, which memories hold that
    (``candidates``), how many were ``tried`` and what was ``found`` among them."""

    context: SearchContext
    plan: Plan
    needed: Needs
    candidates: tuple[Candidate, ...]
    tried: int
    found: tuple[Scored, ...]
    trace: Trace


def why_literally(search: LiteralSearch, shown: Collection[str]) -> dict[str, Any]:
    """What became of the memory named by the option ``why``; see :func:`why`."""
    plan, context = search.plan, search.context
    id_ = str(plan.options.why)
    ordinal = context.snapshot.ordinal_of(id_)
    if ordinal is None:
        return unknown(id_)
    told: dict[str, Any] = {"id": id_, "returned": id_ in shown}
    refused = left_out(option_filters(plan.options), context, plan.options, ordinal)
    if refused is not None:
        return told | refused
    places = {one.ordinal: place for place, one in enumerate(search.candidates, 1)}
    if ordinal not in places:
        return told | _lacks_words(search, ordinal)
    told["keyword_rank"] = places[ordinal]
    if places[ordinal] > search.tried:
        reason = (
            f"it was not tried: by the pattern's words it stands at place {places[ordinal]}, "
            f"and the first {search.tried} are opened"
        )
        return {**told, "stage": "fetch", "reason": reason}
    if id_ in search.trace.dropped:
        reason = f"it was opened and left out: {search.trace.dropped[id_]}"
        return {**told, "stage": "open", "reason": reason}
    ranks = {one.candidate.ordinal: rank for rank, one in enumerate(search.found, 1)}
    if ordinal not in ranks:
        return {**told, **lost(plan, search.trace, ordinal)}
    return {**told, **placed(plan, id_, ranks[ordinal], shown)}


def _lacks_words(search: LiteralSearch, ordinal: int) -> dict[str, Any]:
    """The pattern's words that the sealed memory does not hold."""
    blinding = Blinding(search.context)

    def held(word: str) -> bool:
        return bool(has_term(search.context.snapshot, blinding.term(word))[ordinal])

    lacking = list(dict.fromkeys(_lacking(search.needed, held)))
    return {
        "stage": "fetch",
        "reason": f"it was not tried: the pattern needs {'; '.join(lacking)}",
        "words": {
            "held": [word for word in search.needed.all_words() if held(word)],
            "missing": [word for word in search.needed.all_words() if not held(word)],
        },
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
