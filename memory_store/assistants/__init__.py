"""Assistants: what a language model may do with a vault, and how it is reached.

tools    what it may do: six tools, the record each takes, and what each answers
server   the same as an MCP server on standard input and output
http     the same for one request that another server was sent
clients  the entry of that server in an assistant's own configuration
checkup  whether such an entry works

Boundary: text of memories leaves for whichever assistant the user has connected. It is given as
data, in the fields of an answer; no description, instruction or error quotes a memory. An assistant
reads and writes what :class:`memory_store.assistants.tools.Assistant` lets it, and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_store.errors import ExtraMissingError

if TYPE_CHECKING:
    from memory_store.assistants.http import Answer, Headers
    from memory_store.assistants.server import Run
    from memory_store.assistants.tools import Assistant

NEEDS = "the package mcp is not here: pip install 'datasette-hybrid[mcp]'"


async def answer_over_http(
    assistant: Assistant, database: str, run: Run, headers: Headers, body: bytes
) -> Answer:
    """What :func:`memory_store.assistants.http.answer` answers.

    Raises ExtraMissingError where the SDK is not installed.
    """
    require_sdk()
    from memory_store.assistants.http import answer

    return await answer(assistant, database, run, headers, body)


def require_sdk() -> None:
    """Raise ExtraMissingError where the SDK is not installed."""
    try:
        import mcp  # noqa: F401
    except ModuleNotFoundError as error:
        raise ExtraMissingError(NEEDS) from error
