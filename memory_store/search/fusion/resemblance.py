"""Resemblance: how like the two first a candidate is, by vectors.

What answers a question is often near to what else answers it (the cluster hypothesis, van
Rijsbergen 1979), in other words than the question's. The two first are those of all other
evidence; being like themselves, they gain by it, too, so that one that merely resembles them seldom
passes them.

Boundary: works on vectors and ordinals; opens nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from memory_store.index.numpy_vectors import best_cosines
from memory_store.models.embedder import usual_cosines
from memory_store.search.candidates import Fetched
from memory_store.search.fusion.evidence import RESEMBLANCE, Evidence, evidence
from memory_store.search.fusion.learned import probabilities
from memory_store.search.legs.neighbours import neighbours_for
from memory_store.search.query.plan import Search

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memory_store.index.snapshot import Snapshot

FIRST = 2
"""With one, or with three, fewer sets gain: Cranfield .416, then .424 with 1, .424 with 2, .422
with 3, CISI .464, then .462, .468, .466 (nDCG@10)."""

REACH = 2  # times the pool: how many are compared, since what comes later does not get into it

SEQUENTIAL = 0.5  # of a collection: as the least sequential conversation of LoCoMo is


def whole_evidence(fetched: Fetched, search: Search) -> Evidence:
    """The evidence, with how like the first two of each model each candidate is.

    In a conversation what is like the first repeats it: LoCoMo's Recall@10 would fall from .739 to
    .730. So the more a collection is sequential, the less this counts: by half or more, not at all.
    """
    found, snapshot, near = evidence(fetched, search), search.snapshot, neighbours_for(search)
    if near is not None and min(near.sequential) >= SEQUENTIAL:
        return found
    alone = np.ones(len(found.ordinals))
    if near is not None:
        sequential = np.array(near.sequential)[snapshot.collection_codes[found.ordinals]]
        alone -= np.minimum(sequential / SEQUENTIAL, 1.0)
    order = snapshot.best_first(found.ordinals, probabilities(found), REACH * search.plan.pool)
    near_enough = np.zeros(len(found.ordinals), np.bool_)
    near_enough[order] = True
    features = found.features.copy()
    for number, (model, read) in enumerate(zip(fetched.models, found.read, strict=True), start=1):
        held = model.scope.snapshot
        # Of equal contents the one that stands for all may lack the vectors of another.
        lacking = held.worked_out("unembedded", held.unembedded)[found.ordinals]
        compared = (found.compared_by == number) & near_enough & ~lacking
        first = order[compared[order]][:FIRST]
        if read and len(first) and model.query_vector is not None:
            leading, others = found.ordinals[first].tolist(), found.ordinals[compared]
            alike = _likeness(model.query_vector, leading, others, held)
            usual, _ = usual_cosines(model.embedder) or (0.0, 1.0)
            ahead = (np.mean(alike, axis=0) - usual) / (1.0 - usual)
            features[compared, RESEMBLANCE] = read * ahead * alone[compared]
    return replace(found, features=features)


def _likeness(
    query: NDArray[np.float32], leading: list[int], others: NDArray[np.int32], snapshot: Snapshot
) -> NDArray[np.float64]:
    """float64 [leading, n]: the cosines of the others with those windows of the leading ones that
    are nearest to the query."""
    windows = [snapshot.document_vectors(one) for one in leading]
    nearest = [one[int(np.argmax(one @ query))] for one in windows]
    cosines = best_cosines(snapshot, others, *nearest)
    for one in windows:
        one.fill(0)  # freed memory keeps what stood in it, past a lock
    return cosines
