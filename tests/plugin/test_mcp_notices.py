"""Change notices over HTTP: a stream for each request, settled anew before each notice, bounded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from datasette_hybrid import mcp
from datasette_hybrid.requests.admission import WAITING, WORKERS, work
from memory_store.assistants import allowance, changes
from memory_store.assistants.sessions import SESSIONS, Sessions

from .conftest import ONE, THREE, Filled, Served
from .test_admission import busy
from .test_mcp import SENDING, TOKENS, with_tokens

pytest.importorskip("mcp", reason="the extra mcp is not installed")
import httpx2
import uvicorn
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

NEWER, OLDER = "2026-07-28", "2025-11-25"
LISTEN = "subscriptions/listen"
LANDSCAPE = "memory://notes/landscape"


@pytest.fixture
async def served(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    """A Datasette that looks at its vault twenty times in a second."""
    monkeypatch.setattr(changes, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(changes, "RENEW_SECONDS", 0.2)
    found = await with_tokens(filled, monkeypatch, allow={key: {"id": [*TOKENS]} for key in RIGHTS})
    yield found
    found.vault.lock()


RIGHTS = ("hybrid-search", "hybrid-decrypt", "hybrid-write")


class Stream:
    """What one request was answered, message by message, until its client closes it."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[Any] = asyncio.Queue()
        self.closed, self.ended, self.status = asyncio.Event(), asyncio.Event(), 0

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        for line in message.get("body", b"").decode().splitlines():
            if line.startswith(("data: {", "{")):
                await self.messages.put(json.loads(line.removeprefix("data: ")))

    async def heard(self) -> Any:
        return await asyncio.wait_for(self.messages.get(), 20)

    async def changed(self) -> str:
        """The address of the next resource that is said to have changed."""
        message = await self.heard()
        assert message["method"] == "notifications/resources/updated", message
        return str(message["params"]["uri"])

    async def end(self) -> Any:
        """The last message of a stream that its server ends."""
        await asyncio.wait_for(self.ended.wait(), 20)
        return [self.messages.get_nowait() for _ in range(self.messages.qsize())][-1]


def asked(actor: str, addresses: Sequence[str], version: str, method: str) -> tuple[Any, bytes]:
    """The scope and the body of a request."""
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": version, f"{prefix}clientCapabilities": {}}
    meta |= {f"{prefix}clientInfo": {"name": "test", "version": "1"}}
    wanted: dict[str, Any] = {}
    if addresses:
        wanted = {"notifications": {"resourceSubscriptions": [*addresses]}}
    if method == "initialize":
        about = {"name": "test", "version": "1"}
        wanted = {"protocolVersion": version, "capabilities": {}, "clientInfo": about}
    said = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**wanted, "_meta": meta}}
    headers = {
        **SENDING,
        "Host": "localhost",
        "Content-Type": "application/json",
        "Authorization": f"Bearer {TOKENS[actor]}",
        "MCP-Protocol-Version": version,
        "MCP-Method": method,
    }
    path = "/-/hybrid/mcp"
    scope = {"type": "http", "http_version": "1.1", "method": "POST", "scheme": "http"}
    scope |= {"path": path, "raw_path": path.encode(), "query_string": b""}
    scope |= {"headers": [(name.lower().encode(), one.encode()) for name, one in headers.items()]}
    return scope, json.dumps(said).encode()


@asynccontextmanager
async def listening(
    served: Served,
    actor: str,
    *addresses: str,
    version: str = NEWER,
    method: str = LISTEN,
) -> AsyncIterator[Stream]:
    scope, body = asked(actor, addresses, version, method)
    waiting, stream = [{"type": "http.request", "body": body}], Stream()

    async def receive() -> Any:
        if waiting:
            return waiting.pop()
        await stream.closed.wait()
        return {"type": "http.disconnect"}

    async def asking() -> None:
        try:
            await served.datasette.app()(scope, receive, stream.send)
        finally:
            stream.ended.set()

    task = asyncio.create_task(asking())
    try:
        yield stream
    finally:
        stream.closed.set()
        await asyncio.wait_for(task, 20)


async def begun(stream: Stream) -> None:
    """It is acknowledged first."""
    assert (await stream.heard())["method"] == "notifications/subscriptions/acknowledged"


