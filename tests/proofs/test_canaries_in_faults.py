"""When something breaks inside, neither answers nor logs quote what was kept or asked.

Faults are real: SQLite is interrupted at its n-th step or refuses an operation, its file may not
grow, rows are garbage, tables are gone. Only faults that were felt count: a request ended with
another status than without a fault, a call raised. An actor who asks may search but not read; who
may read asks what fails. Everything the server prints or logs is looked through, tracebacks among
them. Last, words are let out on purpose: the same search finds them.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
import sqlite_faults
from canaries import KINDS as PLACES
from canaries import canary
from counts import counted
from datasette import Response, hookimpl
from datasette.plugins import pm
from output import Said, Words, quoted, reported
from plugin.conftest import ALLOW, Filled, Serve, Served
from sqlite_faults import Fault, Points, Switch, drawn, watching

from datasette_hybrid.vaults.registry import vaults_of
from memory_store.errors import BadInputError, StorageError
from memory_store.sqlite import connect, sqlite3
from memory_store.store import MemoryStore

DAMAGED = "damaged"
KINDS = (*sqlite_faults.KINDS, DAMAGED)
FAULTS = max(len(KINDS), counted(150))  # felt
OF_EACH_KIND = FAULTS // len(KINDS)
TRIES = 4 * FAULTS + 40  # until so many are felt: some damage is mended or never met
BASE = "/notes/-/hybrid"
BEARER = {"Authorization": "Bearer nothing"}
MEMORY = "00000000-0000-4000-8000-000000000101"
GROWING = 600  # times its words: a text for which the file has to grow
DAMAGE = (
    "update memory_bodies set body = randomblob(length(body))",
    "update memories set head = randomblob(length(head))",
    "update memories set head = cast('text' as blob)",
    "update memories set type = 'nothing', created = null",
    "update vault_segments set main = randomblob(200)",
    "update vault_manifests set sealed = randomblob(200)",
    "update collections set name = randomblob(120)",
    "update vault_settings set sealed = randomblob(200) where sealed is not null",
    "update vault_collection_keys set wrapped = randomblob(120)",
    "delete from vault_segments",
    "delete from memory_bodies",
    "drop table memory_topics",
    "drop table memory_sources",
    "drop table vault_changes",
)

Call = Callable[[MemoryStore], Any]


def fresh(path: Path, number: int, content: bytes) -> Path:
    """The vault as it was, in a folder of its own: earlier connections may still be open."""
    folder = path.parent / str(number)
    folder.mkdir()
    (folder / path.name).write_bytes(content)
    return folder / path.name


def fault_of(kind: str, points: Points, chance: random.Random) -> Fault:
    """One of that kind, at a point that the work without a fault passes."""
    return (
        Fault(f"damaged {chance.choice(DAMAGE)}")
        if kind == DAMAGED
        else drawn(kind, points, chance)
    )


@contextmanager
def struck(switch: Switch, fault: Fault) -> Iterator[None]:
    """Break the file itself before what is done, or SQLite in the middle of it."""
    if fault.way.startswith(DAMAGED):
        with contextlib.closing(sqlite3.connect(switch.path)) as thief, thief:
            fault.hit = thief.execute(fault.way.removeprefix(DAMAGED)).rowcount != 0
        yield
    else:
        with switch.armed():
            yield


@pytest.fixture
def words(filled: Filled) -> Words:
    """Words of their own in every field of the vault's memories, and one for queries."""
    words = {kind: canary(kind) for kind in (*PLACES, "query")}
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        for number in range(8):
            store.add(
                f"On plums and {words['text']} #{words['hashtag']}, part {number}",
                title=f"Plums {words['title']}",
                topics=(words["topic"],),
                metadata={"box": words["metadata"]},
                source=f"/home/{words['path']}/{number}",
                ref=f"{words['source']}/{number}",
                collection=words["collection"],
                id=f"00000000-0000-4000-8000-0000000001{number:02}",
            )
    with contextlib.closing(sqlite3.connect(filled.path)) as thief:
        thief.execute("vacuum")  # no free pages are left: whatever is added, the file has to grow
    return words


def requests(words: Words) -> list[tuple[str, str, Any]]:
    """What is asked while something is broken."""
    asked = f"plums {words['query']}"
    sql = f"select hybrid_search('{asked}') a, memory_text('{MEMORY}') b, hybrid_explain('plums') c"
    new = {"text": f"new {words['query']} " * GROWING, "title": "new"}
    return [
        *(("GET", f"{BASE}{end}?q={asked}&explain=1", None) for end in ("", ".json", ".csv")),
        ("GET", f"{BASE}.json?q=plums and {words['text']} .*part&mode=literal", None),
        *(("GET", f"{BASE}/memories/{MEMORY}{end}", None) for end in ("", ".json", "/edit")),
        *(("GET", f"{BASE}/{end}", None) for end in ("memories.json", "collections", "audit")),
        ("GET", f"/notes/memories?_hybrid={asked}", None),
        *(("GET", f"/notes/{end}", None) for end in ("memories", "memory_bodies", "collections")),
        ("GET", f"/notes/memories/{MEMORY}", None),
        ("GET", f"/notes.json?{urlencode({'sql': sql})}", None),
        ("GET", f"/-/hybrid?q={asked}", None),
        ("POST", f"{BASE}/memories.json", new),
        ("PATCH", f"{BASE}/memories/{MEMORY}.json", {"version": 1, "title": words["query"]}),
        ("DELETE", f"{BASE}/memories/{MEMORY}.json", None),
    ]


