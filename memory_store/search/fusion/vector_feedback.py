"""Vector feedback: a second vector search, from the query towards what the first pass found.

Rocchio's formula over sealed vectors: q′ = q + β · mean(nearest windows of the first results). It
needs no language model and no text.

Boundary: works on vectors and ordinals; opens nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from memory_store.records.explanation import Fetch
from memory_store.search.candidates import Fetched
from memory_store.search.fusion.rank_fusion import merge
from memory_store.search.legs.contents import deduplicated
from memory_store.search.legs.vector import nearest
from memory_store.search.query.plan import Search

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memory_store.index.snapshot import Snapshot


def with_feedback(fetched: Fetched, search: Search, note: Fetch) -> Fetched:
    """``fetched`` with one more vector list for each model, of kind ``feedback``.

    ``note`` takes how many memories gave them their direction. Vectors of two models cannot be
    added up, whatever their length.
    """
    recipe, snapshot = search.recipe, search.snapshot
    if not any(model.query_vector is not None for model in fetched.models):
        return fetched
    first = merge(fetched, search, recipe.feedback)
    lists, believed = [], 0
    for model in fetched.models:
        if model.query_vector is None:
            continue
        found = (one.ordinal for one in first.pool)
        own = [o for o in found if snapshot.collection(o) in model.scope.collections]
        moved, used = rocchio(model.query_vector, own, model.scope.snapshot, recipe.feedback_beta)
        believed += used
        if used:
            lists.append(nearest("feedback", moved, model.scope, search))
    note.feedback_from = believed
    return replace(fetched, lists=deduplicated((*fetched.lists, *lists), search))


def rocchio(
    query: NDArray[np.float32], ordinals: Sequence[int], snapshot: Snapshot, beta: float
) -> tuple[NDArray[np.float32], int]:
    """The unit vector of ``query + beta · mean`` and how many documents the mean is of.

    Of each document its window nearest to the query counts; documents without vectors, or with
    vectors of another length, do not.
    """
    best = []
    for ordinal in ordinals:
        windows = snapshot.document_vectors(ordinal)  # a copy of this document's alone
        if len(windows) and windows.shape[1] == len(query):
            best.append(windows[int(np.argmax(windows @ query))])
    if not best:
        return query, 0
    mean = np.mean(best, axis=0, dtype=np.float32)
    moved: NDArray[np.float32] = (query + beta * mean).astype(np.float32)
    length = np.float32(np.linalg.norm(moved))
    return (moved / length if length else query), len(best)
