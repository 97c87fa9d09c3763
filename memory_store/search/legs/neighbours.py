"""Neighbours: in a collection that is told in order, they count as evidence for a memory.

"Last July, with the whole family" answers a question only beside the turn that asked it. So the
keyword leg lifts a memory towards neighbours that match better, and the vector leg blends its
cosine with theirs, each by the recipe's ``neighbour_weights`` and by how far the collection is told
in order at all (see :mod:`memory_store.index.neighbours`).

Boundary: scores, ordinals and vectors only. What the caller's filters leave out lends nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from memory_store.index.neighbours import Neighbours, neighbours_of
from memory_store.index.numpy_vectors import NumpyVectors
from memory_store.index.terms import Matches, Scored, covered
from memory_store.index.vectors import VectorHits

if TYPE_CHECKING:
    from memory_store.index.snapshot import Mask, Snapshot
    from memory_store.search.context import SearchContext
    from memory_store.search.recipes import Recipe


LIFTED = (
    2_048  # of a list's best, with their neighbours: what is weaker cannot come among the first
)
# One of several pieces need not hold all of the query's words: coverage counts by its square root
# where neighbours are fully trusted. Measured on LoCoMo: recall@10 +.02 against 0.
TOLD_IN_PIECES = 0.5


class Shares(NamedTuple):
    """The share of the query that documents hold: ``own``, and ``lifted`` by their neighbours.

    Both 0–1, float64 [n].
    """

    own: npt.NDArray[np.float64]
    lifted: npt.NDArray[np.float64]


class Blended(NamedTuple):
    """Documents found by meaning, best first; ``hits`` keep their own cosines.

    ``evidence`` float64 [n]: the cosine with the neighbours' blended in, by which they are ordered.
    """

    hits: VectorHits
    evidence: npt.NDArray[np.float64]


def neighbours_for(snapshot: Snapshot, recipe: Recipe) -> Neighbours | None:
    """The neighbours where the recipe looks at them and some collection is told in order."""
    if not recipe.neighbour_weights or not snapshot.size:
        return None
    found = neighbours_of(snapshot)
    return found if found.any else None


def told_in_order(context: SearchContext, recipe: Recipe) -> dict[str, float]:
    """Collection name → how far it is told in order (0–1), those that are not at all left out."""
    snapshot = context.snapshot
    neighbours = neighbours_for(snapshot, recipe)
    if neighbours is None:
        return {}
    return {
        context.collection_names[collection]: round(told, 2)
        for collection, told in zip(snapshot.collections, neighbours.told, strict=True)
        if told
    }


def lifted_keywords(found: Scored, neighbours: Neighbours, recipe: Recipe, mask: Mask) -> Scored:
    """Keyword scores lifted towards neighbours that match better, ordinals ascending."""
    strongest = found.ordinals
    if len(strongest) > LIFTED:
        strongest = strongest[np.argpartition(-found.scores, LIFTED)[:LIFTED]]
    near = neighbours.around(strongest, len(recipe.neighbour_weights))
    near = near[mask[near]]
    scores = np.zeros(len(mask))
    scores[found.ordinals] = found.scores
    scores[near] = neighbours.lifted(scores, recipe.neighbour_weights, near)
    ordinals = np.flatnonzero(scores).astype(np.int32)
    return Scored(ordinals, scores[ordinals])


def lifted_coverage(
    snapshot: Snapshot,
    matches: Matches,
    ordinals: npt.NDArray[np.int32],
    neighbours: Neighbours,
    recipe: Recipe,
    mask: Mask,
) -> Shares:
    """The share of the query each of ``ordinals`` holds, and the same lifted.

    A share of what is told in several memories says less, so it is drawn towards 1 by its root
    (:data:`TOLD_IN_PIECES`).
    """
    near = neighbours.around(ordinals, len(recipe.neighbour_weights))
    near = near[mask[near]]
    held = np.zeros(snapshot.size)
    held[near] = covered(snapshot, matches, near)
    lifted = np.minimum(neighbours.lifted(held, recipe.neighbour_weights, ordinals), 1.0)
    return Shares(held[ordinals], lifted ** (1.0 - TOLD_IN_PIECES * neighbours.trust[ordinals]))


def blended_meaning(
    found: VectorHits,
    query: npt.NDArray[np.float32],
    snapshot: Snapshot,
    neighbours: Neighbours,
    recipe: Recipe,
    mask: Mask,
) -> Blended:
    """The ``k`` hits and their neighbours, as many again as were given, by blended cosine."""
    k = len(found.ordinals)
    wanted = np.zeros(snapshot.size, dtype=np.bool_)
    wanted[neighbours.around(found.ordinals, len(recipe.neighbour_weights))] = True
    wanted &= mask
    wanted[found.ordinals] = False
    count = int(np.count_nonzero(wanted))
    beside = NumpyVectors(snapshot, reason="neighbours").search(query, count, wanted)
    ordinals = np.concatenate([found.ordinals, beside.ordinals])
    similarities = np.concatenate([found.similarities, beside.similarities])
    windows = np.concatenate([found.windows, beside.windows])
    cosines = np.full(snapshot.size, np.nan)
    cosines[ordinals] = similarities
    blended = neighbours.blended(cosines, recipe.neighbour_weights, ordinals)
    best = np.lexsort((ordinals, -blended))[:k]
    hits = VectorHits(ordinals[best], similarities[best], windows[best])
    return Blended(hits, blended[best])