@pytest.mark.sampled(0)
async def test_no_fault_makes_a_server_show_a_word(
    filled: Filled, words: Words, serve: Serve, said: Said
) -> None:
    chance, whole, felt = random.Random(8), filled.path.read_bytes(), Counter[str]()
    numbers = itertools.count()

    async def asked_of(fault: Fault, *, resting: bool = True) -> list[int]:
        path = fresh(filled.path, next(numbers), whole)
        with watching(path, fault) as switch:
            served = await started(serve, path, filled.key_file)
            if resting:
                rest(served)
            with struck(switch, fault):
                statuses = await asked_in(served, words, fault.way)
            vaults_of(served.datasette).lock_all()
        assert quoted(said(), words) == set(), fault
        return statuses

    rehearsal = Fault()
    usual = await asked_of(rehearsal)
    assert max(usual[: len(requests(words))]) < 400, "an actor who may read is answered"
    assert await asked_of(Fault()) == usual, "what differs from these, a fault did"
    for number in range(TRIES):
        kind = KINDS[felt.total() % len(KINDS)]
        fault = fault_of(kind, rehearsal.points, chance)
        statuses = await asked_of(fault, resting=kind != DAMAGED or number % 2 == 0)
        felt[kind] += fault.hit and statuses != usual
        if felt.total() == FAULTS:
            break
    assert min(felt[kind] for kind in KINDS) >= OF_EACH_KIND, felt


async def started(serve: Serve, path: Path, key_file: Path) -> Served:
    """A server over the vault that was asked something already."""
    settings = {"key-file": str(key_file), "allow": ALLOW}
    served = await serve(path, options={"notes": settings})
    assert (await served.by("root").get(f"{BASE}.json?q=plums")).status_code == 200
    return served


def rest(served: Served) -> None:
    """The keys are read again for the next request."""
    for vault in vaults_of(served.datasette).all():
        vault.lock()
        vault.open_when_used()


async def asked_in(served: Served, words: Words, fault: str) -> list[int]:
    """Ask everything. Returns how each request ended."""
    statuses = []
    for actor, reads in (("root", True), ("alice", False)):
        for method, path, value in requests(words):
            answer = await send(served.by(actor), method, path, value)
            statuses.append(answer.status_code)
            sent = path + json.dumps(value)
            kept = {kind: word for kind, word in words.items() if word not in sent}
            if answer.status_code >= 400 or not reads:
                assert quoted(whole_answer(answer), kept) == set(), (fault, actor, method, path)
    return statuses


async def send(served: Served, method: str, path: str, value: Any) -> Any:
    """The answer; what escapes Datasette is logged and answered as its server does it."""
    asked = {"json": value, "cookies": served.cookies, "headers": BEARER, "follow_redirects": True}
    try:
        return await served.datasette.client.request(method, path, **asked)
    except Exception:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application")
        return httpx.Response(500, text="Internal Server Error")


def whole_answer(answer: Any) -> bytes:
    return bytes(answer.content) + json.dumps([*answer.headers.items()]).encode()


@pytest.mark.once
def test_no_fault_makes_an_exception_show_a_word(filled: Filled, words: Words, said: Said) -> None:
    chance, whole, felt = random.Random(9), filled.path.read_bytes(), Counter[str]()
    calls, numbers = calls_with(words, filled.key_file), itertools.count()

    def error_of(call: Call, fault: Fault) -> Exception | None:
        path = fresh(filled.path, next(numbers), whole)
        with watching(path, fault) as switch:
            try:
                with (
                    MemoryStore.open(path, key_file=filled.key_file) as store,
                    struck(switch, fault),
                ):
                    call(store)
            except Exception as error:  # noqa: BLE001 - whatever it is, it says nothing
                return error
        return None

    points = [rehearsed(call, error_of) for call in calls]
    for _ in range(TRIES):
        kind = KINDS[felt.total() % len(KINDS)]
        call, passed = chance.choice(
            [pair for pair in zip(calls, points, strict=True) if may_meet(kind, pair[1])]
        )
        fault = fault_of(kind, passed, chance)
        error = error_of(call, fault)
        assert quoted(said() + reported(error), words) == set(), fault
        felt[kind] += fault.hit and error is not None
        if felt.total() == FAULTS:
            break
    assert min(felt[kind] for kind in KINDS) >= OF_EACH_KIND, felt


