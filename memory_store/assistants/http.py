"""The tools as an MCP server over HTTP: one request of another server, answered by the SDK.

Boundary: who asks, and what they may do, is settled before; here comes an :class:`Assistant`. The
SDK sees the headers of the protocol alone: no token and no cookie. No session is kept: each request
says all that its answer depends on, so nothing of one caller can reach another. A stream of notices
lives ten minutes at most; who asks, and what they may do, is settled anew before each notice.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from msgspec import Struct

from memory_store.assistants.assistant import Assistant
from memory_store.assistants.changes import Changes, Current
from memory_store.assistants.server import LANDSCAPE, Run, address_of, server_for

HEADERS = frozenset({b"accept", b"content-type"})  # and those that begin with …
PREFIX = b"mcp-"
STREAM = b"text/event-stream"
Headers = Iterable[tuple[bytes, bytes]]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Listening(Struct, frozen=True):
    """What a stream of notices needs: the assistant as it is ``current`` at each look, and a place
    among the streams. Both raise MemoryStoreError."""

    current: Current
    admitted: Callable[[], AbstractContextManager[None]]


async def answer(
    assistant: Assistant,
    database: str,
    run: Run,
    headers: Headers,
    body: bytes,
    receive: Receive,
    send: Send,
    listening: Listening,
) -> None:
    """Answer what one request posted; ``database`` is the vault's name in addresses.

    A call that wants to hear of its progress is answered as a stream, and cancelled where the
    client closes that; so is one for notices of changes, which a newer protocol asks for in a
    request of its own. Every other is answered as JSON.
    """
    named = [(name.lower(), value) for name, value in headers]
    shown = [(name, value) for name, value in named if name in HEADERS or name.startswith(PREFIX)]
    address = partial(address_of, database)
    changes = Changes(listening.current, run, address, address(LANDSCAPE))
    listen = changes.listen_within(listening.admitted) if _is_newer(dict(shown)) else None
    manager = StreamableHTTPSessionManager(
        server_for(assistant, database, run, listen=listen),
        json_response=not _streams(dict(shown), body),
        stateless=True,
        max_request_body_size=len(body) + 1,
    )
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "query_string": b"",
        "headers": shown,
    }
    waiting = [body]

    async def received() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    async with manager.run():
        await manager.handle_request(scope, received, send)


def _streams(headers: Mapping[bytes, bytes], body: bytes) -> bool:
    """Whether a client takes a stream, and has a use for it.

    A client of a newer protocol, which has no handshake, always does: the SDK then answers short
    calls at once, and ends a call when its client has gone.
    """
    if STREAM not in headers.get(b"accept", b""):
        return False
    if _is_newer(headers):
        return True
    try:
        return "progressToken" in json.loads(body)["params"]["_meta"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return False  # no call that wants to hear of it


def _is_newer(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request is of a protocol that has no handshake, and no session."""
    version = headers.get(b"mcp-protocol-version")
    return version is not None and version.decode("latin-1") not in HANDSHAKE_PROTOCOL_VERSIONS
