"""The tools of an assistant on a vault that a keeper has open, for a client in this process.

Boundary: as :mod:`memory_store.keeper.client`; what the keeper's server lets this assistant do.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from socket import socket
from typing import Any

from memory_store.errors import BadInputError, LockedError, MemoryStoreError
from memory_store.keeper.client import ASSISTANT, Doing, connected
from memory_store.keeper.frames import ERR, EXIT, RAW

PROTOCOL = "2025-06-18"  # of MCP: https://modelcontextprotocol.io/specification/2025-06-18
ENDED = "the vault was locked, or the process that kept it open ended: memory-store unlock"


def kept_assistant(words: Sequence[str]) -> KeptAssistant | None:
    """The assistant that ``memory-store mcp WORDS`` is to a keeper; ``None`` where there is no
    keeper, or the vault is to be opened by the caller. Raises BadInputError."""
    asked = [ASSISTANT, *words]
    connection = connected(asked[1:])
    if connection is None:
        return None
    try:
        kind, data, pieces = Doing(ASSISTANT, asked, _not_asked, _not_asked).exchanged(connection)
    except OSError:
        kind, data, pieces = b"", b"", []
    if kind == RAW:
        return KeptAssistant(connection)
    connection.close()
    if kind == EXIT and int(data):
        said = b"".join(piece for place, piece in pieces if place == ERR).decode()
        raise BadInputError(said.strip().removeprefix("Error: "))
    return None


def _not_asked(_: Any) -> Any:
    raise AssertionError("an assistant's server shows and edits nothing")


class KeptAssistant:
    """MCP with a keeper, a message a line; one call after the other."""

    def __init__(self, connection: socket) -> None:
        self._connection = connection
        self._lines = connection.makefile("rw", encoding="utf-8", newline="\n")
        self._numbers = count(1)
        about = {"name": "memory-store", "version": "1"}
        self._ask("initialize", protocolVersion=PROTOCOL, capabilities={}, clientInfo=about)
        self._say({"method": "notifications/initialized"})

    def tools(self) -> list[dict[str, Any]]:
        """What is offered: ``name``, ``description`` and ``inputSchema`` of each tool."""
        found: list[dict[str, Any]] = self._ask("tools/list")["tools"]
        return found

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What a tool answers. Raises MemoryStoreError."""
        answer = self._ask("tools/call", name=name, arguments=arguments)
        if answer.get("isError"):
            raise MemoryStoreError(answer["content"][0]["text"])
        found: dict[str, Any] = answer["structuredContent"]
        return found

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._say({"id": number, "method": method, "params": parameters})
        while line := self._heard():
            message = json.loads(line)
            if message.get("id") == number:
                if "error" in message:
                    raise MemoryStoreError(message["error"]["message"])
                result: dict[str, Any] = message["result"]
                return result
        raise LockedError(ENDED)

    def _say(self, message: dict[str, Any]) -> None:
        try:
            self._lines.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            self._lines.flush()
        except OSError:
            raise LockedError(ENDED) from None

    def _heard(self) -> str:
        try:
            return self._lines.readline()
        except OSError:
            return ""
