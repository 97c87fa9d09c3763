"""Rights that go while a request is on its way: headers first, the body when they are gone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from datasette import hookimpl
from datasette.plugins import pm

from datasette_hybrid.requests import questions
from datasette_hybrid.vaults.registry import vaults_of
from memory_store.importing import batch
from memory_store.store import MemoryStore

from .conftest import ALLOW, PASSPHRASE, Filled, Serve, Served
from .uploads import MANY, Held, ended, post

BEARER = {"Authorization": "Bearer nothing"}
DIARY = "00000000-0000-4000-8000-00000000000d"


@dataclass
class Late:
    """A request whose headers are sent at once and whose body only when it is let go."""

    served: Served
    method: str
    path: str
    body: bytes
    headers: dict[str, str]
    status: int = 0
    answer: bytes = b""
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def __aenter__(self) -> Late:
        self.task = asyncio.ensure_future(self.answered())
        await asyncio.wait_for(self.begun.wait(), 30)
        return self

    async def answered(self) -> None:
        """The whole request."""
        cookies = "; ".join(f"{name}={value}" for name, value in self.served.cookies.items())
        given = {"host": "localhost", "cookie": cookies, **self.headers}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": self.method,
            "scheme": "http",
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": b"name=late.md" if "import" in self.path else b"",
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
        }
        await self.served.datasette.app()(scope, self._receive, self._send)

    async def __aexit__(self, *problem: object) -> None:
        self.gate.set()
        await asyncio.wait_for(self.task, 30)

    async def _receive(self) -> dict[str, Any]:
        self.begun.set()
        await self.gate.wait()
        return {"type": "http.request", "body": self.body, "more_body": False}

    async def _send(self, message: dict[str, Any]) -> None:
        self.status = message.get("status", self.status)
        self.answer += message.get("body", b"")


def late(served: Served, method: str, path: str, value: Any, **headers: str) -> Late:
    kind = {"content-type": "application/json", "authorization": BEARER["Authorization"]}
    return Late(served, method, path, json.dumps(value).encode(), {**kind, **headers})


@pytest.fixture
async def closed(filled: Filled, serve: Serve) -> tuple[Served, str]:
    """A collection of Wanda's, of which Carol is an owner, too."""
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        made = store.collections.create("closed", owner="wanda")
        store.collections.change_members(made.id, {"carol": "owner"})
        store.add("A diary about plums", collection="closed", title="Diary", id=DIARY)
    settings = {"notes": {"key-file": str(filled.key_file), "allow": ALLOW}}
    return await serve(filled.path, options=settings), made.id


async def remove_carol(served: Served, collection: str) -> None:
    path = f"/notes/-/hybrid/collections/{collection}/members/carol.json"
    gone = await served.by("wanda").send("DELETE", path, {}, headers=BEARER)
    assert gone.status_code == 200, gone.text


REQUESTS = [
    ("POST", ".json", {"q": "plums"}),
    ("POST", ".csv", {"q": "plums"}),
    ("POST", "/memories.json", {"text": "Late", "collection": "COLLECTION"}),
    ("POST", "/memories/edit.json", {"memories": [{"id": DIARY, "title": "Late"}]}),
    ("POST", "/memories/delete.json", {"ids": [DIARY]}),
    ("PATCH", f"/memories/{DIARY}.json", {"title": "Late"}),
    ("DELETE", f"/memories/{DIARY}.json", {}),
    ("POST", f"/memories/{DIARY}/done.json", {}),
    ("POST", f"/memories/{DIARY}/publish.json", {"collection": "personal"}),
    ("PATCH", "/collections/COLLECTION.json", {"name": "late"}),
    ("PUT", "/collections/COLLECTION/members/mallory.json", {"role": "owner"}),
    ("DELETE", "/collections/COLLECTION/members/wanda.json", {}),
    ("POST", "/import.json", "Late"),
]


@pytest.mark.parametrize(("method", "below", "value"), REQUESTS)
async def test_who_was_removed_meanwhile_is_refused(
    closed: tuple[Served, str], method: str, below: str, value: Any
) -> None:
    served, collection = closed
    carol, wanda = served.by("carol"), served.by("wanda")
    before = (await wanda.get(f"{served.base}/memories/{DIARY}.json")).json()
    reported = json.loads(json.dumps(value).replace("COLLECTION", collection))
    path = f"/notes/-/hybrid{below.replace('COLLECTION', collection)}"
    async with late(carol, method, path, reported) as request:
        await remove_carol(served, collection)
    assert request.status in (403, 404), request.answer
    assert b"plums" not in request.answer
    assert (await wanda.get(f"{served.base}/memories/{DIARY}.json")).json() == before
    members = (await wanda.get(f"{served.base}/collections/{collection}.json")).json()["rows"][0][
        "members"
    ]
    assert members == {"wanda": "owner"}


async def test_a_page_shows_nothing_that_may_not_be_read_any_more(
    closed: tuple[Served, str],
) -> None:
    served, collection = closed
    form = {"content-type": "application/x-www-form-urlencoded", **BEARER}
    for below in ("/notes/-/hybrid", "/-/hybrid"):
        carol = served.by("carol")
        async with Late(carol, "POST", below, b"q=plums", form) as request:
            if below.startswith("/notes"):
                await remove_carol(served, collection)
        assert b"Diary" not in request.answer


