"""Assistants: what a language model may do with a vault, and how it is reached.

assistant  the vault as one assistant may see it, and what it may do
arguments  what each tool takes
answers    what each tool answers, within a budget
reads      the tools that read
writes     the tools that write
task_plan  the day that a task is due, and its steps
tools      all of them, as a model sees them
server     the same as an MCP server on standard input and output
http       the same for one request that another server was sent
clients    the entry of that server in an assistant's own configuration
sessions   what a client over HTTP subscribed to
allowance  how much one caller may ask in a minute
trail      what an assistant did on this machine, in the audit trail
checkup    whether such an entry works

Boundary: text of memories leaves for the assistant that the user has connected. It is given as
data, in the fields of an answer; no description or instruction quotes a memory. An error says at
most names of files and definitions of source code that it may read. An assistant reads and writes
what its :class:`memory_store.assistants.assistant.Assistant` lets it, no more.
"""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from memory_store.errors import ExtraMissingError

if TYPE_CHECKING:
    from memory_store.assistants.assistant import Assistant
    from memory_store.assistants.http import Headers, Receive, Send
    from memory_store.assistants.server import Run
    from memory_store.assistants.sessions import Session

NEEDS = "the package mcp is not here: pip install 'datasette-hybrid[mcp]'"


async def answer_over_http(
    assistant: Assistant,
    database: str,
    run: Run,
    headers: Headers,
    body: bytes | None,
    receive: Receive,
    send: Send,
    current: Callable[[], Awaitable[Assistant]],
    admitted: Callable[[], AbstractContextManager[None]],
    session: Session | None,
    begun: Callable[[], str],
) -> None:
    """What :func:`memory_store.assistants.http.answer` does; without a ``body``, its ``notices``.

    ``current`` and what follows is what :class:`memory_store.assistants.http.Listening` holds.

    Raises ExtraMissingError where the SDK is not installed. Importing it takes a second, once, in
    which others are answered.
    """
    require_sdk()
    http = await to_thread(import_module, "memory_store.assistants.http")
    listening = http.Listening(current, admitted, session, begun)
    if body is None:
        await http.notices(database, run, receive, send, listening)
        return
    await http.answer(assistant, database, run, headers, body, receive, send, listening)


def require_sdk() -> None:
    """Raise ExtraMissingError where the SDK is not installed. Loads nothing."""
    if find_spec("mcp") is None:
        raise ExtraMissingError(NEEDS)
