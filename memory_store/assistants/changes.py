"""Change notices: what tells a client that a memory it subscribed to, or the landscape, changed.

It looks at the vault every second, because other programs may write to it, too. It does so only
while there is a subscription.

Boundary: of a memory its address goes out, to a client that named it before and whose assistant may
read it; a change of any other is not told. What the assistant may read is asked anew at each look:
where that is refused, or the vault is locked, the streams end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

from memory_store.assistants.assistant import Assistant
from memory_store.errors import AwayError, BusyError, MemoryStoreError
from memory_store.store import MemoryStore

LOOK_SECONDS, RENEW_SECONDS = 1.0, 10.0
MOST_SUBSCRIBED = 100  # addresses of a session or a stream, and streams of a session
LIFE_SECONDS = 600.0  # of a stream without a session; its client then asks for another
GRACE_SECONDS = 5.0  # in which a client has to read that it ended
Run = Callable[[Callable[[], Any], bool], Awaitable[Any]]
Current = Callable[[], Awaitable[Assistant]]
"""The assistant as it is now: what it may read may have changed. Raises MemoryStoreError."""


class Changes:
    """The subscriptions of one assistant's session, or one stream where there are no sessions.

    ``address`` makes a memory's resource of its id, ``landscape`` is that of all together.
    ``subscribed`` are the addresses that a session's client named (protocols before 2026).
    """

    def __init__(
        self,
        current: Current,
        run: Run,
        address: Callable[[str], str],
        landscape: str,
        subscribed: set[str] | None = None,
    ) -> None:
        self._current = current
        self._run = run
        self._address = address
        self._landscape = landscape
        self._bus = InMemorySubscriptionBus()
        self._handler = ListenHandler(self._bus, max_subscriptions=MOST_SUBSCRIBED)
        self._subscribed = set[str]() if subscribed is None else subscribed
        self._say: Callable[[str], Awaitable[None]] | None = None
        self._streams = 0
        self._seen: tuple[int, Mapping[str, int]] | None = None
        self._reader: MemoryStore
        self._renewed = -math.inf

    async def listen(
        self, context: Any, parameters: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve a stream of notices, as protocols from 2026 on have it."""
        named = parameters.notifications.resource_subscriptions or ()
        if len(named) > MOST_SUBSCRIBED:
            raise _refused(f"{len(named)} addresses: at most {MOST_SUBSCRIBED} in one stream")
        try:
            (await self._current()).spend(sum(map(len, map(str, named))))
            await self._begin()
        except MemoryStoreError as error:
            raise _refused(str(error)) from None
        self._streams += 1
        try:
            return await self._handler(context, parameters)
        finally:
            self._streams -= 1

    def listen_within(
        self, admitted: Callable[[], AbstractContextManager[None]]
    ) -> Callable[..., Awaitable[types.SubscriptionsListenResult]]:
        """:meth:`listen` for a server that keeps no session: it watches by itself, for
        ``LIFE_SECONDS`` at most. ``admitted`` raises RefusedError where there are too many."""

        async def listen(
            context: Any, parameters: types.SubscriptionsListenRequestParams
        ) -> types.SubscriptionsListenResult:
            refused: list[MCPError] = []
            result = types.SubscriptionsListenResult()

            async def serve(done: anyio.CancelScope) -> None:
                nonlocal result
                try:
                    result = await self.listen(context, parameters)
                except MCPError as error:
                    refused.append(error)
                done.cancel()

            try:
                with admitted(), anyio.move_on_after(LIFE_SECONDS + GRACE_SECONDS):
                    async with anyio.create_task_group() as both:
                        both.start_soon(serve, both.cancel_scope)
                        both.start_soon(self.watch, LIFE_SECONDS)
            except MemoryStoreError as error:
                raise _refused(str(error)) from None
            if refused:
                raise refused[0]
            return result

        return listen

    async def subscribe(
        self, context: Any, parameters: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Tell of one resource from now on, as protocols before have it."""
        address = str(parameters.uri)
        if address not in self._subscribed:
            if len(self._subscribed) >= MOST_SUBSCRIBED:
                raise _refused(f"{MOST_SUBSCRIBED} subscriptions at most: give one up first")
            try:
                (await self._current()).spend(len(address))
                await self._begin()
            except MemoryStoreError as error:
                raise _refused(str(error)) from None
            self._say = context.session.send_resource_updated
            self._subscribed.add(address)
        return types.EmptyResult()

    async def unsubscribe(
        self, context: Any, parameters: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """No more of it."""
        self._subscribed.discard(str(parameters.uri))
        return types.EmptyResult()

    async def tell(self, say: Callable[[str], Awaitable[None]], seconds: float) -> None:
        """Say of each address that the session's client subscribed to that it changed since the
        last look, for so long."""
        self._say = say
        self._streams += 1  # it looks also while nothing is subscribed to: no change is missed
        await self.watch(seconds)

    async def watch(self, seconds: float = math.inf) -> None:
        """Look at the vault every second while there is a subscription, for so long, or until it is
        locked or the assistant may no longer read; then end the streams."""
        try:
            with anyio.move_on_after(seconds):
                while True:
                    await anyio.sleep(LOOK_SECONDS)
                    with suppress(BusyError, AwayError):  # the next look tells what this did not
                        await self._tell()
        except MemoryStoreError:  # its next call is answered with that
            pass
        self._handler.close()

    async def _tell(self) -> None:
        if not (self._streams or self._subscribed):
            self._seen = None
            return
        for address in await self.look():
            await self._bus.publish(ResourceUpdated(uri=address))
            if address in self._subscribed and self._say is not None:
                await self._say(address)

    async def _begin(self) -> None:
        """Look for the first time: a later look would take what changed from those who wait."""
        if self._seen is None:
            await self.look()

    async def look(self) -> list[str]:
        """The addresses of what changed since the last look, for the assistant as it is now.

        What it may read is asked again where anything was written, and every ``RENEW_SECONDS``.
        """
        before = self._seen
        recent = time.monotonic() < self._renewed + RENEW_SECONDS
        if before and recent and await self._run(self._reader.revision, False) == before[0]:
            return []
        self._reader, self._renewed = (await self._current()).reader, time.monotonic()
        self._seen = now = await self._run(self._versions, False)
        changed = dict(now[1].items() ^ before[1].items()) if before is not None else {}
        return [self._landscape, *map(self._address, changed)] if changed else []

    def _versions(self) -> tuple[int, Mapping[str, int]]:
        return self._reader.revision(), self._reader.versions()


def _refused(message: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, message)
