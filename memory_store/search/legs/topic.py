"""The topic leg: memories that somebody tagged with the query's words.

Boundary: works on keyed hashes and ordinals; opens nothing.
"""

from __future__ import annotations

import numpy as np

from memory_store.index.topics import topic_matches
from memory_store.search.analysis import Analysis
from memory_store.search.candidates import Fetched, LegList
from memory_store.search.context import SearchContext
from memory_store.search.legs.depth import enough
from memory_store.search.recipes import Recipe


def topic_leg(analysis: Analysis, context: SearchContext, recipe: Recipe, depth: int) -> Fetched:
    """Memories tagged with the query's words: words matched, then rarity, then the newest."""
    if not analysis.topics:
        return Fetched(())
    found = topic_matches(context.snapshot, analysis.topics, analysis.mask)
    matched = found.matched / len(analysis.topics)
    words = len(set(analysis.keywords)) or 1
    asked = np.minimum(found.matched / words, 1.0)

    def best(k: int) -> LegList:
        return LegList(
            "topic",
            tuple(found.ordinals[:k].tolist()),
            tuple(matched[:k].tolist()),
            strengths=tuple(asked[:k].tolist()),
        )

    return Fetched((enough(best, depth, context, recipe),))