@pytest.mark.parametrize(("version", "streams"), [(NEWER, True), (OLDER, False)])
async def test_it_is_offered_in_the_way_that_the_protocol_has(
    served: Served, version: str, streams: bool
) -> None:
    method = "server/discover" if streams else "initialize"
    async with listening(served, "bob", version=version, method=method) as stream:
        capabilities = (await stream.heard())["result"]["capabilities"]
    assert capabilities["resources"]["subscribe"]
    assert not [one for one in capabilities.values() if one.get("listChanged")], "no list does"
    async with listening(served, "bob", LANDSCAPE, version=version) as stream:
        answer = await stream.heard()
    assert ("Method not found" in answer.get("error", {}).get("message", "")) is not streams


class Notices:
    """What the SDK's client of an older protocol hears in a session."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            await self.heard.put(str(message.params.uri))

    async def next(self) -> str:
        return await asyncio.wait_for(self.heard.get(), 20)


@asynccontextmanager
async def older(port: int, actor: str) -> AsyncIterator[tuple[ClientSession, Notices]]:
    """A session of the SDK's client of a protocol before 2026."""
    notices, bearer = Notices(), {"Authorization": f"Bearer {TOKENS[actor]}"}
    address = f"http://127.0.0.1:{port}/-/hybrid/mcp"
    async with (
        httpx2.AsyncClient(headers=bearer) as client,
        streamable_http_client(address, http_client=client) as (read, write),
        ClientSession(read, write, message_handler=notices) as session,
    ):
        assert (await session.initialize()).protocol_version == OLDER
        yield session, notices


@pytest.fixture
async def port(served: Served) -> AsyncIterator[int]:
    """The Datasette on a real socket: a client's stream there lives beside its calls."""
    config = uvicorn.Config(served.datasette.app(), port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.02)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = server.force_exit = True
    await task


async def test_a_session_of_an_older_protocol_hears_what_it_subscribed_to(
    served: Served, port: int
) -> None:
    address = f"memory://notes/{ONE}"
    async with older(port, "bob") as (bob, his), older(port, "alice") as (_, hers):
        await bob.subscribe_resource(address)
        while mcp._streams[served.datasette]._open.total() < 2:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)  # it looked for the first time
        served.store.edit(THREE, text="A changed note")
        served.store.edit(ONE, text="The spare key hangs in the shed")
        assert await his.next() == address
        await bob.unsubscribe_resource(address)
        await bob.subscribe_resource(LANDSCAPE)
        served.store.edit(ONE, text="The spare key hangs in the hall")
        assert await his.next() == LANDSCAPE
        assert his.heard.empty()
        assert hers.heard.empty(), "she subscribed to nothing"


async def test_a_session_has_a_stream_as_long_as_others_have_theirs(
    served: Served, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allowance, "STREAMS", 0)
    async with older(port, "bob") as (bob, _):
        assert not (await bob.call_tool("memory_start", {})).is_error, "it goes on without notices"


async def test_a_session_is_its_callers_alone(served: Served) -> None:
    sessions = Sessions()
    ids = [sessions.begun("bob") for _ in range(SESSIONS + 1)]
    assert sessions.of("alice", ids[-1]) is None
    assert sessions.of("bob", ids[-1]) is not None
    assert sessions.of("bob", ids[0]) is None, "the oldest of too many is forgotten"
    headers = {"Authorization": f"Bearer {TOKENS['bob']}", "Mcp-Session-Id": "made-up"}
    stream = await served.by(None).send("GET", "/-/hybrid/mcp", headers=headers)
    assert (stream.status_code, "send initialize" in stream.text) == (404, True)


async def test_who_listens_hears_what_changed_and_of_no_memory_that_is_not_theirs(
    served: Served,
) -> None:
    served.store.collections.create("closed", owner="wanda")
    diary = served.store.add("A diary about plums", collection="closed").id
    addresses = [f"memory://notes/{one}" for one in (ONE, diary)]
    async with listening(served, "bob", *addresses, LANDSCAPE) as stream:
        await begun(stream)
        served.store.edit(diary, text="Plums are ripe")
        await asyncio.sleep(0.5)
        assert stream.messages.empty(), "not even that something changed"
        served.store.edit(THREE, text="A changed note")
        assert await stream.changed() == LANDSCAPE
        served.store.edit(ONE, text="The spare key hangs in the shed")
        assert {await stream.changed(), await stream.changed()} == {LANDSCAPE, addresses[0]}
        assert stream.messages.empty()


