"""When something breaks inside, neither answers nor logs quote what was kept or asked.

Faults are real: SQLite is interrupted at its n-th step or refuses an operation, a disk is full,
rows are garbage, tables are gone. Whoever asks may search but not read; whoever may read
asks what fails. Everything the server prints is looked through, tracebacks with their variables
among them, which Datasette prints where ``rich`` is installed.
"""

from __future__ import annotations

import contextlib
import json
import random
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from canaries import KINDS, canary, spelled_in
from counts import counted
from plugin.conftest import ALLOW, Filled, Serve

from datasette_hybrid.vaults.registry import vaults_of
from memory_store import sqlite as connections
from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore

FAULTS = counted(150)
MOST_STEPS = 4_000
BASE = "/notes/-/hybrid"
BEARER = {"Authorization": "Bearer nothing"}
DAMAGE = (
    "update memory_bodies set body = randomblob(length(body))",
    "update memories set head = randomblob(length(head))",
    "update memories set head = 'text'",
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

Words = dict[str, str]


@contextmanager
def breaking(chance: random.Random) -> Iterator[str]:
    """Connections that are made from now on break by one real fault, drawn by lot."""
    connect, steps = sqlite3.connect, chance.randrange(1, MOST_STEPS)
    kind = chance.choice(("interrupted", "refused", "full"))
    action = chance.choice((sqlite3.SQLITE_READ, sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE))
    left = [steps]

    def interrupt() -> int:
        left[0] -= 1
        return left[0] <= 0

    def refuse(asked: int, *_: Any) -> int:
        left[0] -= asked == action
        return sqlite3.SQLITE_DENY if left[0] <= 0 and asked == action else sqlite3.SQLITE_OK

    def broken(*arguments: Any, **options: Any) -> Any:
        connection = connect(*arguments, **options)
        if kind == "interrupted":
            connection.set_progress_handler(interrupt, 10)
        elif kind == "refused":
            connection.set_authorizer(refuse)
        else:
            (pages,) = connection.execute("pragma page_count").fetchone()
            connection.execute(f"pragma max_page_count = {pages}")
        return connection

    with pytest.MonkeyPatch.context() as environment:
        environment.setattr(connections.sqlite3, "connect", broken)
        yield f"{kind} after {steps}"


def fresh(path: Path, number: int, content: bytes) -> Path:
    """The vault as it was, in a folder of its own: earlier connections may still be open."""
    folder = path.parent / str(number)
    folder.mkdir()
    (folder / path.name).write_bytes(content)
    return folder / path.name


def damage(path: Path, chance: random.Random) -> str:
    """Break the file itself."""
    statement = chance.choice(DAMAGE)
    with (
        contextlib.closing(sqlite3.connect(path)) as thief,
        contextlib.suppress(sqlite3.Error),  # an earlier one took the table away
        thief,
    ):
        thief.execute(statement)
    return statement


@pytest.fixture
def words(filled: Filled) -> Words:
    """Words of their own in every field of the vault's memories, and one for queries."""
    words = {kind: canary(kind) for kind in (*KINDS, "query")}
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
    return words


def requests(words: Words) -> list[tuple[str, str, Any]]:
    """What is asked while something is broken."""
    asked, memory = f"plums {words['query']}", "00000000-0000-4000-8000-000000000101"
    sql = f"select hybrid_search('{asked}') a, memory_text('{memory}') b, hybrid_explain('plums') c"
    new = {"text": f"new {words['query']}", "title": "new"}
    return [
        *(("GET", f"{BASE}{end}?q={asked}&explain=1", None) for end in ("", ".json", ".csv")),
        ("GET", f"{BASE}.json?q={words['query']}.*&mode=literal", None),
        *(("GET", f"{BASE}/memories/{memory}{end}", None) for end in ("", ".json", "/edit")),
        *(("GET", f"{BASE}/{end}", None) for end in ("memories.json", "collections", "audit")),
        ("GET", f"/notes/memories?_hybrid={asked}", None),
        *(("GET", f"/notes/{end}", None) for end in ("memories", "memory_bodies", "collections")),
        ("GET", f"/notes/memories/{memory}", None),
        ("GET", f"/notes.json?{urlencode({'sql': sql})}", None),
        ("GET", f"/-/hybrid?q={asked}", None),
        ("POST", f"{BASE}/memories.json", new),
        ("PATCH", f"{BASE}/memories/{memory}.json", {"version": 1, "title": words["query"]}),
        ("DELETE", f"{BASE}/memories/{memory}.json", None),
    ]


async def test_no_fault_makes_a_server_tell_a_word(
    filled: Filled, words: Words, serve: Serve, capfd: Any
) -> None:
    chance, whole, refused = random.Random(8), filled.path.read_bytes(), 0
    settings = {"key-file": str(filled.key_file), "allow": ALLOW}
    for number in range(FAULTS):
        path = fresh(filled.path, number, whole)
        served = await serve(path, options={"notes": settings})
        await served.by("root").get(f"{BASE}.json?q=plums")
        if number % 3 == 0:
            fault = damage(path, chance)
            refused += await asked_in(served, words, fault)
        else:
            for vault in vaults_of(served.datasette).all():
                vault.lock()
                vault.open_when_used()
            with breaking(chance) as fault:
                refused += await asked_in(served, words, fault)
        vaults_of(served.datasette).lock_all()
        written = capfd.readouterr()
        assert spelled_in((written.out + written.err).encode(), words) == set(), fault
    assert refused > FAULTS, "faults were met"


async def asked_in(served: Any, words: Words, fault: str) -> int:
    """Ask everything. Returns how many requests failed."""
    refused = 0
    for actor, reads in (("root", True), ("alice", False)):
        for method, path, value in requests(words):
            answer = await served.by(actor).send(method, path, value, headers=BEARER)
            failed = answer.status_code >= 400
            refused += failed
            sent = path + json.dumps(value)
            kept = {kind: word for kind, word in words.items() if word not in sent}
            if failed or not reads:
                content = answer.content + json.dumps([*answer.headers.items()]).encode()
                assert spelled_in(content, kept) == set(), (fault, actor, method, path)
    return refused


def test_no_fault_makes_an_exception_tell_a_word(filled: Filled, words: Words) -> None:
    chance, whole, raised = random.Random(9), filled.path.read_bytes(), 0
    query, memory = f"plums {words['query']}", "00000000-0000-4000-8000-000000000101"
    calls: tuple[Callable[[MemoryStore], Any], ...] = (
        lambda store: store.search(query, mode=chance.choice(("hybrid", "literal", "vector"))),
        lambda store: store.get(memory),
        lambda store: store.list(),
        lambda store: store.add(f"new {words['query']}"),
        lambda store: store.edit(memory, title=words["query"]),
        lambda store: store.delete(memory),
        lambda store: store.verify(),
        lambda store: store.collections(),
        lambda store: store.reindex(),
    )
    for number in range(FAULTS):
        path = fresh(filled.path, number, whole)
        for call in calls:
            try:
                if number % 3 == 0:
                    with MemoryStore.open(path, key_file=filled.key_file) as store:
                        damage(path, chance)
                        call(store)
                else:
                    with (
                        breaking(chance),
                        MemoryStore.open(path, key_file=filled.key_file) as store,
                    ):
                        call(store)
            except Exception as error:  # noqa: BLE001 - whatever it is, it tells nothing
                raised += 1
                told = "".join(traceback.format_exception(error)) + repr(error)
                assert spelled_in(told.encode(), words) == set()
    assert raised > FAULTS
