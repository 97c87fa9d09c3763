"""The MCP server, asked by the official SDK's own client over standard input and output."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from injections import INJECTIONS, described

from memory_store.records import MemoryDraft
from memory_store.scopes import EVERYTHING
from memory_store.store import MemoryStore

pytest.importorskip("mcp", reason="the extra mcp is not installed")
from mcp import Client, ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

from memory_store.assistants.assistant import Assistant
from memory_store.assistants.server import one_at_a_time, server_for


@pytest.fixture
def notes(store: MemoryStore, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """A vault with some memories, which another process opens with the same model."""
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    store.add("The spare key of the flat hangs in the hall", title="Spare key")
    store.add("Tomatoes want water in the morning", title="Tomatoes")
    return store


@asynccontextmanager
async def connected(
    store: MemoryStore, key_file: Path, *flags: str, heard: Any = None
) -> AsyncIterator[Any]:
    command = ["-m", "memory_store", "mcp", str(store.path), "--key-file", str(key_file), *flags]
    server = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    async with (
        stdio_client(server) as (read, write),
        ClientSession(read, write, message_handler=heard) as session,
    ):
        await session.initialize()
        yield session


async def test_a_client_searches_reads_and_adds(notes: MemoryStore, key_file: Path) -> None:
    async with connected(notes, key_file, "--write", "--name", "tester") as session:
        tools = (await session.list_tools()).tools
        assert {one.name for one in tools} >= {"memory_start", "memory_search", "memory_add"}
        assert next(one for one in tools if one.name == "memory_search").annotations.read_only_hint
        found = await session.call_tool("memory_search", {"query": "spare key", "format": "json"})
        first = found.structured_content["results"][0]
        assert json.loads(found.content[0].text) == found.structured_content
        read = await session.call_tool("memory_read", {"ids": [first["id"]]})
        assert "key" in read.structured_content["memories"][0]["text"]
        new = await session.call_tool("memory_add", {"memories": [{"text": "Bins on Tuesday"}]})
        id_ = new.structured_content["memories"][0]["id"]
        resource = await session.read_resource(f"memory://{notes.path.stem}/{id_}")
        assert resource.contents[0].text == "Bins on Tuesday"
    assert notes.get(id_).metadata == {"by": "tester"}


async def test_in_one_collection_it_adds_there(notes: MemoryStore, key_file: Path) -> None:
    for name in ("work", "play"):
        notes.collections.create(name)
    new = {"memories": [{"text": "Bins on Tuesday"}]}
    async with connected(notes, key_file, "--append-only", "--collection", "work") as session:
        assert not (await session.call_tool("memory_add", new)).is_error
    (added,) = (one for one in notes.list() if one.text == "Bins on Tuesday")
    assert added.collection == "work"
    several = ("--collection", "work", "--collection", "play")
    async with connected(notes, key_file, "--append-only", *several) as session:
        refused = await session.call_tool("memory_add", new)
    assert "say which" in refused.content[0].text


async def test_one_that_may_only_read_is_refused_in_words(
    notes: MemoryStore, key_file: Path
) -> None:
    async with connected(notes, key_file) as session:
        names = {one.name for one in (await session.list_tools()).tools}
        assert names == {
            "memory_start",
            "memory_search",
            "memory_landscape",
            "memory_read",
            "tasks",
        }
        refused = await session.call_tool("memory_add", {"memories": [{"text": "x"}]})
        assert refused.is_error
        assert "only read" in refused.content[0].text
        with pytest.raises(MCPError, match="there is no tool 'nosuch'; there is: memory_start"):
            await session.call_tool("nosuch", {})


async def test_a_long_text_is_embedded_before_the_server_ends(
    notes: MemoryStore, key_file: Path
) -> None:
    async with connected(notes, key_file, "--append-only") as session:
        long = {"text": "The weir is inspected in May, and the mill in June. " * 60}
        added = await session.call_tool("memory_add", {"memories": [long]})
        assert "by its meaning shortly" in added.structured_content["note"]
    assert notes.embedding().left == 0


async def test_what_was_left_without_vectors_is_embedded_by_the_next_server(
    notes: MemoryStore, key_file: Path
) -> None:
    notes.add_many([MemoryDraft("The weir is inspected in May")], embed=False)
    async with connected(notes, key_file):
        with anyio.fail_after(30):
            while notes.embedding().left:
                await anyio.sleep(0.02)


async def test_nothing_that_a_memory_holds_reaches_what_describes_the_server(
    store: MemoryStore,
) -> None:
    async def shown() -> list[str]:
        assistant = Assistant(store.limited_to(EVERYTHING), "write")
        async with Client(server_for(assistant, "notes", one_at_a_time())) as client:
            return await described(client)

    before = await shown()
    for number, text in enumerate(INJECTIONS):
        if text.isprintable():
            store.collections.create(f"{number} {text}")
        store.add(text, title=text, topics=[text.splitlines()[0]], type="preference")
    assert await shown() == before


async def test_prompts_and_templates_say_what_they_are(notes: MemoryStore, key_file: Path) -> None:
    async with connected(notes, key_file) as session:
        prompts = (await session.list_prompts()).prompts
        assert all(one.description for one in prompts)
        review = await session.get_prompt("weekly-review", {})
        assert "7d" in review.messages[0].content.text
        (template,) = (await session.list_resource_templates()).resource_templates
        assert template.uri_template == f"memory://{notes.path.stem}/{{id}}"


async def test_who_subscribed_is_told_what_another_program_changed(
    notes: MemoryStore, key_file: Path
) -> None:
    base, told = f"memory://{notes.path.stem}", []
    heard = anyio.Event()

    async def hear(message: Any) -> None:
        told.append(str(message.params.uri))
        if len(told) == 2:
            heard.set()

    key, tomatoes = (one.id for one in sorted(notes.list(), key=lambda one: one.title))
    async with connected(notes, key_file, heard=hear) as session:
        for name in (key, "landscape"):
            await session.subscribe_resource(f"{base}/{name}")
        notes.edit(tomatoes, text="Tomatoes want water at night")
        notes.edit(key, text="The spare key hangs in the shed")
        with anyio.fail_after(30):
            await heard.wait()
    assert set(told) == {f"{base}/{key}", f"{base}/landscape"}


async def test_an_assistant_ends_a_conversation_with_notes_that_link(
    notes: MemoryStore, key_file: Path
) -> None:
    async with connected(notes, key_file, "--write") as session:
        asked = await session.get_prompt("session-notes", {"about": "keys"})
        assert "type summary" in asked.messages[0].content.text
        (key,) = (one.id for one in notes.list() if one.title == "Spare key")
        summary = {"text": f"Moved [[{key}]].", "type": "summary", "topics": ["session"]}
        added = await session.call_tool("memory_add", {"memories": [summary]})
        begun = (await session.call_tool("memory_start", {})).structured_content
    (new,) = added.structured_content["memories"]
    assert new["id"] in {one["id"] for one in begun["newest"]}
    (back,) = notes.links(key).back
    assert notes.get(back.id).text == f"Moved [[{key}]]."


async def test_the_trail_names_it_and_it_hears_what_is_new_since_it_came(
    notes: MemoryStore, key_file: Path
) -> None:
    async with connected(notes, key_file, "--name", "tester") as session:
        begun = (await session.call_tool("memory_start", {})).structured_content
        assert "since_you_came" not in begun
        await session.call_tool("memory_search", {"query": "spare key"})
    events = [one for one in notes.trail.events() if one.who() == "assistant tester"]
    assert {(one.surface, one.action) for one in events} == {("mcp", "search"), ("mcp", "read")}
    notes.add("The gate was painted", title="Gate")
    async with connected(notes, key_file, "--name", "tester") as session:
        begun = (await session.call_tool("memory_start", {})).structured_content
        assert begun["since_you_came"] == max(one.time for one in events)[:16]
        assert [one["title"] for one in begun["new"]] == ["Gate"]
    async with connected(notes, key_file, "--name", "another") as session:
        begun = (await session.call_tool("memory_start", {})).structured_content
        assert "since_you_came" not in begun


async def test_a_client_hears_of_a_long_call_and_may_cancel_it(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_store.assistants.server.PROGRESS_SECONDS", 0.01)
    begun, heard, dropped = anyio.Event(), anyio.Event(), anyio.Event()

    async def run(work: Any, writes: bool) -> Any:
        begun.set()
        try:
            await heard.wait()
        finally:
            if not heard.is_set():
                dropped.set()
        return work()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        assert (progress >= 1, message) == (True, "at work")
        heard.set()

    async with Client(server_for(Assistant(store), "notes", run)) as client:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as calls:
                calls.start_soon(client.call_tool, "tasks", {})
                await begun.wait()
                calls.cancel_scope.cancel()
            await dropped.wait()
            answer = await client.call_tool("tasks", {}, progress_callback=hear)
        assert answer.structured_content == {"tasks": []}


async def test_reading_that_is_cancelled_is_left_alone_and_writing_is_ended() -> None:
    for writes in (False, True):
        run, begun, go_on, ended = one_at_a_time(), threading.Event(), threading.Event(), []

        def work() -> None:
            begun.set()  # noqa: B023 - used at once
            go_on.wait(30)  # noqa: B023
            ended.append(True)  # noqa: B023

        async with anyio.create_task_group() as calls:
            calls.start_soon(run, work, writes)
            await anyio.to_thread.run_sync(begun.wait)
            calls.cancel_scope.cancel()
            if writes:
                go_on.set()
        assert bool(ended) is writes
        assert await run(lambda: "the next", False) == "the next"
        go_on.set()
