"""Whatever a memory says, tools, resources and prompts give it as data, and nothing else does."""

from __future__ import annotations

import json
import logging

import pytest
from injections import (
    CANARY,
    INJECTIONS,
    calls_of_every_tool,
    described,
    hostile_drafts,
    outside_data,
)

from memory_store.assistants.assistant import Assistant
from memory_store.assistants.tools import TOOLS
from memory_store.assistants.trail import Trail
from memory_store.scopes import EVERYTHING
from memory_store.store import MemoryStore

pytest.importorskip("mcp", reason="the extra mcp is not installed")
from mcp import Client, MCPError

from memory_store.assistants.server import one_at_a_time, server_for


def test_the_table_has_a_call_and_a_refusal_of_every_tool() -> None:
    """A tool that is added without them fails here."""
    table = calls_of_every_tool("", 1)
    for refused in (False, True):
        assert {name for name, _, so in table if so is refused} == {one.name for one in TOOLS}


@pytest.mark.parametrize("text", INJECTIONS)
async def test_what_a_memory_says_is_data_and_nothing_else(
    store: MemoryStore,
    text: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    plain = [one for one in hostile_drafts("Plain") if one.type == "code"]
    store.add_many(plain, embed=False)  # so the same tools are offered before
    trail = Trail(store, "helper")
    helper = Assistant(store.limited_to(EVERYTHING), "write", "helper")
    async with Client(server_for(helper, "notes", one_at_a_time())) as client:
        before = await described(client)
        if text.isprintable():
            store.collections.create(f"{text} {CANARY}")
        store.delete_many({one.id: one.version for one in store.every()})
        hostile = store.add_many(hostile_drafts(text))
        one = hostile[0]
        seen = set()
        for name, given, refused in calls_of_every_tool(one.id, one.version):
            answer = await client.call_tool(name, given)
            assert answer.is_error is refused, (name, given, answer.content)
            if refused:
                assert CANARY.casefold() not in answer.content[0].text.casefold(), answer.content
                continue
            data = answer.structured_content
            assert json.loads(answer.content[0].text) == data
            assert outside_data(CANARY, data) == [], name
            seen |= {name} if CANARY.casefold() in str(data).casefold() else set()
        assert seen >= {"memory_start", "memory_search", "memory_read", "tasks", "code_read"}
        (whole,) = (await client.read_resource(f"memory://notes/{one.id}")).contents
        assert whole.text.endswith(one.text)
        for wrong in ("harbour.md", "nowhere"):
            with pytest.raises(MCPError) as refusal:
                await client.read_resource(f"memory://notes/{wrong}")
            assert CANARY not in str(refusal.value)
        assert await described(client) == before
    trail.write()
    events = str(store.trail.events())
    assert "assistant helper" in events
    printed = capfd.readouterr()
    for kept in (events, caplog.text, printed.out, printed.err):
        assert CANARY.casefold() not in kept.casefold()
