"""Whose turn it is when many search: Datasette's other pages go first, for a moment.

One thread answers everybody, and does one thing at a time. A page of Datasette's own comes back to
it a hundred times (for each of its queries), a search page keeps it for several milliseconds:
beside eight searchers the home page took six times as long as alone. So while several searches are
on their way, each of them lets other requests that have begun finish before it goes on, and waits
no longer than ``PATIENCE`` for them in all, in a larger ``CROWD`` as many times longer: wherever it
would take the server's thread, and when its turn to search has come, which takes a processor from
them. Who searches alone waits for a moment: beside one who searches without a pause the home page
took 2.2 times as long. A request that takes ``LONG`` is none that others are waited for, nor a
search that makes a crowd: it is a stream, an upload, or a client that keeps everybody waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic

PATIENCE = 0.15
"""Seconds that one search waits for others: Datasette's home page takes a tenth of a second."""
CROWD, CROWDED = 8, 32
"""Searches of which each has that much. Of 32, each is on its way four times as long: with no more
patience than one of 8, all had lost it while a home page was not done, which then took two seconds.
More make none wait longer: anybody can begin a thousand requests."""
ALONE = 1 / 8  # of ``PATIENCE``: that of a search that comes when there is no other
LONG = 3.0
"""Seconds after which a request that is still being answered counts no more."""


class Requests:
    """The requests that one server is answering now."""

    def __init__(self) -> None:
        self._searches = 0
        self._others = 0
        self._places: asyncio.Semaphore | None = None
        self.no_others = asyncio.Event()
        self.no_others.set()

    @contextmanager
    def answering(self, *, search: bool) -> Iterator[None]:
        """While a request is answered. One made inside of another belongs to that one."""
        if _turn.get() is not None:
            yield
            return
        crowd = min(max(CROWD, self._searches), CROWDED) / CROWD if self._searches else ALONE
        token = _turn.set(Turn(self, PATIENCE * crowd if search else 0.0))
        self._count(1, search=search)
        with ExitStack() as counted:
            counted.callback(self._count, -1, search=search)
            late = asyncio.get_running_loop().call_later(LONG, counted.close)
            try:
                yield
            finally:
                late.cancel()
                _turn.reset(token)

    def _count(self, one: int, *, search: bool) -> None:
        if search:
            self._searches += one
            return
        self._others += one
        if self._others:
            self.no_others.clear()
        else:
            self.no_others.set()

    @property
    def should_wait(self) -> bool:
        """Whether something that is no search is being answered."""
        return self._others > 0

    def places(self, at_once: int) -> asyncio.Semaphore:
        """Of the searches that run ``at_once``; how many that is does not change."""
        self._places = self._places or asyncio.Semaphore(at_once)
        return self._places


@dataclass
class Turn:
    """One request, and for how many seconds it still waits for others."""

    requests: Requests
    left: float


_turn: ContextVar[Turn | None] = ContextVar("hybrid_turn", default=None)


async def let_others_go_first() -> None:
    """To be awaited before a piece of work that keeps the server's thread for milliseconds."""
    turn = _turn.get()
    if turn is not None and turn.left > 0 and turn.requests.should_wait:
        begun = monotonic()
        with suppress(TimeoutError):
            await asyncio.wait_for(turn.requests.no_others.wait(), turn.left)
        turn.left -= monotonic() - begun


@asynccontextmanager
async def turn_to_search(at_once: int) -> AsyncIterator[None]:
    """While one of the searches that run ``at_once`` runs, after others who came meanwhile."""
    turn = _turn.get()
    if turn is None:
        yield
        return
    places = turn.requests.places(at_once)
    await places.acquire()
    while turn.left > 0 and turn.requests.should_wait:
        places.release()  # all who wait lose their patience at the same time
        await let_others_go_first()
        await places.acquire()
    try:
        yield
    finally:
        places.release()
