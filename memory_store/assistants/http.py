"""The tools as an MCP server over HTTP: one request of another server, answered by the SDK.

Boundary: who asks, and what they may do, is settled before; here comes an :class:`Assistant`. The
SDK sees the headers of the protocol alone: no token and no cookie. No session is kept: each request
says all that its answer depends on, so nothing of one caller can reach another.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import Any

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from msgspec import Struct

from memory_store.assistants.assistant import Assistant
from memory_store.assistants.server import Run, server_for

HEADERS = frozenset({b"accept", b"content-type"})  # and those that begin with …
PREFIX = b"mcp-"
Headers = Iterable[tuple[bytes, bytes]]
Message = MutableMapping[str, Any]


class Answer(Struct, frozen=True):
    """What goes back: a status, a kind of content, and the whole body."""

    status: int
    content_type: str
    body: bytes


async def answer(
    assistant: Assistant, database: str, run: Run, headers: Headers, body: bytes
) -> Answer:
    """The answer to what one request posted; ``database`` is the vault's name in addresses."""
    server = server_for(assistant, database, run)
    manager = StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, max_request_body_size=len(body) + 1
    )
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "query_string": b"",
        "headers": [
            (name.lower(), value)
            for name, value in headers
            if name.lower() in HEADERS or name.lower().startswith(PREFIX)
        ],
    }
    waiting, parts = [body], bytearray()
    begun: dict[str, Any] = {}

    async def receive() -> Message:
        if not waiting:
            await anyio.sleep_forever()  # whether the client is still there is not asked
        return {"type": "http.request", "body": waiting.pop(), "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            begun.update(message)
        else:
            parts.extend(message.get("body", b""))

    async with manager.run():
        await manager.handle_request(scope, receive, send)
    kinds = [value for name, value in begun["headers"] if name.lower() == b"content-type"]
    kind = kinds[0].decode("latin-1") if kinds else "text/plain"
    return Answer(begun["status"], kind, bytes(parts))
