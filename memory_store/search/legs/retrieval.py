"""Fetching: the legs run side by side, and what they list counts each content once.

Boundary: works on keyed hashes, vectors and ordinals. Filters are a mask inside each leg, so a
filtered search finds what it would find in a vault of nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from memory_store.search.candidates import Fetched, LegList
from memory_store.search.context import SearchContext
from memory_store.search.degraded import stale_lines
from memory_store.search.legs.duplicates import deduplicated
from memory_store.search.legs.keyword import keyword_leg
from memory_store.search.legs.topic import topic_leg
from memory_store.search.legs.vector import vector_leg
from memory_store.search.query.analysis import Analysis
from memory_store.search.recipes import Recipe

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

LEG_THREADS = 8  # for all searches at once; NumPy and the model release the GIL
MOST_NEWEST = 1_000  # rows of a search by filters only


@cache
def _legs() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # 5 ms, which one leg by itself does not need

    return ThreadPoolExecutor(max_workers=LEG_THREADS, thread_name_prefix="search-leg")


def fetch(
    analysis: Analysis,
    context: SearchContext,
    recipe: Recipe,
    legs: Sequence[str],
    depths: Mapping[str, int],
    probe: LegList | None = None,
) -> Fetched:
    """Run ``legs`` at once and return their lists, as long as :func:`depth_of` says each.

    ``probe`` is the keyword leg's list for the query as typed, where it is there already.
    A missing or foreign model costs the vector leg and a line in ``degraded``; when that is the
    only leg, the error itself is raised.
    """
    tasks: dict[str, Callable[[], Fetched]] = {
        "keyword": lambda: keyword_leg(analysis, context, recipe, depths, probe),
        "topic": lambda: topic_leg(analysis, context, recipe, depths["topic"]),
        "vector": lambda: vector_leg(analysis, context, recipe, depths, len(legs) == 1),
    }
    running = [_legs().submit(_timed, tasks[leg]) for leg in legs[1:]]
    answers = [_timed(tasks[legs[0]]), *(future.result() for future in running)]
    return Fetched(
        lists=deduplicated([one for answer, _ in answers for one in answer.lists], context, depths),
        degraded=(
            *(line for answer, _ in answers for line in answer.degraded),
            *stale_lines(analysis.mask, context),
        ),
        models=tuple(model for answer, _ in answers for model in answer.models),
        milliseconds={leg: spent for leg, (_, spent) in zip(legs, answers, strict=True)},
    )


def newest(analysis: Analysis, context: SearchContext) -> Fetched:
    """For a query of filters only: what they let through, newest first. No rank of any leg."""
    snapshot = context.snapshot
    allowed = np.flatnonzero(analysis.mask)
    words = snapshot.id_words[allowed]
    order = np.lexsort((words[:, 1], words[:, 0], -snapshot.created[allowed]))[:MOST_NEWEST]
    ordinals = tuple(allowed[order].tolist())
    return Fetched((LegList("recent", ordinals, (0.0,) * len(ordinals)),))


def _timed(task: Callable[[], Fetched]) -> tuple[Fetched, float]:
    start = perf_counter()
    answer = task()
    return answer, (perf_counter() - start) * 1_000
