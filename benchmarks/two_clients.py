"""Two clients of the vector leg at once: processes, as a server searches, and threads of one."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from statistics import median
from typing import Any

from benchmarks.report import Proportion
from benchmarks.vaults import Vectors
from memory_store.index.vectors import VectorIndex

CLIENTS = 2
TURNS = 5  # of one client and of two
ROUNDS = 4  # of all queries in a turn
TOLD_OF = 100_000  # vectors: a search of fewer is over before a second core pays


def two_clients(
    index: VectorIndex, queries: Sequence[Vectors], count: int, nearest: int
) -> Iterator[Proportion]:
    """Searches a second of two clients at once ÷ those of one, on the clock: medians of turns.

    A server gives each client a process that searches beside it, so the target is theirs. Threads
    of one process hand Python's lock to each other at every step of a search.
    """
    work = (index, [*queries] * ROUNDS, nearest)
    yield Proportion(
        "vector ranking, two clients at once",
        count,
        _rate(_in_processes, *work),
        "≥ 1.8 × one at 100 k",
        1.8 if count >= TOLD_OF else None,
        peer="one client",
        at_least=True,
    )
    yield Proportion(
        "vector ranking, two threads at once", count, _rate(_in_threads, *work), peer="one thread"
    )


def _rate(seconds: Callable[..., float], *work: Any) -> float:
    return median(CLIENTS * seconds(1, *work) / seconds(CLIENTS, *work) for _ in range(TURNS))


def _in_processes(
    clients: int, index: VectorIndex, queries: Sequence[Vectors], nearest: int
) -> float:
    """Seconds until the slowest has asked everything, having been warmed up."""
    context = multiprocessing.get_context("fork")  # the index is there without being sent
    together, taken = context.Barrier(clients), context.Queue()
    each = [
        context.Process(target=_asked, args=(index, queries, nearest, together, taken))
        for _ in range(clients)
    ]
    for process in each:
        process.start()
    slowest = max(taken.get() for _ in each)
    for process in each:
        process.join()
    return slowest


def _asked(
    index: VectorIndex,
    queries: Sequence[Vectors],
    nearest: int,
    together: Barrier,
    taken: Queue[float],
) -> None:
    _ask(index, queries, nearest)
    together.wait()
    taken.put(_ask(index, queries, nearest))


def _in_threads(
    clients: int, index: VectorIndex, queries: Sequence[Vectors], nearest: int
) -> float:
    with ThreadPoolExecutor(clients) as pool:
        begun = time.perf_counter()
        list(pool.map(lambda _: _ask(index, queries, nearest), range(clients)))
        return time.perf_counter() - begun


def _ask(index: VectorIndex, queries: Sequence[Vectors], nearest: int) -> float:
    """Seconds for all the queries, one after the other."""
    begun = time.perf_counter()
    for query in queries:
        index.search(query, nearest)
    return time.perf_counter() - begun
