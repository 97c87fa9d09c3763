"""The topic leg: memories that somebody tagged with the query's words, or as another memory is.

Boundary: works on keyed hashes and ordinals; opens nothing.
"""

from __future__ import annotations

import numpy as np

from memory_store.index.topics import topic_matches
from memory_store.search.analysis import Analysis
from memory_store.search.candidates import Fetched, LegList
from memory_store.search.context import SearchContext
from memory_store.search.legs.depth import enough
from memory_store.search.likeness import LIKE
from memory_store.search.recipes import Recipe


def topic_leg(analysis: Analysis, context: SearchContext, recipe: Recipe, depth: int) -> Fetched:
    """Memories tagged with the query's words: words matched, then rarity, then the newest."""
    asked = (
        _asked_list(analysis, context, recipe, depth),
        _like_list(analysis, context, recipe, depth),
    )
    return Fetched(tuple(one for one in asked if one is not None))


def _asked_list(
    analysis: Analysis, context: SearchContext, recipe: Recipe, depth: int
) -> LegList | None:
    if not analysis.topics:
        return None
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

    return enough(best, depth, context, recipe)


def _like_list(
    analysis: Analysis, context: SearchContext, recipe: Recipe, depth: int
) -> LegList | None:
    """Memories that share the topics of one, by the rarity of what they share."""
    like, snapshot = analysis.like, context.snapshot
    if like is None or not like.topics:
        return None
    found = topic_matches(snapshot, like.topics, analysis.mask, (like.collection,))
    order = np.argsort(-found.rarity, kind="stable")
    shared = found.matched[order] / len(like.topics)

    def best(k: int) -> LegList:
        return LegList(
            "topic",
            tuple(found.ordinals[order][:k].tolist()),
            tuple(shared[:k].tolist()),
            LIKE,
            strengths=tuple(shared[:k].tolist()),
        )

    return enough(best, depth, context, recipe)
