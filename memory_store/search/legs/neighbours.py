"""Neighbours: in a sequential collection they count as evidence for a memory.

"Last July, with the whole family" answers a question only beside the turn that asked it. So the
keyword leg lifts a memory towards neighbours that match better, and the vector leg blends its
cosine with theirs, each by the recipe's ``neighbour_weights`` and by how far the collection is
sequential at all (see :mod:`memory_store.index.neighbours`).

Boundary: scores, ordinals and vectors only. What the caller's filters leave out lends nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memory_store.index.neighbours import Neighbours, neighbours_of
from memory_store.index.numpy_vectors import NumpyVectors
from memory_store.index.terms import Matches, Scored, covered
from memory_store.index.vectors import VectorHits
from memory_store.search.query.plan import Search

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memory_store.search.candidates import Scope

# Of a list's best, with their neighbours: what is weaker cannot come among the first.
LIFTED = 2_048
# One of several pieces need not hold all of the query's words: coverage counts by its square root
# where neighbours are fully trusted. Measured on LoCoMo: recall@10 +.02 against 0.
IN_PIECES = 0.5


def neighbours_for(search: Search) -> Neighbours | None:
    """The neighbours where the recipe looks at them and some collection is sequential."""
    if not search.recipe.neighbour_weights or not search.snapshot.size:
        return None
    found = neighbours_of(search.snapshot)
    return found if found.any else None


def sequential_collections(search: Search) -> dict[str, float]:
    """Collection name → how far it is sequential (0–1), those that are not at all left out."""
    neighbours, names = neighbours_for(search), search.context.collection_names
    if neighbours is None:
        return {}
    return {
        names[collection]: round(share, 2)
        for collection, share in zip(
            search.snapshot.collections, neighbours.sequential, strict=True
        )
        if share
    }


def lifted_keywords(found: Scored, neighbours: Neighbours, search: Search) -> Scored:
    """Keyword scores lifted towards neighbours that match better, ordinals ascending."""
    strongest, mask = found.ordinals, search.analysis.mask
    weights = search.recipe.neighbour_weights
    if len(strongest) > LIFTED:
        strongest = strongest[np.argpartition(-found.scores, LIFTED)[:LIFTED]]
    near = neighbours.around(strongest, len(weights))
    near = near[mask[near]]
    scores = np.zeros(len(mask))
    scores[found.ordinals] = found.scores
    scores[near] = neighbours.lifted(scores, weights, near)
    ordinals = np.flatnonzero(scores).astype(np.int32)
    return Scored(ordinals, scores[ordinals])


def lifted_coverage(
    matches: Matches, ordinals: NDArray[np.int32], neighbours: Neighbours, search: Search
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The share (0–1) of the query each of ``ordinals`` holds, and the same lifted.

    What stands in several memories is only partly in each, so it is drawn towards 1 by its root
    (:data:`IN_PIECES`).
    """
    weights = search.recipe.neighbour_weights
    near = neighbours.around(ordinals, len(weights))
    near = near[search.analysis.mask[near]]
    held = np.zeros(search.snapshot.size)
    held[near] = covered(search.snapshot, matches, near)
    lifted = np.minimum(neighbours.lifted(held, weights, ordinals), 1.0)
    return held[ordinals], lifted ** (1.0 - IN_PIECES * neighbours.trust[ordinals])


def blended_meaning(
    found: VectorHits,
    query: NDArray[np.float32],
    neighbours: Neighbours,
    scope: Scope,
    search: Search,
) -> tuple[VectorHits, NDArray[np.float64]]:
    """The ``k`` hits and their neighbours, as many again as were given, by blended cosine.

    With each hit, which keeps its own cosine, the blended one by which they are ordered.
    """
    k, snapshot, weights = len(found.ordinals), scope.snapshot, search.recipe.neighbour_weights
    wanted = np.zeros(snapshot.size, dtype=np.bool_)
    wanted[neighbours.around(found.ordinals, len(weights))] = True
    wanted &= scope.mask
    wanted[found.ordinals] = False
    count = int(np.count_nonzero(wanted))
    beside = NumpyVectors(snapshot, reason="neighbours").search(query, count, wanted)
    ordinals = np.concatenate([found.ordinals, beside.ordinals])
    similarities = np.concatenate([found.similarities, beside.similarities])
    windows = np.concatenate([found.windows, beside.windows])
    cosines = np.full(snapshot.size, np.nan)
    cosines[ordinals] = similarities
    blended = neighbours.blended(cosines, weights, ordinals)
    best = np.lexsort((ordinals, -blended))[:k]
    hits = VectorHits(ordinals[best], similarities[best], windows[best], found.every)
    return hits, blended[best]
