"""The MCP server inside Datasette, asked by the official SDK's own client."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from datasette_hybrid import mcp
from datasette_hybrid.requests.admission import writing
from memory_store.store import MemoryStore

sys.path.insert(0, str(Path(__file__).parents[1] / "assistants"))  # injections
from injections import CANARY, INJECTIONS, calls_of_every_tool, hostile_drafts, outside_data

from .conftest import ALLOW, ONE, THREE, Filled, Serve, Served, plain_datasette

pytest.importorskip("mcp", reason="the extra mcp is not installed")
import httpx2  # the client that the SDK takes; no test asks Datasette's own for it
from mcp import ClientSession, MCPError
from mcp.client.streamable_http import streamable_http_client

TOKENS = {"bob": "bob's token", "alice": "alice's token", "root": "root's token"}
READING = {"memory_start", "memory_search", "memory_landscape", "memory_read", "tasks"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
SENDING = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
async def served(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    """A Datasette that knows its actors by the tokens of datasette-auth-tokens."""
    found = await with_tokens(filled, monkeypatch, allow=ALLOW)
    yield found
    found.vault.lock()


async def with_tokens(filled: Filled, monkeypatch: Any, **options: Any) -> Served:
    tokens = []
    for actor, token in TOKENS.items():
        monkeypatch.setenv(f"TOKEN_{actor}", token)
        tokens.append({"token": {"$env": f"TOKEN_{actor}"}, "actor": {"id": actor}})
    plugins = {
        "datasette-hybrid": {"databases": filled.options(**options)},
        "datasette-auth-tokens": {"tokens": tokens},
    }
    datasette = plain_datasette((filled.path,), {"plugins": plugins})
    await datasette.invoke_startup()
    return Served(datasette)


@asynccontextmanager
async def connected(served: Served, actor: str, path: str = "/-/hybrid/mcp") -> Any:
    """A client's session with the server, by an actor's token."""
    bearer = {"Authorization": f"Bearer {TOKENS[actor]}"}
    transport = httpx2.ASGITransport(served.datasette.app())
    async with (
        httpx2.AsyncClient(transport=transport, headers=bearer) as client,
        streamable_http_client(f"http://localhost{path}", http_client=client) as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


async def post(served: Served, actor: str | None, message: Any = PING, **headers: str) -> Any:
    bearer = {"Authorization": f"Bearer {TOKENS[actor]}"} if actor else {}
    path = headers.pop("path", "/-/hybrid/mcp")
    return await served.by(None).send("POST", path, message, {**SENDING, **bearer, **headers})


async def test_a_reader_searches_and_reads(served: Served) -> None:
    async with connected(served, "bob", "/notes/-/hybrid/mcp") as session:
        assert {one.name for one in (await session.list_tools()).tools} == READING
        asked = {"query": "tomatoes water", "format": "json"}
        found = await session.call_tool("memory_search", asked)
        first = found.structured_content["results"][0]
        assert first["title"] == "Watering the tomatoes"
        read = await session.call_tool("memory_read", {"ids": [first["id"]]})
        assert "every second day" in read.structured_content["memories"][0]["text"]
        resource = await session.read_resource(f"memory://notes/{first['id']}")
        assert resource.contents[0].text.startswith("# Watering the tomatoes")
        await session.subscribe_resource(f"memory://notes/{first['id']}")
        refused = await session.call_tool("memory_add", {"memories": [{"text": "x"}]})
        assert refused.is_error
        assert "hybrid-write" in refused.content[0].text
    assert len(served.store.list()) == 3


async def test_a_writer_adds_and_changes_and_bears_its_name(served: Served) -> None:
    async with connected(served, "root") as session:
        new = await session.call_tool("memory_add", {"memories": [{"text": "Bins on Tuesday"}]})
        id_ = new.structured_content["memories"][0]["id"]
        edit = {"id": id_, "text": "Bins on Monday"}
        assert not (await session.call_tool("memory_update", edit)).is_error
    memory = served.store.get(id_)
    assert (memory.text, memory.metadata) == ("Bins on Monday", {"by": "root"})
    trail = (*served.vault.audit.waiting(), *served.store.trail.events())
    assert ("root", "mcp", "add") in {(one.actor, one.surface, one.action) for one in trail}


@pytest.mark.parametrize(("access", "more"), [("read", set()), ("append", {"memory_add"})])
async def test_the_address_allows_less(served: Served, access: str, more: set[str]) -> None:
    async with connected(served, "root", f"/-/hybrid/mcp?access={access}") as session:
        assert {one.name for one in (await session.list_tools()).tools} == READING | more
    async with connected(served, "bob", "/-/hybrid/mcp?access=write") as session:
        assert {one.name for one in (await session.list_tools()).tools} == READING


async def test_the_address_names_the_collections(served: Served) -> None:
    served.store.collections.create("work")
    served.store.add("A tomato at work", collection="work")
    async with connected(served, "root", "/-/hybrid/mcp?collection=work") as session:
        found = await session.call_tool("memory_search", {"query": "tomato", "format": "json"})
        assert [one["collection"] for one in found.structured_content["results"]] == ["work"]
        assert (await session.call_tool("memory_read", {"ids": [ONE]})).is_error
        new = {"memories": [{"text": "x", "collection": "new"}]}
        assert (await session.call_tool("memory_add", new)).is_error
        new = {"memories": [{"text": "Into the only one"}]}
        assert not (await session.call_tool("memory_add", new)).is_error
    (added,) = (one for one in served.store.list() if one.text == "Into the only one")
    assert added.collection == "work"


@pytest.mark.parametrize("misspelled", ["collections=work", "Collection=work", "acess=read"])
async def test_a_misspelled_limit_is_refused_not_left_out(served: Served, misspelled: str) -> None:
    root = served.by("root")
    for path in ("/-/hybrid/mcp", f"{served.base}/mcp"):
        refused = await root.send("POST", f"{path}?{misspelled}", PING)
        assert refused.status_code == 400
        assert "there is no such parameter here; known: access, collection" in refused.text


async def test_one_who_may_not_read_gets_what_the_page_gives(served: Served) -> None:
    page = await served.by("alice").send("GET", ".json?q=tomatoes+water", headers={})
    async with connected(served, "alice") as session:
        said = []
        for name, given in {
            "memory_search": {"query": "tomatoes water", "format": "json"},
            "memory_start": {"query": "tomatoes water"},
            "memory_read": {"ids": [ONE, THREE]},
            "tasks": {},
        }.items():
            answer = await session.call_tool(name, given)
            assert not answer.is_error, answer.content
            said.append(answer.structured_content)
        with pytest.raises(MCPError, match="hybrid-decrypt"):
            await session.read_resource(f"memory://notes/{ONE}")
    rows = page.json()["rows"]
    assert [one["id"] for one in said[0]["results"]] == [one["id"] for one in rows]
    assert [one["score"] for one in said[0]["results"]] == [round(one["score"], 2) for one in rows]
    for word in ("omato", "garden", "personal", "every second day", "&lt;", "<b>"):
        assert word not in json.dumps(said), word


@pytest.mark.parametrize("text", INJECTIONS[:3])
async def test_what_a_memory_says_is_data_over_http_too(
    served: Served, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    one = served.store.add_many(hostile_drafts(text))[0]
    async with connected(served, "root") as session:
        assert CANARY not in (await session.list_tools()).model_dump_json()
        for name, given, refused in calls_of_every_tool(one.id, one.version):
            answer = await session.call_tool(name, given)
            assert answer.is_error is refused, (name, given, answer.content)
            if refused:
                assert CANARY.casefold() not in answer.content[0].text.casefold()
            else:
                assert outside_data(CANARY, answer.structured_content) == [], name
    logged = [one.getMessage() for one in caplog.records if one.name.startswith("datasette")]
    assert CANARY.casefold() not in "".join(logged).casefold()


async def test_one_who_may_not_read_is_given_nothing_by_any_tool(served: Served) -> None:
    one = served.store.add_many(hostile_drafts("Secret"))[0]
    async with connected(served, "alice") as session:
        for name, given, _ in calls_of_every_tool(one.id, one.version):
            answer = await session.call_tool(name, given)
            assert CANARY.casefold() not in answer.model_dump_json().casefold(), name
            writes = name in ("memory_add", "memory_update")
            assert answer.is_error or not (writes or name.startswith("code_")), name
        for uri in (f"memory://notes/{one.id}", "memory://notes/landscape"):
            try:
                said = (await session.read_resource(uri)).model_dump_json()
            except MCPError as error:
                said = str(error)
            assert CANARY.casefold() not in said.casefold(), uri


async def test_without_the_permission_to_search_there_is_no_server(served: Served) -> None:
    stranger = await post(served, None)
    assert stranger.status_code == 403
    assert "hybrid-search" in stranger.json()["error"]["message"]


async def test_a_locked_vault_says_what_to_do(served: Served) -> None:
    served.vault.lock()
    answer = await post(served, "bob")
    assert answer.status_code == 423
    assert "in a browser" in answer.json()["error"]["message"]


async def test_without_the_extra_it_is_named(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mcp", None)
    answer = await post(served, "bob")
    assert answer.status_code == 501
    assert "datasette-hybrid[mcp]" in answer.json()["error"]["message"]


async def test_what_a_browser_sends_for_another_site_is_refused(served: Served) -> None:
    for headers in (
        {"Origin": "http://elsewhere.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://elsewhere.example", "Host": "elsewhere.example"},  # led to this machine
    ):
        assert (await post(served, "bob", **headers)).status_code == 403, headers
    assert (await post(served, "bob")).json()["result"] == {}
    assert (await post(served, "bob", Origin="http://localhost")).status_code == 200


async def test_only_messages_of_a_sensible_length_are_taken(served: Served) -> None:
    long = {**PING, "params": {"_meta": {"x": "y" * 1_100_000}}}
    assert (await post(served, "bob", long)).status_code == 413
    for method in ("GET", "DELETE"):
        answer = await served.send(method, "/-/hybrid/mcp")
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST, GET")


async def test_of_several_vaults_one_is_named(
    filled: Filled, serve: Serve, tiny_model: Any
) -> None:
    other = filled.path.with_name("other.db")
    MemoryStore.create(other, passphrase="x" * 20, embedder=str(tiny_model))[0].close()
    served = await serve(filled.path, other, options=filled.options(allow=ALLOW))
    path = f"{served.base}/mcp"
    headers = {**SENDING, "Authorization": "Bearer nothing"}
    asked = Served(served.datasette, cookies=served.by("bob").cookies)
    assert (await asked.send("POST", "/-/hybrid/mcp", PING, headers)).status_code == 200
    assert (await asked.send("POST", path, PING, headers)).status_code == 200
    asked = Served(served.datasette)
    answer = await asked.send("POST", "/-/hybrid/mcp", PING, headers)
    assert answer.status_code == 400
    assert "/other/-/hybrid/mcp" in answer.json()["error"]["message"]


async def test_a_call_that_wants_to_hears_of_its_progress(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_store.assistants.server.PROGRESS_SECONDS", 0.001)
    said: list[tuple[bool, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        said.append((progress >= 1, message))

    async with connected(served, "root") as session:
        for callback in (None, hear):
            assert said == []
            new = {"memories": [{"text": f"Long {number}"} for number in range(40)]}
            answer = await session.call_tool("memory_add", new, progress_callback=callback)
            assert not answer.is_error
            assert len(answer.structured_content["memories"]) == 40
    assert {*said} == {(True, "at work")}


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("stays", [True, False])
async def test_a_client_that_closes_its_stream_cancels_the_call(
    served: Served, monkeypatch: pytest.MonkeyPatch, version: str, stays: bool
) -> None:
    """The call waits behind another write. It streams meanwhile, and that no cache keeps."""
    monkeypatch.setattr("memory_store.assistants.server.PROGRESS_SECONDS", 0.01)
    go_on, progress, sent = threading.Event(), asyncio.Event(), []
    before = asyncio.create_task(writing.run(lambda: go_on.wait(30)))
    waiting = [{"type": "http.request", "body": json.dumps(adding(version)).encode()}]

    async def receive() -> Any:
        if waiting:
            return waiting.pop()
        await (asyncio.sleep(30) if stays else progress.wait())
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        if b"notifications/progress" in message.get("body", b""):
            progress.set()
            if stays:
                go_on.set()

    async with asyncio.timeout(30):
        await served.datasette.app()(asked_for(version), receive, send)
    go_on.set()
    assert await before
    headers = dict(sent[0]["headers"])
    assert headers[b"content-type"].startswith(b"text/event-stream")
    assert headers[b"cache-control"] == b"no-store"
    await writing.run(list)  # whatever was behind it is done
    assert [one.text for one in served.store.list() if one.text == "Bins"] == ["Bins"] * stays
    assert (b'"already_known"' in b"".join(one.get("body", b"") for one in sent)) is stays


def adding(version: str) -> Any:
    """A call that adds a memory and wants to hear of its progress."""
    prefix = "io.modelcontextprotocol/"
    meta = {"progressToken": 1, f"{prefix}protocolVersion": version}
    meta |= {f"{prefix}clientInfo": {"name": "test", "version": "1"}}
    meta |= {f"{prefix}clientCapabilities": {}}
    call = {"name": "memory_add", "arguments": {"memories": [{"text": "Bins"}]}, "_meta": meta}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}


def asked_for(version: str) -> Any:
    """The scope of a request with it, by root."""
    headers = {
        **SENDING,
        "Host": "localhost",
        "Content-Type": "application/json",
        "Authorization": f"Bearer {TOKENS['root']}",
        "MCP-Protocol-Version": version,
        "MCP-Method": "tools/call",
        "MCP-Name": "memory_add",
    }
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/-/hybrid/mcp",
        "raw_path": b"/-/hybrid/mcp",
        "query_string": b"",
        "headers": [(name.lower().encode(), said.encode()) for name, said in headers.items()],
    }


async def test_an_assistant_hears_what_is_new_since_it_came(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a pause; and of before the server started, from the trail."""

    async def began(actor: str) -> dict[str, Any]:
        async with connected(served, actor) as session:
            found = await session.call_tool("memory_start", {})
            return dict(found.structured_content)

    assert "since_you_came" not in await began("root")
    assert "since_you_came" not in await began("root"), "it is the same visit"
    added = served.store.add("The weir is closed").id
    visits = mcp._visits[served.datasette]
    hours = 1
    monkeypatch.setattr(visits, "_clock", lambda: time.monotonic() + 4_000 * hours)
    assert [one["id"] for one in (await began("root"))["new"]] == [added]
    served.store.edit(THREE, text="Changed by a person")
    assert {one["id"] for one in (await began("root"))["new"]} == {added, THREE}, "the same visit"
    hours = 2
    assert not (await began("root"))["new"]
    assert "since_you_came" not in await began("bob"), "another was here, and not he"
    served.vault.audit.write(served.store)
    monkeypatch.setattr(mcp, "_visits", weakref.WeakKeyDictionary())  # a new server
    later = served.store.add("The mill is open").id
    assert later in [one["id"] for one in (await began("root"))["new"]]


