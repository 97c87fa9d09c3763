"""How much work is let in: a small queue for searches, one for writes, one for unlocking.

What is counted for everyone is a way to shut everyone out. So who asks for much at once waits for
their own: of one actor no more stands in line for a thread than there are threads, and a full queue
has room for who has little in it.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, nullcontext
from contextvars import ContextVar, copy_context
from time import monotonic
from typing import Any, TypeVar

from memory_store.errors import BusyError

from ..permissions.asker import asker

Answer = TypeVar("Answer")

WORKERS = max(1, (os.cpu_count() or 2) // 2)
"""Threads that search by themselves. Half the processors: on two of them a second thread added no
searches a second, and made Datasette's own pages, which change threads for every query, five times
slower (218 against 43 ms beside eight busy searchers). Threads that wait for a search process cost
nothing: see :meth:`WorkQueue.widen`."""
WAITING = 32  # behind them; at 50 ms a search the last one waits less than a second
OTHERS = 3 * WAITING  # behind these, for actors who have no more than
LITTLE = 4  # of them
LONGEST = 10  # a search in SQL: times what it was given, before its caller stops waiting;
# and seconds until its request stops waiting for a seat
LOOK_AGAIN = 0.005  # seconds until it looks for one again


Who = tuple[str | None, bool]


def _who() -> Who:
    """Who asks: an actor, the holder of a key in a browser, or any visitor."""
    known = asker.get()
    return known.actor_id, bool(known.sessions)


class QueueFullError(BusyError):
    """More searches are waiting than this server should take on (HTTP 429)."""

    def __init__(self) -> None:
        super().__init__("too many searches at once: try again in a moment")


class TooManyAttemptsError(Exception):
    """Too many wrong secrets; ``seconds`` until the next may be tried (HTTP 429)."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many wrong secrets: try again in {seconds} seconds")
        self.seconds = seconds


class WorkQueue:
    """A few threads of our own for store calls.

    Datasette's three SQL threads stay free, so that its other pages answer while searches run.
    ``others`` is how many more may wait of actors who have little in it.
    """

    def __init__(self, workers: int = WORKERS, waiting: int = WAITING, others: int = 0) -> None:
        self.workers = workers
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="hybrid")
        self._waiting, self._others = waiting, others
        self._held = Counter[Who]()
        self._lock = threading.Lock()
        self._lines: weakref.WeakValueDictionary[Any, asyncio.Semaphore] = (
            weakref.WeakValueDictionary()
        )

    def widen(self, workers: int) -> None:
        """Have at least so many threads from now on: others do the work that these wait for."""
        if workers > self.workers:
            narrower, self._threads = (
                self._threads,
                ThreadPoolExecutor(workers, thread_name_prefix="hybrid"),
            )
            narrower.shutdown(wait=False)  # what it was given it still does
            self.workers = workers

    async def run(
        self, call: Callable[[], Answer], turn: AbstractAsyncContextManager[None] | None = None
    ) -> Answer:
        """The result of ``call``, in a thread. Raises :class:`QueueFullError` at once when full.

        ``turn`` is waited for in the queue and holds while it runs; threads are free for others.
        """
        with self._place() as place:
            async with self._own_line(turn is not None), turn or nullcontext():
                return await asyncio.wrap_future(self._submitted(call, place.pop_all()))

    def wait_for(self, call: Callable[[], Answer], seconds: float) -> Answer:
        """The same for a thread that has nothing else to do.

        It waits ``seconds`` for its turn to come, and ``LONGEST`` times as many for the end.
        Raises :class:`BusyError` after either.
        """
        future = self._submitted(call, self._place())
        wait([future], timeout=seconds)
        if future.cancel():  # nothing that has begun is cancelled
            raise QueueFullError
        if not wait([future], timeout=seconds * LONGEST).done:
            raise BusyError("this search takes too long for SQL")
        return future.result()

    def _place(self) -> ExitStack:
        """A place in the queue, to be closed. Raises :class:`QueueFullError`."""
        place, who = ExitStack(), _who()
        with self._lock:
            most = self.workers + self._waiting + (self._others if self._held[who] < LITTLE else 0)
            if self._held.total() >= most:
                raise QueueFullError
            self._held[who] += 1
        place.callback(self._leave, who)
        return place

    def _leave(self, who: Who) -> None:
        with self._lock:
            self._held[who] -= 1
            self._held += Counter()  # without those who have none

    def _own_line(self, searches: bool) -> asyncio.Semaphore:
        """That of the actor who asks, in this thread's loop: for searches, which let others go
        first, or for all else."""
        who = asyncio.get_running_loop(), _who(), searches
        found = self._lines.get(who)
        if found is None:
            found = self._lines[who] = asyncio.Semaphore(self.workers)
        return found

    def _submitted(self, call: Callable[[], Answer], place: ExitStack) -> Future[Answer]:
        """``call`` in a thread; its place is free before the caller gets the result."""
        given_up = threading.Event()
        who_asks = copy_context()
        try:
            future = self._threads.submit(who_asks.run, _done, given_up, call, place)
        except RuntimeError:  # no thread is to be had; the call waits for the next one all the same
            given_up.set()
            place.close()
            raise
        future.add_done_callback(lambda _: place.close())  # also where it never began
        return future


