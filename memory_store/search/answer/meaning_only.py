"""Whether an answer rests on meaning alone: no memory that was searched holds a word of the query.

The nearest vectors are near to something in every vault, and look like hits. The sentence says only
what a keyword search for the same words would show the same caller.

Boundary: sees the query's words as keyed hashes; opens nothing.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from memory_store.index.terms import has_term
from memory_store.search.query.analysis import leaves_out_words

if TYPE_CHECKING:
    from memory_store.search.candidates import Fetched
    from memory_store.search.context import SearchContext
    from memory_store.search.query.analysis import Analysis
    from memory_store.search.query.plan import Plan

BY_NAME = ("keyword", "topic")  # the legs that find what is called by the query's own words


def meaning_alone(
    analysis: Analysis, context: SearchContext, plan: Plan, fetched: Fetched
) -> str | None:
    """The sentence that calls what was found merely nearest; ``None`` where it is not.

    For hybrid searches with words alone: who asks for vectors, or for what is like a memory, asked
    for no words. Memories that are to be indexed again may hold words that no search finds yet.
    """
    if plan.mode != "hybrid" or analysis.like or not plan.shown:
        return None
    words = (*analysis.groups, *chain.from_iterable(analysis.variant_groups))
    named = any(one.ordinals for one in fetched.lists if one.leg in BY_NAME)
    snapshot, mask = context.snapshot, analysis.mask
    if not words or named or (snapshot.stale & mask).any():
        return None
    # Not every recipe has a keyword leg that would have found them.
    if any((has_term(snapshot, word) & mask).any() for word in words):
        return None
    parsed = analysis.parsed
    filtered = parsed.has_filters or parsed.excluded or plan.options.status != "all"
    searched = "No memory that the filters let through" if filtered else "No memory"
    left_out = " but function words" if leaves_out_words(analysis) else ""
    return f"{searched} holds any of these words{left_out}; these are the nearest in meaning."
