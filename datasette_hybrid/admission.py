"""How much work is let in: a small queue for searches, and a slow door for guessed secrets."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Answer = TypeVar("Answer")

WORKERS = max(1, (os.cpu_count() or 2) // 2)
"""Threads for searches. Half the processors: on two of them a second thread added no searches a
second, and made Datasette's own pages, which change threads for every query, five times slower
(218 against 43 ms beside eight busy searchers; 31 ms beside eight readers of a plain table)."""
WAITING = 16  # behind them; at 50 ms a search the last one waits less than half a second
ATTEMPTS = 5  # wrong secrets per minute from one address
ATTEMPTS_ON_VAULT = 30  # per minute from everywhere: slows many addresses, locks out nobody long
WINDOW = 60.0


class QueueFullError(Exception):
    """More searches are waiting than this server should take on (HTTP 429)."""


class TooManyAttemptsError(Exception):
    """Too many wrong secrets; ``seconds`` until the next may be tried (HTTP 429)."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many wrong secrets: try again in {seconds} seconds")
        self.seconds = seconds


class WorkQueue:
    """A few threads of our own for store calls.

    Datasette's three SQL threads stay free, so that its other pages answer while searches run.
    """

    def __init__(self, workers: int = WORKERS, waiting: int = WAITING) -> None:
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="hybrid")
        self._room = threading.BoundedSemaphore(workers + waiting)

    async def run(self, call: Callable[[], Answer]) -> Answer:
        """The result of ``call``, in a thread. Raises :class:`QueueFullError` at once when full."""
        if not self._room.acquire(blocking=False):
            raise QueueFullError("too many searches at once: try again in a moment")
        future = self._threads.submit(call)
        future.add_done_callback(lambda _: self._room.release())
        return await asyncio.wrap_future(future)


class Door:
    """Counts tried secrets in a sliding minute, from one address and on one vault."""

    def __init__(self) -> None:
        self._tried: defaultdict[Any, deque[float]] = defaultdict(deque)
        self._lock = threading.Lock()

    def knock(self, address: str, vault: str) -> None:
        """Count an attempt, before it is judged, or raise :class:`TooManyAttemptsError`."""
        with self._lock:
            for key, limit in self._keys(address, vault):
                recent = self._recent(key)
                if len(recent) >= limit:
                    wait = WINDOW - (time.monotonic() - recent[0])
                    raise TooManyAttemptsError(max(1, round(wait)))
            for key, _ in self._keys(address, vault):
                self._recent(key).append(time.monotonic())

    def welcome(self, address: str, vault: str) -> None:
        """Take the last attempt back: it was right."""
        with self._lock:
            for key, _ in self._keys(address, vault):
                recent = self._recent(key)
                if recent:
                    recent.pop()

    def _keys(self, address: str, vault: str) -> tuple[tuple[Any, int], ...]:
        return (((address, vault), ATTEMPTS), (vault, ATTEMPTS_ON_VAULT))

    def _recent(self, key: Any) -> deque[float]:
        if len(self._tried) > 10_000:  # many addresses: forget those that have been quiet
            for old in [k for k, times in self._tried.items() if not times]:
                del self._tried[old]
        recent = self._tried[key]
        while recent and time.monotonic() - recent[0] > WINDOW:
            recent.popleft()
        return recent


work = WorkQueue()
locksmith = WorkQueue(workers=1, waiting=4)
"""Apart from the searches: checking a passphrase takes a third of a second by design."""
door = Door()