def _done(given_up: threading.Event, call: Callable[[], Answer], place: ExitStack) -> Answer:
    if given_up.is_set():
        raise QueueFullError
    with place:
        return call()


class Seat:
    """One that a request holds before it has a thread, for one search at a time."""

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back = give_back
        self._lock = threading.Lock()
        self._taken = self._over = False

    def take(self) -> bool:
        """Whether it is there for a search."""
        with self._lock:
            free = not (self._taken or self._over)
            self._taken |= free
        return free

    def leave(self) -> None:
        """The search is over."""
        with self._lock:
            self._taken, over = False, self._over
        if over:
            self._give_back()

    def close(self) -> None:
        """The request is over; a search that still runs gives it back."""
        with self._lock:
            free = not (self._taken or self._over)
            self._over = True
        if free:
            self._give_back()


class Seats:
    """Searches in SQL: each holds one of Datasette's SQL threads while another thread searches.

    One of those threads stays free for every other query. A query that finds no seat fails at once:
    waiting would hold the last one. Nothing that searches waits for an SQL thread, so none waits
    in a circle. A request whose address says that it will search waits for a seat before it has a
    thread.
    """

    def __init__(self, queue: WorkQueue, sql_threads: int) -> None:
        self._queue = queue
        self._free = threading.BoundedSemaphore(max(1, sql_threads - 1))
        self._next = asyncio.Lock()
        self._room = max(1, sql_threads - 1) + WAITING

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Callable[[], None]]:
        """While a request runs that will search, until what it yields is called: the search is over
        when the answer begins, however slowly that is read.

        Where as many wait as may, or one has waited for ``LONGEST`` seconds, it goes on, and is
        refused if it finds no seat.
        """
        if _seat.get() is not None or not self._room:
            yield _nothing
            return
        self._room -= 1
        with ExitStack() as over:
            over.callback(self._leave)
            seat = Seat(self._free.release)
            if await self._reserved():
                over.callback(seat.close)
            else:
                seat.take()  # there is none
            within = _seat.set(seat)
            try:
                yield over.close
            finally:
                _seat.reset(within)

    async def _reserved(self) -> bool:
        """Whether a seat became free in time. One looks at a time: the one who came first."""
        until = monotonic() + LONGEST
        async with self._next:
            while not self._free.acquire(blocking=False):
                if monotonic() > until:
                    return False
                await asyncio.sleep(LOOK_AGAIN)
            return True

    def _leave(self) -> None:
        self._room += 1

    def run(self, call: Callable[[], Answer], seconds: float) -> Answer:
        """The result of ``call`` from the queue's threads, where it waits at most ``seconds``.

        Raises :class:`QueueFullError`.
        """
        seat = _seat.get()
        if seat is None or not seat.take():
            if not self._free.acquire(blocking=False):
                raise QueueFullError
            seat = None
        try:
            return self._queue.wait_for(call, seconds)
        finally:
            (self._free.release if seat is None else seat.leave)()


def _nothing() -> None:
    """What there is to do at the end for a request that had no turn."""


_seat: ContextVar[Seat | None] = ContextVar("hybrid_seat", default=None)
"""That of a request. One that is made inside of another one belongs to that one."""
_seats: weakref.WeakKeyDictionary[Any, Seats] = weakref.WeakKeyDictionary()


def seats_in_sql(datasette: Any) -> Seats:
    """The seats of this Datasette, as many as its SQL threads allow."""
    threads = datasette.setting("num_sql_threads")
    return _seats.setdefault(datasette, Seats(work, threads))


work = WorkQueue(others=OTHERS)
writing = WorkQueue(workers=1, others=OTHERS)
"""Apart from the searches, which a long write would hold up; writes wait for one another anyhow."""
locksmith = WorkQueue(workers=1, waiting=4)
"""Apart from the searches: checking a passphrase takes a third of a second by design. Whose turn it
is, ``unlocking/attempts.py`` decides."""
