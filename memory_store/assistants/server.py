"""The tools as an MCP server, by the official SDK: on standard input and output, or over HTTP.

Boundary: standard output carries the protocol and nothing else. An error that is not a refusal is
answered without its words, which may quote a memory.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.metadata import version
from itertools import count
from typing import Any, TextIO
from urllib.parse import quote, unquote

import anyio
import mcp_types as types
from anyio import to_thread
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from memory_store.assistants.answers import in_short, whole
from memory_store.assistants.assistant import Assistant
from memory_store.assistants.changes import Changes
from memory_store.assistants.reads import DATA, as_markdown, landscape_markdown
from memory_store.assistants.tools import FAULT, TOOLS, Tool, answered, no_such_tool, tools_of
from memory_store.errors import MemoryStoreError
from memory_store.text.token_count import counted_with

INSTRUCTIONS = (
    "The user's own encrypted memories. Call memory_start first, memory_search before you answer "
    f"from memory. {DATA} Budgets are tokens, counted as {counted_with()}."
)
SCHEME = "memory://"
LANDSCAPE = "landscape"
PROMPTS = {
    "remember": (
        "Remember this",
        "Store what matters of this conversation.",
        ("what", "What to remember"),
        "Remember this in my memories, word for word where it matters, with topics. Look first "
        "whether it is known already: {}",
    ),
    "known": (
        "What do we know about …",
        "Search the memories, and answer with ids.",
        ("about", "A question or a topic"),
        "Search my memories and tell me what they say about this, with the ids of those you "
        "used, and say so if they say nothing: {}",
    ),
    "session-notes": (
        "Session notes",
        "End a conversation with a summary that links to what it used.",
        ("about", "What the conversation was about"),
        "End this conversation with one memory_add of type summary and the topic session: what was "
        "wanted, what was decided and why, what is left to do. Link every memory that you used or "
        "added as [[its id]]. Say nothing that the conversation does not hold. About: {}",
    ),
    "weekly-review": (
        "Weekly review",
        "What happened, what is open, what to tidy up.",
        ("since", "Since when (7d)"),
        "Go through my memories since {}: what was decided, which tasks are open, and what "
        "contradicts or repeats something older.",
    ),
}
DEFAULT_SINCE = "7d"
PROGRESS_SECONDS = 1.0
AT_WORK = "at work"


Run = Callable[[Callable[[], Any], bool], Awaitable[Any]]
"""Does a piece of work in a thread; the second argument is whether it writes."""


class MemoryServer(Server[Any]):
    """The SDK's server, which says no more than is so."""

    def get_capabilities(self, *options: Any, **named: Any) -> types.ServerCapabilities:
        """The SDK has every list change where notices are served: ours stay. A resource changes."""
        said = super().get_capabilities(*options, **named)
        subscribe = said.resources.subscribe if said.resources else None
        same = {
            "tools": types.ToolsCapability(),
            "prompts": types.PromptsCapability(),
            "resources": types.ResourcesCapability(subscribe=subscribe),
        }
        return said.model_copy(update=same)


def server_for(
    assistant: Assistant,
    database: str,
    run: Run,
    changes: Changes | None = None,
    listen: Callable[..., Awaitable[types.SubscriptionsListenResult]] | None = None,
) -> Server[Any]:
    """The server for one assistant; ``database`` is the vault's name in addresses.

    ``changes`` are the subscriptions of a session. ``listen`` serves a stream of notices, where
    they do not.
    """
    return MemoryServer(
        "memory-store",
        version=version("datasette-hybrid"),
        title="Memories",
        instructions=INSTRUCTIONS,
        on_list_tools=_listing(assistant, run),
        on_call_tool=_calling(assistant, run),
        on_list_resources=_resources(database),
        on_list_resource_templates=_templates(database),
        on_read_resource=_reading(assistant, database, run),
        on_list_prompts=_prompts,
        on_get_prompt=_prompt,
        on_subscribe_resource=changes.subscribe if changes else None,
        on_unsubscribe_resource=changes.unsubscribe if changes else None,
        on_subscriptions_listen=listen or (changes.listen if changes else None),
    )


def one_at_a_time() -> Run:
    """Does work in a thread, one after the other: a vault's writes wait for one another anyhow.

    Reading that is cancelled is left alone, and the next begins. Writing is ended first: whole.
    """
    working = anyio.Lock()

    async def in_thread(work: Callable[[], Any], writes: bool) -> Any:
        async with working:
            return await to_thread.run_sync(work, abandon_on_cancel=not writes)

    return in_thread


def serve(assistant: Assistant, database: str, *streams: TextIO) -> None:
    """Serve one assistant until it closes its input.

    ``streams`` are that input and its output: standard ones where none are given.
    """

    async def serving() -> None:
        in_thread = one_at_a_time()
        address = partial(address_of, database)

        async def current() -> Assistant:
            return assistant

        changes = Changes(current, in_thread, address, address(LANDSCAPE))
        server = server_for(assistant, database, in_thread, changes)
        async with (
            stdio_server(*map(anyio.wrap_file, streams)) as (incoming, outgoing),
            anyio.create_task_group() as beside,
        ):
            beside.start_soon(changes.watch)
            await server.run(incoming, outgoing, server.create_initialization_options())
            beside.cancel_scope.cancel()

    anyio.run(serving)


