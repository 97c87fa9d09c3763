"""Change notices: what tells a client that a memory it subscribed to, or the landscape, changed.

It looks at the vault every second, because other programs may write to it, too. It does so only
while there is a subscription.

Boundary: of a memory its address goes out, to a client that named it before and whose assistant may
read it; a change of any other is not told.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

from memory_store.assistants.assistant import Assistant
from memory_store.errors import MemoryStoreError

LOOK_SECONDS = 1.0
MOST_SUBSCRIBED = 100  # addresses of a session, and streams
Run = Callable[[Callable[[], Any], bool], Awaitable[Any]]


class Changes:
    """The subscriptions of one assistant's session. ``address`` makes a memory's resource of its
    id, ``landscape`` is that of all together."""

    def __init__(
        self, assistant: Assistant, run: Run, address: Callable[[str], str], landscape: str
    ) -> None:
        self._assistant = assistant
        self._run = run
        self._address = address
        self._landscape = landscape
        self._bus = InMemorySubscriptionBus()
        self._handler = ListenHandler(self._bus, max_subscriptions=MOST_SUBSCRIBED)
        self._subscribed: dict[str, Callable[[], Awaitable[None]]] = {}
        self._streams = 0
        self._seen: tuple[int, Mapping[str, int]] | None = None

    async def listen(
        self, context: Any, parameters: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve a stream of notices, as protocols from 2026 on have it."""
        await self._look()
        self._streams += 1
        try:
            return await self._handler(context, parameters)
        finally:
            self._streams -= 1

    async def subscribe(
        self, context: Any, parameters: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Tell of one resource from now on, as protocols before have it."""
        address = str(parameters.uri)
        if address not in self._subscribed and len(self._subscribed) < MOST_SUBSCRIBED:
            await self._look()
            tell = context.session.send_resource_updated
            self._subscribed[address] = partial(tell, address)
        return types.EmptyResult()

    async def unsubscribe(
        self, context: Any, parameters: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """No more of it."""
        self._subscribed.pop(str(parameters.uri), None)
        return types.EmptyResult()

    async def watch(self) -> None:
        """Look at the vault every second while there is a subscription, until it is locked."""
        try:
            while True:
                await anyio.sleep(LOOK_SECONDS)
                if not (self._streams or self._subscribed):
                    self._seen = None
                    continue
                for address in await self._look():
                    await self._bus.publish(ResourceUpdated(uri=address))
                    if address in self._subscribed:
                        await self._subscribed[address]()
        except MemoryStoreError:  # locked: its next call is answered with that
            return

    async def _look(self) -> list[str]:
        """The addresses of what changed since the last look."""
        before = self._seen
        now = await self._run(partial(self._versions, before), False)
        self._seen = now
        if before is None or now is before:
            return []
        changed = dict(now[1].items() ^ before[1].items())
        return [self._landscape, *map(self._address, changed)]

    def _versions(
        self, known: tuple[int, Mapping[str, int]] | None
    ) -> tuple[int, Mapping[str, int]]:
        reader = self._assistant.reader
        revision = reader.revision()
        return known if known and known[0] == revision else (revision, reader.versions())
