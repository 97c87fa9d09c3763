"""What Datasette's own pages say to caches once they may hold memories.

Boundary: Datasette lets everybody's proxies keep a table or an answer to SQL for a few seconds.
With a grant in play the same address says different things to different people, so it is kept by
nobody. Our own pages and endpoints say so themselves; this covers those of Datasette and of others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ..permissions.asker import asker

CACHE_CONTROL = b"cache-control"
Send = Callable[[Any], Awaitable[None]]


def uncached(send: Send) -> Send:
    """``send``, with ``Cache-Control: no-store`` for everybody who holds a grant on some vault."""

    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start" and any(asker.get().grants.values()):
            kept = [pair for pair in message["headers"] if pair[0].lower() != CACHE_CONTROL]
            message = {**message, "headers": [*kept, (CACHE_CONTROL, b"no-store")]}
        await send(message)

    return sent
