"""A refusal reaches those who are still sending: what else they send is read, and dropped.

A client that asks for the connection to be closed after the answer (a script, a proxy) has it
closed while its request may still be on its way; what then arrives unread makes the system reset
the connection, and the answer is lost with it (RFC 9112, section 9.6). On connections that stay
open the server itself drops the rest of a request.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from .policy import Send

MOST = 256 * 1024**2
"""Bytes that are dropped at most: more than anything that one may send here."""
SECONDS = 30.0
"""In all, as nginx lingers: https://nginx.org/en/docs/http/ngx_http_core_module.html"""
SILENCE = 5.0
"""Seconds after which a client that sends nothing more has stopped; nginx waits as long."""


def lingering(scope: Any, receive: Any, send: Send) -> tuple[Any, Send]:
    """``receive`` and ``send`` of a request, of which the second ends when the request has."""
    if scope["type"] != "http" or not _closes(scope):
        return receive, send
    unread = True

    async def received() -> Any:
        nonlocal unread
        message = await receive()
        unread = bool(message.get("more_body"))
        return message

    async def sent(message: Any) -> None:
        if message["type"] != "http.response.body" or message.get("more_body") or not unread:
            await send(message)
            return
        await send({**message, "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(SECONDS):
                await _drop(received)
        await send({"type": "http.response.body", "body": b""})

    async def _drop(rest: Any) -> None:
        dropped = 0
        while unread and dropped < MOST:
            message = await asyncio.wait_for(rest(), SILENCE)
            dropped += len(message.get("body", b""))

    return received, sent


def _closes(scope: Any) -> bool:
    """Whether the connection ends with the answer."""
    connection = [value.lower() for name, value in scope["headers"] if name == b"connection"]
    return b"close" in connection or (
        scope["http_version"] == "1.0" and b"keep-alive" not in connection
    )
