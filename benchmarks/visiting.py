"""Visitors of a web server: many at once from one process, which must cost next to nothing.

Each visitor is a task with a connection of its own that is kept open, as a browser does. Two cores
are the server's and the visitors' together, so this is bytes in and bytes out, and no HTTP library.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from statistics import quantiles

from msgspec import Struct, field

TURNED_AWAY = "too many searches"
COME_AGAIN = 1.0  # seconds; what Retry-After says
TICK = 0.5  # seconds between two looks of somebody who reads; nobody leafs faster through tables


class Reply(Struct, frozen=True):
    """A response, and the seconds from the first byte asked to the last byte answered."""

    status: int
    body: bytes
    seconds: float

    @property
    def turned_away(self) -> bool:
        """Whether the server had enough to do: 429, or the same in the words of an SQL error."""
        return self.status == 429 or (self.status == 400 and TURNED_AWAY.encode() in self.body)


class Visitor:
    """One browser: a connection, and a cookie."""

    def __init__(self, port: int, cookie: str) -> None:
        self._port = port
        self._head = f"Host: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n\r\n"
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def get(self, path: str) -> Reply:
        """Ask for ``path``. Raises ``OSError`` where nobody listens."""
        if self._writer is None:
            opened = asyncio.open_connection("127.0.0.1", self._port, limit=1 << 20)
            self._reader, self._writer = await opened
        begun = time.perf_counter()
        self._writer.write(f"GET {path} HTTP/1.1\r\n{self._head}".encode())
        status, body = await self._response()
        return Reply(status, body, time.perf_counter() - begun)

    async def _response(self) -> tuple[int, bytes]:
        assert self._reader is not None
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head.split(b" ", 2)[1])
        if b"transfer-encoding: chunked" in head:
            return status, b"".join([chunk async for chunk in self._chunks(self._reader)])
        _, _, length = head.partition(b"content-length:")
        return status, await self._reader.readexactly(int(length.split(b"\r\n", 1)[0] or b"0"))

    async def _chunks(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        while size := int(await reader.readline(), 16):
            yield (await reader.readexactly(size + 2))[:-2]
        await reader.readline()

    def leave(self) -> None:
        """Close the connection."""
        if self._writer is not None:
            self._writer.close()


class Visits(Struct):
    """What visitors saw: seconds of each answer, and how many were turned away."""

    answered: list[float] = field(default_factory=list)
    turned_away: int = 0
    seconds: float = 0.0

    @property
    def per_second(self) -> float:
        """Answers a second."""
        return len(self.answered) / self.seconds if self.seconds else 0.0

    def percentile(self, percent: int) -> float:
        """Seconds within which so many of a hundred were answered."""
        if len(self.answered) < 2:
            return self.answered[0] if self.answered else float("nan")
        return quantiles(self.answered, n=100, method="inclusive")[percent - 1]


async def crowd(
    port: int, cookie: str, paths: Sequence[str], clients: int, over: asyncio.Event
) -> Visits:
    """``clients`` visitors who ask one path after another until the event.

    Who is turned away comes again a second later, as the server asks. Raises ``RuntimeError`` for
    any other answer than 200.
    """
    visits, begun = Visits(), time.perf_counter()

    async def visit(number: int) -> None:
        visitor = Visitor(port, cookie)
        for path in _from(paths, number * len(paths) // clients):
            if over.is_set():
                break
            reply = await visitor.get(path)
            if reply.turned_away:
                visits.turned_away += 1
                await _set_before(over, COME_AGAIN)
            elif reply.status == 200:
                visits.answered.append(reply.seconds)
            else:
                raise RuntimeError(f"{path}: {reply.status} {reply.body[:200]!r}")
        visitor.leave()

    await asyncio.gather(*(visit(number) for number in range(clients)))
    visits.seconds = time.perf_counter() - begun
    return visits


class PassersBy:
    """Somebody at each of a few pages, who looks at it twice a second; ``seen`` by page.

    They keep to a beat, each at another moment of it, so that they do not wait for one another
    as long as the pages are quick. Who waits longer than a beat looks again with the next one.
    """

    def __init__(self, port: int, cookie: str, pages: Mapping[str, str]) -> None:
        self._port, self._cookie, self._pages = port, cookie, pages
        self.seen = {name: Visits() for name in pages}

    @property
    def fewest(self) -> int:
        """How often the page was seen that was seen least."""
        return min((len(visits.answered) for visits in self.seen.values()), default=0)

    async def look(self, over: asyncio.Event) -> None:
        """Until the event; what is answered after it does not count. Raises ``RuntimeError``."""
        begun = time.perf_counter()
        shares = {name: n * TICK / len(self._pages) for n, name in enumerate(self._pages)}
        await asyncio.gather(*(self._look(name, begun + at, over) for name, at in shares.items()))

    async def _look(self, name: str, first: float, over: asyncio.Event) -> None:
        visitor = Visitor(self._port, self._cookie)
        while not await _set_before(over, _next_tick(first)):
            reply = await visitor.get(self._pages[name])
            if reply.status != 200:
                raise RuntimeError(f"{self._pages[name]}: {reply.status}")
            if not over.is_set():
                self.seen[name].answered.append(reply.seconds)
        visitor.leave()


def _next_tick(first: float) -> float:
    """Seconds until the next beat that began at ``first``."""
    now = time.perf_counter()
    return first - now if now < first else TICK - (now - first) % TICK


async def _set_before(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event happens within so many seconds."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()


def _from(paths: Sequence[str], start: int) -> Iterator[str]:
    """The paths over and over, from a different one for each visitor."""
    while True:
        yield paths[start % len(paths)]
        start += 1
