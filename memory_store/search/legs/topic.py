"""The topic leg: memories tagged with the query's words, or as another memory is.

Boundary: works on keyed hashes and ordinals; opens nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from memory_store.index.topics import topic_matches
from memory_store.search.candidates import Fetched, LegList
from memory_store.search.context import SearchContext
from memory_store.search.legs.depth import enough
from memory_store.search.query.analysis import Analysis
from memory_store.search.query.more_like_this import LIKE, Likeness
from memory_store.search.recipes import Recipe

NEAREST = 256  # of the memories that share topics: put in order by their vectors


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
    """Memories that share the topics of one: by the rarity of what they share, equal ones by how
    near they are to it, then the newest. Scores are shares of the best one's rarity."""
    like, snapshot = analysis.like, context.snapshot
    if like is None or not like.topics:
        return None
    found = topic_matches(snapshot, like.topics, analysis.mask, (like.collection,))
    ordinals, shares = found.ordinals, found.rarity / found.rarity.max(initial=0.0)
    order = np.lexsort((_places(like, ordinals, context), -shares))

    def best(k: int) -> LegList:
        shared = tuple(shares[order][:k].tolist())
        listed = tuple(ordinals[order][:k].tolist())
        return LegList("topic", listed, shared, LIKE, strengths=shared)

    return enough(best, depth, context, recipe)


def _places(
    like: Likeness, ordinals: npt.NDArray[np.int32], context: SearchContext
) -> npt.NDArray[np.int64]:
    """int64 [n]: each of ``ordinals`` by nearness to a memory; those further away keep their order
    behind the :data:`NEAREST`."""
    places = np.arange(len(ordinals)) + NEAREST
    index = context.vector_index
    if index is None or not len(like.vectors):
        return places
    mask = np.zeros(context.snapshot.size, dtype=np.bool_)
    mask[ordinals] = True
    near = index.search(like.vectors.mean(axis=0), NEAREST, mask).ordinals
    by_ordinal = np.argsort(ordinals)
    places[by_ordinal[np.searchsorted(ordinals, near, sorter=by_ordinal)]] = np.arange(len(near))
    return places