async def test_what_changes_while_the_server_has_too_much_to_do_is_told_later(
    served: Served,
) -> None:
    async with listening(served, "bob", LANDSCAPE) as stream:
        await begun(stream)
        async with busy(work, WORKERS + WAITING, "bob"):
            served.store.edit(THREE, text="A changed note")
            await asyncio.sleep(0.5)  # it looks, and is refused
            assert stream.messages.empty()
            assert not stream.ended.is_set()
        assert await stream.changed() == LANDSCAPE


async def test_a_role_that_is_taken_away_is_gone_for_the_next_notice(served: Served) -> None:
    closed = served.store.collections.create("closed", owner="wanda")
    served.store.collections.change_members(closed.id, {"alice": "reader"})
    diary = served.store.add("A diary about plums", collection="closed").id
    address = f"memory://notes/{diary}"
    async with listening(served, "alice", address) as stream:
        await begun(stream)
        served.store.edit(diary, text="Plums are ripe")
        assert await stream.changed() == address
        served.store.collections.change_members(closed.id, remove=["alice"])
        assert await stream.changed() == address, "it is gone from what she may read"
        served.store.edit(diary, text="Plums are eaten")
        await asyncio.sleep(0.3)
        assert stream.messages.empty()


@pytest.mark.parametrize("ends", ["locked", "revoked", "old"])
async def test_a_stream_ends(served: Served, monkeypatch: pytest.MonkeyPatch, ends: str) -> None:
    if ends == "old":
        monkeypatch.setattr(changes, "LIFE_SECONDS", 0.3)
    async with listening(served, "bob", f"memory://notes/{ONE}") as stream:
        await begun(stream)
        if ends == "locked":
            served.vault.lock()
        if ends == "revoked":
            forget_tokens(served.datasette)
        assert "result" in await stream.end()


def forget_tokens(datasette: Any) -> None:
    whole = getattr(datasette, "config", None) or datasette._metadata_local
    whole["plugins"]["datasette-auth-tokens"]["tokens"].clear()


async def test_a_client_that_stopped_reading_is_given_up(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "LIFE_SECONDS", 4)
    monkeypatch.setattr(changes, "GRACE_SECONDS", 0.2)
    stuck, sent = asyncio.Event(), Stream.send

    async def send(self: Stream, message: Any) -> None:
        if b"resources/updated" in message.get("body", b""):
            stuck.set()
            await asyncio.sleep(60)
        await sent(self, message)

    monkeypatch.setattr(Stream, "send", send)
    async with listening(served, "bob", LANDSCAPE) as stream:
        await begun(stream)
        served.store.add("A note")
        await asyncio.wait_for(stuck.wait(), 20)
        stream.closed.set()
        await asyncio.wait_for(stream.ended.wait(), 20)


async def test_one_actor_has_some_streams_and_shuts_no_other_out(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allowance, "STREAMS", 2)
    async with listening(served, "bob", LANDSCAPE) as one:
        async with listening(served, "bob", LANDSCAPE) as two:
            await begun(one)
            await begun(two)
            async with listening(served, "bob", LANDSCAPE) as three:
                assert "too many streams" in (await three.heard())["error"]["message"]
            async with listening(served, "alice", LANDSCAPE) as hers:
                await begun(hers)
        async with listening(served, "bob", LANDSCAPE) as again:
            await begun(again)


async def test_a_stream_is_of_some_addresses_and_counted_as_a_call(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [f"memory://notes/{number}" for number in range(101)]
    async with listening(served, "bob", *many) as stream:
        assert "at most 100" in (await stream.heard())["error"]["message"]
    monkeypatch.setattr(allowance, "CALLS", 2)
    for calls in range(3):
        async with listening(served, "alice", LANDSCAPE) as stream:
            first = await stream.heard()
            assert ("error" in first) is (calls == 2), first
            assert calls < 2 or "Go on in" in first["error"]["message"]
