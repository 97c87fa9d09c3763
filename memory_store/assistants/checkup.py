"""Whether an assistant reaches its memories: its own entry, started and asked as it would do it.

Boundary: a search is made, and what it finds is counted and dropped. What the server writes to its
standard error is kept in memory alone, for the one line that says why it ended.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from time import monotonic
from typing import Any

import anyio
from mcp import ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

from memory_store.assistants.clients import Entry
from memory_store.assistants.trail import TRIAL
from memory_store.errors import StorageError

SECONDS = 60.0  # for each step; the first one loads a model
PROBE = "what is in here"

Told = Callable[[str, float], None]
"""Takes each step that went well, in words, and the seconds that it took."""


def check(entry: Entry, told: Told) -> None:
    """Start the server of an entry, list its tools and search once.

    It gets the variables of the entry and the few that the SDK passes on, as assistants do it. That
    it was only tried stands in the trail: for the assistant it is no visit.
    Raises StorageError, which says at which step it failed and what the server said.
    """
    with tempfile.SpooledTemporaryFile(mode="w+", encoding="utf-8") as said:
        said.rollover()  # a child writes to a descriptor; the file has no name
        step = _Step("start the server")
        try:
            anyio.run(_check, entry, told, said, step)
        except Exception as error:  # noqa: BLE001 - of a server of any version, and of its pipes
            said.seek(0)
            lines = [line for line in said.read().splitlines() if line.strip()]
            why = lines[-1].removeprefix("Error: ") if lines else _innermost(error)
            raise StorageError(f"could not {step.name}: {why}") from None


class _Step:
    """What is being tried."""

    def __init__(self, name: str) -> None:
        self.name = name


async def _check(entry: Entry, told: Told, said: Any, step: _Step) -> None:
    server = StdioServerParameters(
        command=entry.command, args=[*entry.args, "--surface", TRIAL], env=entry.env
    )
    began = monotonic()

    def done(words: str, following: str) -> None:
        nonlocal began
        told(words, monotonic() - began)
        began, step.name = monotonic(), following

    async with (
        stdio_client(server, errlog=said) as (incoming, outgoing),
        ClientSession(incoming, outgoing) as session,
    ):
        with anyio.fail_after(SECONDS):
            await session.initialize()
        done("the server starts and opens the vault", "list its tools")
        with anyio.fail_after(SECONDS):
            tools = (await session.list_tools()).tools
        done(f"it offers {', '.join(one.name for one in tools)}", "search")
        with anyio.fail_after(SECONDS):
            found = await session.call_tool("memory_search", {"query": PROBE})
        if found.is_error:
            raise ValueError("".join(getattr(one, "text", "") for one in found.content))
        results = (found.structured_content or {}).get("results", [])
        done(f"a search finds {len(results) or 'nothing'}", "end")


def _innermost(error: BaseException) -> str:
    """What went wrong, out of the groups that tasks which ended together are raised in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"no answer within {SECONDS:.0f} seconds"
    if isinstance(error, MCPError):
        return f"it refused ({error})"
    return str(error) or type(error).__name__
