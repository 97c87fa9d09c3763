"""The topic leg: memories tagged with the query's words, or as another memory is.

Boundary: works on keyed hashes and ordinals; opens nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from memory_store.index.topics import topic_matches
from memory_store.search.candidates import Fetched, LegList
from memory_store.search.legs.contents import enough
from memory_store.search.query.more_like_this import LIKE, Likeness
from memory_store.search.query.plan import Search

NEAREST = 256  # of the memories that share topics: put in order by their vectors


def topic_leg(search: Search) -> Fetched:
    """Memories tagged with the query's words, and those that share the topics of one."""
    asked = (_asked_list(search), _like_list(search))
    return Fetched(tuple(one for one in asked if one is not None))


def _asked_list(search: Search) -> LegList | None:
    """By the words matched, then rarity, then the newest."""
    analysis = search.analysis
    if not analysis.topics:
        return None
    found = topic_matches(search.snapshot, analysis.topics, analysis.mask)
    words = len(set(analysis.keywords)) or 1
    asked = np.minimum(found.matched / words, 1.0)
    return _list("original", found.ordinals, found.matched / len(analysis.topics), asked, search)


def _like_list(search: Search) -> LegList | None:
    """By the rarity of what they share, equal ones by how near they are to the memory, then the
    newest. Scores are shares of the best one's rarity."""
    like = search.analysis.like
    if like is None or not like.topics:
        return None
    found = topic_matches(search.snapshot, like.topics, search.analysis.mask, (like.collection,))
    shares = found.rarity / found.rarity.max(initial=0.0)
    order = np.lexsort((_places(like, found.ordinals, search), -shares))
    return _list(LIKE, found.ordinals[order], shares[order], shares[order], search)


def _list(
    kind: str,
    ordinals: npt.NDArray[np.int32],
    scores: npt.NDArray[np.float64],
    strengths: npt.NDArray[np.float64],
    search: Search,
) -> LegList:
    def best(k: int) -> LegList:
        return LegList.of(
            "topic", kind, ordinals=ordinals[:k], scores=scores[:k], strengths=strengths[:k]
        )

    return enough(best, "topic", kind, search)


def _places(
    like: Likeness, ordinals: npt.NDArray[np.int32], search: Search
) -> npt.NDArray[np.int64]:
    """int64 [n]: each of ``ordinals`` by nearness to a memory; those further away keep their order
    behind the :data:`NEAREST`."""
    places = np.arange(len(ordinals)) + NEAREST
    index = search.context.vector_index
    if index is None or like.model or not len(like.vectors):
        return places
    mask = np.zeros(search.snapshot.size, dtype=np.bool_)
    mask[ordinals] = True
    near = index.search(like.vectors.mean(axis=0), NEAREST, mask).ordinals
    by_ordinal = np.argsort(ordinals)
    places[by_ordinal[np.searchsorted(ordinals, near, sorter=by_ordinal)]] = np.arange(len(near))
    return places