async def test_one_token_that_asks_too_much_shuts_no_other_out(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_store.assistants.allowance.CALLS", 3)
    async with connected(served, "bob") as greedy:
        answers = [await greedy.call_tool("tasks", {}) for _ in range(5)]
    assert [one.is_error for one in answers] == [False] * 3 + [True] * 2
    assert "Go on in" in answers[-1].content[0].text
    async with connected(served, "bob") as greedy:
        with pytest.raises(MCPError, match="Go on in"):
            await greedy.read_resource(f"memory://notes/{ONE}")
    async with connected(served, "root") as modest:
        assert not (await modest.call_tool("tasks", {})).is_error


async def test_a_token_that_is_none_makes_no_one_another(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An actor who signed in with a cookie has one allowance, whatever the header says."""
    monkeypatch.setattr("memory_store.assistants.allowance.CALLS", 3)
    call = {"name": "tasks", "arguments": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    asked = Served(served.datasette, cookies=served.by("bob").cookies)
    refused = []
    for number in range(5):
        headers = {**SENDING, "Authorization": f"Bearer {number}"}
        answer = (await asked.send("POST", "/-/hybrid/mcp", message, headers)).json()
        refused.append(answer["result"].get("isError", False))
    assert refused == [False] * 3 + [True] * 2


async def test_two_assistants_and_a_page_write_at_once_and_nothing_is_lost(
    served: Served,
) -> None:
    """Each in its own collection, and all in one memory: a version refuses what came too late."""
    served.store.collections.create("work")
    shared = served.store.add("0", title="Counter").id

    async def assistant(collection: str) -> int:
        path, counted = f"/-/hybrid/mcp?collection={collection}&collection=personal", 0
        async with connected(served, "root", path) as session:
            for number in range(8):
                new = {"text": f"{collection} {number}", "collection": collection}
                added = await session.call_tool("memory_add", {"memories": [new]})
                assert not added.is_error, added.content
                counted += await counts_up(session)
        return counted

    async def counts_up(session: Any) -> bool:
        read = await session.call_tool("memory_read", {"ids": [shared]})
        (one,) = read.structured_content["memories"]
        change = {"id": shared, "version": one["version"], "text": str(int(one["text"]) + 1)}
        return not (await session.call_tool("memory_update", change)).is_error

    async def page() -> int:
        counted = 0
        for _ in range(8):
            path = f"{served.base}/memories/{shared}.json"
            row = (await served.by("root").get(path)).json()["rows"][0]
            change = {"text": str(int(row["text"]) + 1), "version": row["version"]}
            answer = await served.by("root").send("PATCH", path, change, {})
            counted += answer.status_code == 200
        return counted

    counted = await asyncio.gather(assistant("work"), assistant("personal"), page())
    assert int(served.store.get(shared).text) == sum(counted) > 0
    texts = {one.text: one.collection for one in served.store.list()}
    for name in ("work", "personal"):
        assert [texts[f"{name} {number}"] for number in range(8)] == [name] * 8


async def test_a_grant_that_is_withdrawn_is_gone_for_the_next_call(served: Served) -> None:
    closed = served.store.collections.create("closed", owner="wanda")
    served.store.collections.change_members(closed.id, {"alice": "reader"})
    diary = served.store.add("A diary about plums", collection="closed").id
    async with connected(served, "alice") as session:
        read = await session.call_tool("memory_read", {"ids": [diary]})
        assert read.structured_content["memories"][0]["text"] == "A diary about plums"
        served.store.collections.change_members(closed.id, remove=["alice"])
        refused = await session.call_tool("memory_read", {"ids": [diary]})
        assert refused.is_error
        found = await session.call_tool("memory_search", {"query": "plums diary"})
        assert "plums" not in json.dumps(found.structured_content)
        served.vault.lock()
        with pytest.raises(Exception, match=r"in a browser|423"):
            await session.call_tool("tasks", {})
