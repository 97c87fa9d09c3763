"""Vector feedback: a second vector search, from the query towards what the first pass found.

Rocchio's formula over sealed vectors: q′ = q + β · mean(nearest windows of the first results). It
needs no language model and no text.

Boundary: works on vectors and ordinals; opens nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from memory_store.search.analysis import Analysis
from memory_store.search.candidates import Fetched, deduplicated, depth_of, nearest
from memory_store.search.context import SearchContext
from memory_store.search.fusion import merge
from memory_store.search.planning import Plan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memory_store.index.snapshot import Snapshot


def with_feedback(
    fetched: Fetched,
    analysis: Analysis,
    context: SearchContext,
    plan: Plan,
    details: dict[str, Any],
) -> Fetched:
    """``fetched`` with one more vector list of each model, of kind ``feedback``, where one helps.

    ``details`` takes how many memories gave it its direction, and what it found.
    """
    recipe, index = plan.recipe, context.vector_index
    queries = [(one.scope, one.query_vector) for one in fetched.models]
    if index is None or not any(query is not None for _, query in queries):
        return fetched
    first = merge(fetched, analysis, context, recipe, plan.mode, recipe.feedback)
    believed = [candidate.ordinal for candidate in first.pool]
    depth = depth_of("vector", "feedback", plan.depths)
    details["feedback_from"] = 0
    lists = []
    for scope, query in queries:
        if query is None:
            continue
        own = [ordinal for ordinal in believed if scope.mask[ordinal]]
        moved, used = rocchio(query, own, context.snapshot, recipe.feedback_beta)
        details["feedback_from"] += used
        if used:
            lists.append(nearest("feedback", moved, index, scope, context, recipe, depth))
    if not lists:
        return fetched
    return replace(fetched, lists=deduplicated((*fetched.lists, *lists), context, plan.depths))


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
