"""The tools as an MCP server over HTTP: one request of another server, answered by the SDK.

Boundary: who asks, and what they may do, is settled before; here comes an :class:`Assistant`. The
SDK sees the headers of the protocol alone: no token and no cookie. Each request says all that its
answer depends on, so nothing of one caller can reach another; a session holds what its client
subscribed to, and nothing else. A stream of notices lives ten minutes at most; who asks, and what
they may do, is settled anew before each notice.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from msgspec import Struct

from memory_store.assistants.assistant import Assistant
from memory_store.assistants.changes import GRACE_SECONDS, LIFE_SECONDS, Changes, Current
from memory_store.assistants.server import LANDSCAPE, Run, address_of, server_for
from memory_store.assistants.sessions import Session

HEADERS = frozenset({b"accept", b"content-type"})  # and those that begin with …
PREFIX = b"mcp-"
STREAM = b"text/event-stream"
SESSION = b"mcp-session-id"
INITIALIZE = "initialize"
START, BODY = "http.response.start", "http.response.body"
Headers = Iterable[tuple[bytes, bytes]]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Listening(Struct, frozen=True):
    """What notices need: the assistant as it is ``current`` at each look, a place among the streams
    (both raise MemoryStoreError), the caller's ``session``, and the id of one that has ``begun``.
    """

    current: Current
    admitted: Callable[[], AbstractContextManager[None]]
    session: Session | None
    begun: Callable[[], str]


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
    newer, message = _is_newer(dict(shown)), _message(body)
    begins = not newer and message.get("method") == INITIALIZE
    changes = _changes(database, run, listening)
    listen = changes.listen_within(listening.admitted) if newer else None
    subscribes = begins or (not newer and listening.session is not None)
    manager = StreamableHTTPSessionManager(
        server_for(assistant, database, run, changes if subscribes else None, listen),
        json_response=not _streams(dict(shown), message),
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

    async def sent(message: Message) -> None:
        if begins and message["type"] == START and message["status"] == 200:
            session = (SESSION, listening.begun().encode())
            message = {**message, "headers": [*message["headers"], session]}
        await send(message)

    async with manager.run():
        await manager.handle_request(scope, received, sent)


async def notices(
    database: str, run: Run, receive: Receive, send: Send, listening: Listening
) -> None:
    """The stream of a session's notices, which protocols before 2026 get, until its client closes
    it, for ten minutes at most. Raises MemoryStoreError before it begins."""
    changes = _changes(database, run, listening)

    async def say(address: str) -> None:
        uri = types.ResourceUpdatedNotificationParams(uri=address)
        said = types.ResourceUpdatedNotification(params=uri)
        data = said.model_dump_json(by_alias=True, exclude_none=True)
        message = f'{{"jsonrpc":"2.0",{data[1:]}'
        await send({"type": BODY, "body": f"data: {message}\n\n".encode(), "more_body": True})

    async def closed(by_its_client: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        by_its_client.cancel()

    with listening.admitted():
        await changes.look()
        headers = [(b"content-type", STREAM), (b"cache-control", b"no-cache")]
        await send({"type": START, "status": 200, "headers": headers})
        with anyio.move_on_after(LIFE_SECONDS + GRACE_SECONDS):
            async with anyio.create_task_group() as both:
                both.start_soon(closed, both.cancel_scope)
                await changes.tell(say, LIFE_SECONDS)
                both.cancel_scope.cancel()
        await send({"type": BODY, "body": b""})


def _changes(database: str, run: Run, listening: Listening) -> Changes:
    address = partial(address_of, database)
    subscribed = listening.session.addresses if listening.session is not None else None
    return Changes(listening.current, run, address, address(LANDSCAPE), subscribed)


def _message(body: bytes) -> Mapping[str, Any]:
    """The message that a client posted; empty where it is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _streams(headers: Mapping[bytes, bytes], message: Mapping[str, Any]) -> bool:
    """Whether a client takes a stream, and has a use for it.

    A client of a newer protocol, which has no handshake, always does: the SDK then answers short
    calls at once, and ends a call when its client has gone.
    """
    if STREAM not in headers.get(b"accept", b""):
        return False
    if _is_newer(headers):
        return True
    try:
        return "progressToken" in message["params"]["_meta"]
    except (LookupError, TypeError):
        return False  # no call that wants to hear of it


def _is_newer(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request is of a protocol that has no handshake, and no session."""
    version = headers.get(b"mcp-protocol-version")
    return version is not None and version.decode("latin-1") not in HANDSHAKE_PROTOCOL_VERSIONS