def tool(tool: Tool) -> types.Tool:
    """A tool as the protocol has it."""
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema(),
        output_schema=tool.output_schema(),
        annotations=_hints(tool),
    )


def _hints(tool: Tool) -> types.ToolAnnotations:
    """What a client may know before a call. Of one that only reads nothing more is meant."""
    if tool.needs == "read":
        return types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
    return types.ToolAnnotations(
        read_only_hint=False,
        destructive_hint=tool.destructive,
        idempotent_hint=tool.idempotent,
        open_world_hint=False,
    )


def _listing(assistant: Assistant, run: Run) -> Callable[..., Awaitable[types.ListToolsResult]]:
    async def listing(context: Any, parameters: Any) -> types.ListToolsResult:
        offered = await run(partial(tools_of, assistant), False)
        return types.ListToolsResult(tools=[tool(one) for one in offered])

    return listing


def _calling(assistant: Assistant, run: Run) -> Callable[..., Awaitable[Any]]:
    async def calling(context: Any, parameters: types.CallToolRequestParams) -> Any:
        if not any(one.name == parameters.name for one in TOOLS):
            raise _refused(no_such_tool(assistant, parameters.name))
        async with anyio.create_task_group() as beside:
            beside.start_soon(_report_progress, context.session)
            answer = await _answered(assistant, run, parameters)
            beside.cancel_scope.cancel()
        return answer

    return calling


async def _answered(
    assistant: Assistant, run: Run, parameters: types.CallToolRequestParams
) -> types.CallToolResult:
    work = partial(answered, assistant, parameters.name, parameters.arguments)
    writes = any(one.name == parameters.name and one.needs != "read" for one in TOOLS)
    try:
        answer = await run(work, writes)
    except MemoryStoreError as error:
        return _failed(str(error))
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=answer
    )


async def _report_progress(session: Any) -> None:
    """Tell a client that wants to know, every second, for how many a call has been at work."""
    for seconds in count(1):
        await anyio.sleep(PROGRESS_SECONDS)
        await session.report_progress(float(seconds), message=AT_WORK)


def _failed(message: str) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=in_short(message))], is_error=True
    )


def address_of(database: str, name: str) -> str:
    return f"{SCHEME}{quote(database, safe='')}/{name}"


def _resources(database: str) -> Callable[..., Awaitable[types.ListResourcesResult]]:
    async def resources(context: Any, parameters: Any) -> types.ListResourcesResult:
        landscape = types.Resource(
            name=LANDSCAPE,
            uri=address_of(database, LANDSCAPE),
            description="Which topics stand together, as Markdown",
            mime_type="text/markdown",
        )
        return types.ListResourcesResult(resources=[landscape])

    return resources


def _templates(database: str) -> Callable[..., Awaitable[Any]]:
    async def templates(context: Any, parameters: Any) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            name="memory",
            uri_template=address_of(database, "{id}"),
            description="One memory, as Markdown",
            mime_type="text/markdown",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    return templates


def _reading(
    assistant: Assistant, database: str, run: Run
) -> Callable[..., Awaitable[types.ReadResourceResult]]:
    async def reading(
        context: Any, parameters: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        name, _, id_ = parameters.uri.removeprefix(SCHEME).partition("/")
        if not parameters.uri.startswith(SCHEME) or unquote(name) != database:
            raise _refused("there is no such resource", parameters.uri)
        try:
            assistant.spend(len(id_))
            work = partial(as_markdown, assistant, unquote(id_))
            if id_ == LANDSCAPE:
                work = partial(landscape_markdown, assistant)
            text = whole(await run(work, False))
        except MemoryStoreError as error:
            raise _refused(str(error), parameters.uri) from None
        except Exception:  # noqa: BLE001 - its words may quote a memory
            raise _refused(FAULT, parameters.uri) from None
        content = types.TextResourceContents(
            uri=parameters.uri, mime_type="text/markdown", text=text
        )
        return types.ReadResourceResult(contents=[content])

    return reading


def _refused(message: str, uri: str | None = None) -> MCPError:
    """The protocol's own refusal, which names the resource that was asked for."""
    return MCPError(types.INVALID_PARAMS, in_short(message), {"uri": uri} if uri else None)


async def _prompts(context: Any, parameters: Any) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                title=title,
                description=description,
                arguments=[
                    types.PromptArgument(name=argument, description=meaning, required=False)
                ],
            )
            for name, (title, description, (argument, meaning), _) in PROMPTS.items()
        ]
    )


async def _prompt(context: Any, parameters: types.GetPromptRequestParams) -> types.GetPromptResult:
    if parameters.name not in PROMPTS:
        raise _refused(f"there is no prompt {parameters.name!r}: {', '.join(PROMPTS)}")
    _, description, (argument, _), words = PROMPTS[parameters.name]
    usual = DEFAULT_SINCE if argument == "since" else ""
    text = words.format((parameters.arguments or {}).get(argument, usual))
    content = types.TextContent(type="text", text=text)
    return types.GetPromptResult(
        description=description, messages=[types.PromptMessage(role="user", content=content)]
    )
