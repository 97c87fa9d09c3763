"""An assistant whose server is a keeper: the vault is open, and the limits are the same."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from keeping_open import KeptOpen, by_keeper, start, until
from own_process import ended
from typing_commands import run

from memory_store.assistants.clients import entry_for
from memory_store.store import MemoryStore

pytest.importorskip("mcp", reason="the mcp extra is not installed")
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from memory_store.assistants.checkup import check

STARTS = [sys.executable, "-m", "memory_store", "mcp"]


@asynccontextmanager
async def assistant(kept: KeptOpen, *flags: str) -> AsyncIterator[ClientSession]:
    """An assistant's session. It is started with no key: only a keeper can serve it."""
    passed = {name: value for name, value in os.environ.items() if name.startswith("MEMORY_STORE")}
    passed.pop("MEMORY_STORE_KEY_FILE", None)
    passed["XDG_RUNTIME_DIR"] = os.environ["XDG_RUNTIME_DIR"]
    command, *arguments = STARTS
    server = StdioServerParameters(
        command=command, args=[*arguments, str(kept.path), *flags], env=passed
    )
    async with (
        stdio_client(server) as (incoming, outgoing),
        ClientSession(incoming, outgoing) as session,
    ):
        await session.initialize()
        yield session


async def test_it_searches_and_adds_without_a_key(
    kept: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    async with assistant(kept, "--write", "--name", "tester") as session:
        found = await said(session, "memory_search", query="when does the lease end", format="json")
        assert found["results"][0]["title"] == "Lease of the flat"
        added = await said(
            session, "memory_add", memories=[{"text": "The gutter leaks above the door"}]
        )
        assert "note" not in added
        long = {"text": "The gutter drips, and nobody mends it. " * 40}
        assert "shortly" in (await said(session, "memory_add", memories=[long]))["note"]
        out = by_keeper(capfdbinary, "search", str(kept.path), "gutter", "--mode", "keyword")[1]
        assert b"The gutter leaks above the door" in out  # others go on beside it
    with MemoryStore.open(kept.path, key_file=kept.key_file) as store:
        added = [one for one in store.list() if "gutter" in one.text]
        assert [one.metadata["by"] for one in added] == ["tester", "tester"]
        store.delete_many([one.id for one in added])


async def test_the_trail_names_each_assistant_for_what_it_did(
    kept: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    async with assistant(kept, "--name", "one") as one, assistant(kept, "--name", "two") as two:
        await said(one, "memory_search", query="lease")
        await said(two, "memory_read", ids=[await first_id(two)])
        by_keeper(capfdbinary, "list", str(kept.path))
    rows = json.loads(by_keeper(capfdbinary, "audit", str(kept.path), "--json")[1])
    done = {(row["who"], row["action"]) for row in rows}
    assert ("assistant one", "search") in done
    assert ("assistant two", "read") in done
    assert ("assistant one", "read") not in done


async def first_id(session: ClientSession) -> str:
    found = await said(session, "memory_search", query="lease", format="json")
    return str(found["results"][0]["id"])


async def test_read_only_and_collections_hold(kept: KeptOpen) -> None:
    async with assistant(kept) as session:
        offered = {tool.name for tool in (await session.list_tools()).tools}
        assert "memory_search" in offered
        assert "memory_add" not in offered
        refused = await session.call_tool("memory_add", {"text": "may not"})
        assert refused.is_error


def test_a_collection_that_is_not_there_is_said_as_without_a_keeper(kept: KeptOpen) -> None:
    done = ended(*STARTS, str(kept.path), "--collection", "nonsense", stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is none named 'nonsense'" in done.stderr


def test_a_lock_ends_the_server_and_says_how_to_go_on(vault: KeptOpen, tmp_path: Path) -> None:
    store, _ = MemoryStore.create(tmp_path / "one.db", key_file=vault.key_file)
    store.lock()
    kept = start(tmp_path / "one.db", vault.key_file)
    server = subprocess.Popen(
        [*STARTS, str(kept.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    server.stdin.flush()
    assert b'"id":1' in server.stdout.readline()
    kept.lock()
    _, err = server.communicate(timeout=30)
    assert server.returncode == 3
    assert b"memory-store unlock" in err


def test_an_entry_needs_no_key_while_the_vault_is_kept_open(
    kept: KeptOpen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMORY_STORE_KEY_FILE")
    words = ["mcp", str(kept.path), "install", "zed", "--print"]
    result = run(*words)
    assert result.exit_code == 0
    assert "as long as memory-store unlock keeps the vault open" in result.stderr
    assert "--key-file" not in result.stdout
    other = run(*words, "--collection", "wrok")
    assert (other.exit_code, other.stdout) == (2, "")
    assert "there is none named 'wrok'" in other.stderr
    monkeypatch.setenv("MEMORY_STORE_KEEPER", "off")
    refused = run(*words)
    assert refused.exit_code == 3
    assert "run memory-store unlock first" in refused.stderr


def test_an_entry_finds_the_open_vault_with_the_variables_of_an_assistant(
    kept: KeptOpen, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    entry = entry_for(kept.path, ["--name", "tester"])
    for name in [*entry.env, "MEMORY_STORE_KEY_FILE"]:
        monkeypatch.delenv(name, raising=False)
    check(entry, lambda words, _: said.append(words))
    assert any(words.startswith("a search finds") for words in said)


def test_a_model_of_llm_uses_its_tools_without_a_key(
    kept: KeptOpen, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("llm", reason="the llm extra is not installed")
    from memory_store.assistants.tools import TOOLS
    from memory_store.llm_plugin import Memory

    monkeypatch.delenv("MEMORY_STORE_KEY_FILE")
    offered = {one.name: one for one in Memory(str(kept.path)).tools()}
    reading = [one for one in TOOLS if one.needs == "read" and not one.of_code]
    assert [*offered] == [one.name for one in reading]
    assert all(offered[one.name].input_schema == one.schema() for one in reading)

    def answer(name: str, **arguments: Any) -> Any:
        work = offered[name].implementation
        assert work is not None
        return json.loads(work(**arguments))

    found = answer("memory_search", query="when does the lease end", format="json")
    assert found["results"][0]["title"] == "Lease of the flat"
    assert "no memory" in answer("memory_read", ids=["00000000"])["error"]
    with pytest.raises(Exception, match="none named 'abroad'"):
        Memory(str(kept.path), collection="abroad")


def test_fragments_of_llm_need_no_key_and_the_trail_names_it(
    kept: KeptOpen, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    pytest.importorskip("llm", reason="the llm extra is not installed")
    from memory_store.llm_plugin import Memory, memory_loader

    monkeypatch.delenv("MEMORY_STORE_KEY_FILE")
    fragments = memory_loader(f"{kept.path}?when does the lease end")
    assert fragments[0].startswith("# Lease of the flat")
    tools = Memory(str(kept.path), name="fragments")
    work = next(one for one in tools.tools() if one.name == "memory_search").implementation
    assert work is not None
    work(query="lease")
    del tools, work
    gc.collect()  # its connection ends with it

    def trail() -> set[tuple[str, str]]:
        rows = json.loads(by_keeper(capfdbinary, "audit", str(kept.path), "--json")[1])
        return {(row["who"], row["surface"]) for row in rows}

    until(lambda: ("assistant fragments", "llm") in trail())


async def said(session: ClientSession, name: str, **arguments: Any) -> Any:
    """What a tool answers."""
    answer = await session.call_tool(name, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content