def calls_with(words: Words, key_file: Path) -> tuple[Call, ...]:
    query = f"plums {words['query']}"
    return (
        lambda store: store.search(query),
        lambda store: store.search(query, mode="literal"),
        lambda store: store.search(query, mode="vector"),
        lambda store: store.get(MEMORY),
        lambda store: store.list(),
        lambda store: store.add(f"new {words['query']} " * GROWING),
        lambda store: store.edit(MEMORY, title=words["query"]),
        lambda store: store.delete(MEMORY),
        lambda store: store.verify(),
        lambda store: store.collections.list(),
        lambda store: store.reindex(),
        lambda store: MemoryStore.open(store.path, key_file=key_file).close(),
    )


def rehearsed(call: Call, error_of: Callable[[Call, Fault], Exception | None]) -> Points:
    """The points that the call passes where nothing breaks."""
    fault = Fault()
    error = error_of(call, fault)
    assert error is None, error
    return fault.points


def may_meet(kind: str, points: Points) -> bool:
    """Whether a fault of that kind can happen there: reading makes no file grow."""
    return kind == DAMAGED or any(points[way] for way in points if way.startswith(kind))


async def test_sql_that_fails_is_logged_without_its_words(
    filled: Filled, words: Words, serve: Serve, said: Said
) -> None:
    served = await started(serve, filled.path, filled.key_file)
    sql = f"select hybrid_search('{words['query']}'), :given from nothing"
    address = f"/notes.json?{urlencode({'sql': sql, 'given': words['text']})}"
    assert (await send(served.by("root"), "GET", address, None)).status_code == 400
    logged = said()
    assert quoted(logged, words) == set()
    assert b"SQL failed: OperationalError" in logged


async def test_a_server_that_says_a_word_is_found_out(
    filled: Filled, words: Words, serve: Serve, said: Said
) -> None:
    """Where the proof looks, it sees: the answer and what is printed and logged."""
    with talking(words):
        served = await started(serve, filled.path, filled.key_file)
        assert quoted(said(), words) == set()
        found = {}
        for page in ("says", "knows", "logs", "leaves"):
            answer = await served.datasette.client.get(f"/-/{page}")
            found[page] = quoted(whole_answer(answer), words), quoted(said(), words)
    assert found == {
        "says": ({"text"}, {"text"}),
        "knows": (set(), set()),  # with this plugin, tracebacks are without variables
        "logs": (set(), {"query"}),
        "leaves": (set(), {"topic"}),
    }


@contextmanager
def talking(words: Words) -> Iterator[None]:
    """A plugin that prints words where none may be."""

    async def says() -> Response:
        raise ValueError(f"no such plum: {words['text']}")

    async def knows() -> Response:
        title = words["title"]
        raise ValueError(f"{len(title)} letters")

    async def logs() -> Response:
        logging.getLogger("datasette_hybrid").info("asked for %s", words["query"])
        return Response.text("done")

    async def leaves() -> Response:
        thread = threading.Thread(target={}.__getitem__, args=(words["topic"],))
        thread.start()
        thread.join()
        return Response.text("done")

    class Talking:
        __name__ = "talking"

        @hookimpl
        def register_routes(self) -> list[tuple[str, Any]]:
            return [(f"^/-/{view.__name__}$", view) for view in (says, knows, logs, leaves)]

    pm.register(Talking(), "talking")
    try:
        yield
    finally:
        pm.unregister(name="talking")


def test_an_exception_that_says_a_word_is_found_out(words: Words, said: Said) -> None:
    connection = connect(":memory:")
    with pytest.raises(sqlite3.OperationalError) as quoting:
        connection.execute(f"select {words['text']}")
    with pytest.raises(StorageError) as caused:
        raise StorageError("it cannot be read") from quoting.value
    assert quoted(reported(caused.value), words) == {"text"}
    assert quoted(reported(BadInputError("it is too long", words["topic"])), words) == {"topic"}
    logging.getLogger("memory_store").debug("kept %s", words["title"])
    sys.stderr.write(words["query"])
    assert quoted(said(), words) == {"title", "query"}
    assert quoted(said(), words) == set()


def test_a_traceback_with_variables_is_found_out(words: Words, said: Said) -> None:
    """As Datasette prints it without this plugin: in boxes, broken into narrow lines."""
    rich = pytest.importorskip("rich.console", reason="rich is not installed")
    try:
        sentence = f"a long way before it, {words['title']}"
        raise ValueError(f"{len(sentence)} letters")
    except ValueError:
        rich.Console(width=40).print_exception(show_locals=True)
    assert "title" in quoted(said(), words)
