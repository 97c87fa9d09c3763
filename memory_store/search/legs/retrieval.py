"""Fetching: the legs run side by side, and what they list counts each content once.

Boundary: works on keyed hashes, vectors and ordinals. Filters are a mask inside each leg, so a
filtered search finds what it would find in a vault of nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from memory_store.search.candidates import Fetched, LegList
from memory_store.search.degraded import stale_lines
from memory_store.search.legs.contents import deduplicated
from memory_store.search.legs.keyword import keyword_leg
from memory_store.search.legs.topic import topic_leg
from memory_store.search.query.plan import Search

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

LEG_THREADS = 8  # for all searches at once; NumPy and the model release the GIL
MOST_NEWEST = 1_000  # rows of a search by filters only


@cache
def _legs() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # 5 ms, which one leg by itself does not need

    return ThreadPoolExecutor(max_workers=LEG_THREADS, thread_name_prefix="search-leg")


def fetch(search: Search, probe: LegList | None = None) -> Fetched:
    """Run the legs at once and return their lists, as long as :meth:`Plan.depth_of` says each.

    ``probe`` is the keyword leg's list for the query as typed, where it is there already.
    A missing or foreign model costs the vector leg and a line in ``degraded``; when that is the
    only leg, the error itself is raised.
    """
    legs: dict[str, Callable[[], Fetched]] = {
        "keyword": partial(keyword_leg, search, probe),
        "topic": partial(topic_leg, search),
        "vector": partial(_vector_leg, search),
    }
    first, *others = names = search.plan.legs
    running = [_legs().submit(_timed, legs[leg]) for leg in others]
    timed = [_timed(legs[first]), *(future.result() for future in running)]
    answers = [answer for answer, _ in timed]
    stale = stale_lines(search.analysis.mask, search.context)
    return Fetched(
        lists=deduplicated([one for answer in answers for one in answer.lists], search),
        degraded=(*(line for answer in answers for line in answer.degraded), *stale),
        models=tuple(model for answer in answers for model in answer.models),
        milliseconds={leg: spent for leg, (_, spent) in zip(names, timed, strict=True)},
    )


def _vector_leg(search: Search) -> Fetched:
    from memory_store.search.legs.vector import vector_leg  # a keyword search has none

    return vector_leg(search)


def newest(search: Search) -> Fetched:
    """For a query of filters only: what they let through, newest first. No rank of any leg."""
    snapshot = search.snapshot
    allowed = np.flatnonzero(search.analysis.mask)
    words = snapshot.id_words[allowed]
    order = np.lexsort((words[:, 1], words[:, 0], -snapshot.created[allowed]))[:MOST_NEWEST]
    ordinals = tuple(allowed[order].tolist())
    return Fetched((LegList("recent", ordinals, (0.0,) * len(ordinals)),))


def _timed(task: Callable[[], Fetched]) -> tuple[Fetched, float]:
    start = perf_counter()
    answer = task()
    return answer, (perf_counter() - start) * 1_000
