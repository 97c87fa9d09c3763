"""Turns for those who try a secret: guessing is slowed down, and does not keep others out.

Boundary: counts attempts by client and browser; no secret and no vault comes in here. Checking one
passphrase takes a third of a second by design, so attempts wait for turns, one at a time:

* browsers that unlocked this vault before come first, then clients without a wrong secret, then
  those with the fewest; a flood of wrong ones waits behind everyone else;
* a client has :data:`FREE` wrong secrets, then waits longer with each further one, up to
  :data:`LONGEST_DELAY` seconds. It is let in after that, however many there were;
* while there are many wrong ones, at most one attempt a :data:`PACE` is checked, from however many
  addresses they come; those of browsers that unlocked before are counted apart.

What is remembered is bounded, and is forgotten after :data:`FORGOTTEN_AFTER` quiet seconds.
"""

from __future__ import annotations

import asyncio
import math
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from memory_store.errors import BadInputError, WrongKeyError

from ..requests.admission import TooManyAttemptsError

FREE = 5
FIRST_DELAY, LONGEST_DELAY = 2.0, 20.0  # seconds; the delay doubles with each wrong secret
PACE = 1.0  # seconds
MANY, WINDOW = 10, 60.0  # wrong secrets in so many seconds, from everywhere, are many
FORGOTTEN_AFTER = 900.0
MOST_COUNTED = 10_000  # clients and browsers: at one a second fewer fail before they are forgotten
PLACES, PLACES_OF_CLIENT = 64, 4  # attempts that wait
PATIENCE = 60.0  # seconds that one waits at most


class Client(Struct, frozen=True):
    """Who tries: an address (and actor), and the browser where it unlocked this vault before."""

    address: str
    browser: str | None = None


class _Wrong(Struct):
    count: int
    last: float


class _Waiting(Struct, eq=False):
    client: Client
    number: int
    turn: asyncio.Future[None]


class Attempts:
    """The attempts at one server. To be used in its event loop alone."""

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, _Wrong] = OrderedDict()
        self._lately: dict[bool, deque[float]] = {True: deque(), False: deque()}
        self._next: dict[bool, float] = {True: 0.0, False: 0.0}
        self._waiting: list[_Waiting] = []
        self._working = False
        self._timer: asyncio.TimerHandle | None = None
        self._number = 0

    async def judge(self, client: Client, check: Callable[[], Awaitable[None]]) -> None:
        """Run ``check`` when it is the client's turn; it raises for a wrong secret.

        Raises :class:`TooManyAttemptsError` where no place is left, or the turn does not come.
        """
        place = self._place(client)
        try:
            async with asyncio.timeout(PATIENCE):
                await place.turn
        except TimeoutError:
            self._leave(place)
            raise TooManyAttemptsError(self._seconds(client)) from None
        except BaseException:
            self._leave(place)
            raise
        try:
            await check()
        except (WrongKeyError, BadInputError):
            self._count(client)
            raise
        finally:
            self._over()

    def _place(self, client: Client) -> _Waiting:
        name = self._name(client)
        alike = [one for one in self._waiting if self._name(one.client) == name]
        if len(alike) >= PLACES_OF_CLIENT:
            raise TooManyAttemptsError(self._seconds(client))
        self._number += 1
        place = _Waiting(client, self._number, asyncio.get_running_loop().create_future())
        if len(self._waiting) >= PLACES:
            last = max(self._waiting, key=self._order)
            if self._order(last) < self._order(place):
                raise TooManyAttemptsError(self._seconds(client))
            self._waiting.remove(last)
            last.turn.set_exception(TooManyAttemptsError(self._seconds(last.client)))
        self._waiting.append(place)
        self._advance()
        return place

    def _leave(self, place: _Waiting) -> None:
        """Give a place up, and its turn where that came in this moment."""
        if place in self._waiting:
            self._waiting.remove(place)
        elif not place.turn.cancelled() and place.turn.exception() is None:
            self._over()

    def _advance(self) -> None:
        """Give the next attempt its turn, now or when the first one may have it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._waiting = [one for one in self._waiting if not one.turn.done()]
        if self._working or not self._waiting:
            return
        now = time.monotonic()
        ready = [one for one in self._waiting if self._not_before(one.client) <= now]
        if not ready:
            soonest = min(self._not_before(one.client) for one in self._waiting)
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.001, soonest - now), self._advance)
            return
        chosen = min(ready, key=self._order)
        self._waiting.remove(chosen)
        self._working = True
        self._next[self._is_known(chosen.client)] = now + PACE
        chosen.turn.set_result(None)

    def _over(self) -> None:
        self._working = False
        self._advance()

    def _order(self, one: _Waiting) -> tuple[bool, int, int]:
        """Who comes first: browsers that are known, then the fewest wrong, then the earliest."""
        return not self._is_known(one.client), self._count_of(self._name(one.client)), one.number

    def _not_before(self, client: Client) -> float:
        wrong = self._wrong.get(self._name(client))
        own = 0.0 if wrong is None else wrong.last + self._delay(client)
        known = self._is_known(client)
        lately = self._lately[known]
        while lately and lately[0] < time.monotonic() - WINDOW:
            lately.popleft()
        return max(own, self._next[known]) if len(lately) >= MANY else own

    def _delay(self, client: Client) -> float:
        beyond = self._count_of(self._name(client)) - FREE
        return 0.0 if beyond < 0 else min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(beyond, 16))

    def _seconds(self, client: Client) -> int:
        return max(1, math.ceil(self._delay(client)))

    def _is_known(self, client: Client) -> bool:
        """Whether it is a browser that unlocked before, and has not guessed since."""
        return client.browser is not None and self._count_of(_browser(client.browser)) < FREE

    def _name(self, client: Client) -> str:
        known = client.browser is not None and self._is_known(client)
        return _browser(client.browser or "") if known else f"address {client.address}"

    def _count_of(self, name: str) -> int:
        found = self._wrong.get(name)
        if found is not None and time.monotonic() - found.last >= FORGOTTEN_AFTER:
            del self._wrong[name]
            return 0
        return 0 if found is None else found.count

    def _count(self, client: Client) -> None:
        name, now = self._name(client), time.monotonic()
        lately = self._lately[self._is_known(client)]
        lately.append(now)
        while len(lately) > MANY:
            lately.popleft()
        self._wrong[name] = _Wrong(self._count_of(name) + 1, now)
        self._wrong.move_to_end(name)
        while len(self._wrong) > MOST_COUNTED:
            self._wrong.popitem(last=False)


def _browser(browser: str) -> str:
    return f"browser {browser}"


_attempts: weakref.WeakKeyDictionary[Any, Attempts] = weakref.WeakKeyDictionary()


def attempts_of(datasette: Any) -> Attempts:
    """The attempts at this Datasette's vaults."""
    return _attempts.setdefault(datasette, Attempts())