async def test_an_unlocked_session_ends_with_the_lock_a_caller_who_unlocks_next(
    filled: Filled, serve: Serve
) -> None:
    served = await serve(filled.path)
    unlocked = await served.submit("/unlock", {"secret": PASSPHRASE})
    cookies = dict(unlocked.cookies)
    page = await served.get("/unlock")
    token = page.cookies.get("ds_csrftoken", "")
    session = Served(served.datasette, "notes", {**cookies, "ds_csrftoken": token})
    shown = await session.get("/unlock")
    hidden = shown.text.partition('name="csrftoken" value="')[2].partition('"')[0]
    headers = {"content-type": "application/json", "x-csrftoken": hidden}
    body = b'{"q": "tomatoes"}'
    vault = vaults_of(served.datasette).of("notes")
    for locks, status in ((False, 200), (True, 403)):
        async with Late(session, "POST", "/notes/-/hybrid.json", body, headers) as request:
            if locks:
                vault.lock()
                vault.unlock(PASSPHRASE)
        assert request.status == status, request.answer


async def test_a_body_that_does_not_come_is_not_waited_for(
    closed: tuple[Served, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "BODY_SECONDS", 0.05)
    request = late(closed[0].by("carol"), "POST", "/notes/-/hybrid.json", {"q": "plums"})
    async with request:
        await asyncio.wait_for(request.task, 30)
    assert request.status == 408


async def test_who_may_do_nothing_is_refused_before_any_of_the_body_comes(
    closed: tuple[Served, str],
) -> None:
    for below in (".json", "/memories.json", "/import.json"):
        served, _ = closed
        request = late(served.by("mallory"), "POST", f"/notes/-/hybrid{below}", {})
        await asyncio.wait_for(request.answered(), 30)
        assert (request.status, request.begun.is_set()) == (403, False)


async def test_who_sends_an_upload_slowly_keeps_no_other_from_importing(
    closed: tuple[Served, str],
) -> None:
    served, collection = closed
    carol, wanda = served.by("carol"), served.by("wanda")
    async with late(carol, "POST", f"{served.base}/import.json", "Late") as slow:
        begun = await post(wanda, MANY, collection=collection)
        assert begun.status_code == 202, begun.text
        assert (await ended(wanda, begun.json()["job"]))["imported"] == len(MANY)
        assert (await post(carol, MANY)).status_code == 409, "one of each actor"
    assert slow.status in (202, 400), slow.answer


@pytest.mark.parametrize("at", [5, 11], ids=["between files", "before the last batch"])
async def test_an_import_ends_when_its_starter_may_not_write_there_any_more(
    closed: tuple[Served, str], monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    monkeypatch.setattr(batch, "BATCH_SECONDS", 600)
    served, collection = closed
    carol, wanda, held = served.by("carol"), served.by("wanda"), Held(monkeypatch, at=at)
    begun = await post(carol, MANY, collection=collection)
    await held.wait()
    await remove_carol(served, collection)
    held.release.set()
    result = await ended(wanda, begun.json()["job"])
    assert (result["state"], result["imported"]) == ("stopped", 0)
    assert f"stopped at file {at + 1} of 12" in result["error"]
    left = (await wanda.get(f"{served.base}/collections/{collection}.json")).json()["rows"][0]
    assert left["memories"] == 1
    page = await wanda.get(f"{served.base}/import/{result['job']}")
    assert "Import stopped" in page.text
    assert result["error"] in page.text


async def test_an_import_ends_with_the_lock_a_caller_who_unlocks_next(
    closed: tuple[Served, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "BATCH_SECONDS", 600)
    served, collection = closed
    wanda, held = served.by("wanda"), Held(monkeypatch, at=5)
    begun = await post(wanda, MANY, collection=collection)
    await held.wait()
    vault = vaults_of(served.datasette).of("notes")
    locking = asyncio.ensure_future(asyncio.to_thread(vault.lock))
    while not vault.locked:
        await asyncio.sleep(0)
    held.release.set()
    await locking
    vault.unlock(PASSPHRASE)
    result = await ended(wanda, begun.json()["job"])
    assert (result["state"], result["imported"]) == ("locked", 0)


class Tokens:
    """Another plugin, by whose tokens actors are known until they are revoked."""

    __name__ = "Tokens"

    def __init__(self) -> None:
        self.known = {"Bearer of wanda's": {"id": "wanda"}}

    @hookimpl
    def actor_from_request(self, request: Any) -> Any:
        async def looked_up() -> Any:
            return self.known.get(request.headers.get("authorization", ""))

        return looked_up


@pytest.fixture
def tokens() -> Iterator[Tokens]:
    plugin = Tokens()
    pm.register(plugin, name="tokens")
    yield plugin
    pm.unregister(plugin, name="tokens")


@pytest.mark.parametrize("revoked", [False, True], ids=["valid", "revoked"])
async def test_a_token_that_is_revoked_meanwhile_is_worth_nothing(
    closed: tuple[Served, str], tokens: Tokens, revoked: bool
) -> None:
    served, _ = closed
    bearer = next(iter(tokens.known))
    new = {"text": "A late thought", "title": "Late"}

    async def memories() -> int:
        return int((await served.by("wanda").get(".json?q=plums")).json()["total"])

    before = await memories()
    path = f"{served.base}/memories.json"
    async with late(served, "POST", path, new, authorization=bearer) as request:
        if revoked:
            tokens.known.clear()
    assert request.status == (403 if revoked else 201), request.answer
    assert (await memories()) - before == (0 if revoked else 1)
