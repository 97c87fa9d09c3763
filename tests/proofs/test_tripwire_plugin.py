"""Without a grant nothing is opened: not one sealed value, on no page, in no JSON, SQL or cell.

The ciphers themselves are listened to: whatever is decrypted while a request is answered was asked
of one of them, with the place that the value stands in. An actor who may search and not read makes
nothing of a memory be opened, also where rows of it are the answer; and a member of one collection
nothing of another.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from ciphers import Decrypted, Heard, listen
from plugin.conftest import Filled, Serve, Served

from memory_store.store import MemoryStore

HOME = "/notes/-/hybrid"
ONE = "00000000-0000-4000-8000-000000000001"
OURS = "00000000-0000-4000-8000-00000000000a"
THEIRS = "00000000-0000-4000-8000-00000000000b"
RIGHTS = ("search", "decrypt", "write")
GUARDS = "vault_manifests"  # read of all collections when the file has changed
BEARER = {"Authorization": "Bearer none"}  # 0.65 then asks for no token


def in_sql(sql: str) -> str:
    return f"/notes.json?_shape=array&sql={quote(sql)}"


SEARCHING = {
    "page": f"{HOME}?q=tomatoes&limit=1",
    "page, explained": f"{HOME}?q=tomatoes&limit=1&explain=1",
    "all vaults": "/-/hybrid?q=%22tomatoes+want%22",
    "JSON": f"{HOME}.json?q=tomatoes&limit=1&explain=1",
    "JSON, literal": f"{HOME}.json?q=tomatoes&mode=literal&limit=1",
    "JSON, like": f"{HOME}.json?like={ONE}&limit=1",
    "JSON, why": f"{HOME}.json?q=tomatoes&limit=1&why={ONE}",
    "CSV": f"{HOME}.csv?q=tomatoes&limit=1",
    "cells": "/notes/memories?_hybrid=tomatoes&_hybrid_limit=1",
    "SQL": in_sql("select hybrid_search('tomatoes', 1)"),
    "SQL, table": in_sql("select title from hybrid_search('tomatoes', 1)"),
    "SQL, explained": in_sql("select hybrid_explain('tomatoes', 1)"),
}
READING = {
    "page": f"{HOME}/memories/{ONE}",
    "page to edit": f"{HOME}/memories/{ONE}/edit",
    "SQL": in_sql(f"select memory_text('{ONE}')"),
    "SQL, rows": in_sql("select id, memory_text(id) from memories"),
    "cells of a table": "/notes/memories",
    "cells of a row": f"/notes/memories/{ONE}",
}
BY_ROWS = {  # for who may search or read, so that the other one's part of a row is empty
    "JSON": f"{HOME}/memories/{ONE}.json",
    "JSON, list": f"{HOME}/memories.json?_size=1&type=decision",
}
WRITING: dict[str, tuple[str, str, Any]] = {
    "new": ("POST", f"{HOME}/memories.json", {"text": "words"}),
    "edit": ("PATCH", f"{HOME}/memories/{ONE}.json", {"title": "other", "version": 1}),
    "edit several": (
        "POST",
        f"{HOME}/memories/edit.json",
        {"memories": [{"id": ONE, "title": "other"}]},
    ),
    "done": ("POST", f"{HOME}/memories/{ONE}/done.json", None),
    "publish": ("POST", f"{HOME}/memories/{ONE}/publish.json", {"collection": "shelf"}),
    "delete": ("DELETE", f"{HOME}/memories/{ONE}.json", None),
    "delete several": ("POST", f"{HOME}/memories/delete.json", {"ids": [ONE]}),
    "rename": ("POST", f"{HOME}/collections.json", {"name": "mine"}),
}


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Heard:
    return listen(monkeypatch)


@pytest.fixture
async def site(wire: Heard, filled: Filled, serve: Serve) -> Served:
    """An actor for each right, who has all the others; and who has all, and one alone."""
    allow = {
        f"hybrid-{right}": {
            "id": ["all", f"only {right}", *(f"no {o}" for o in RIGHTS if o != right)]
        }
        for right in RIGHTS
    }
    settings = {"key-file": str(filled.key_file), "allow": allow}
    served = await serve(filled.path, options={"notes": settings})
    for path in (*SEARCHING.values(), *READING.values()):  # what is read once is read now
        await got(served, "all", path)
    wire.clear()
    return served


async def got(site: Served, actor: Any, path: str) -> int:
    client, cookies = site.datasette.client, site.by(actor).cookies
    answer = await client.get(path, cookies=cookies, follow_redirects=True)
    assert answer.status_code < 500
    return int(answer.status_code)


async def sent(site: Served, actor: str | None, what: str, id_: str = ONE) -> int:
    method, path, value = WRITING[what]
    given = json.loads(json.dumps(value).replace(ONE, id_))
    answer = await site.by(actor).send(method, path.replace(ONE, id_), given, headers=BEARER)
    return int(answer.status_code)


async def test_for_whom_may_do_nothing_nothing_is_opened(site: Served, wire: Heard) -> None:
    for actor in (None, "mallory"):
        for path in (
            *SEARCHING.values(),
            *READING.values(),
            *BY_ROWS.values(),
            f"{HOME}/audit",
            f"{HOME}/collections",
        ):
            await got(site, actor, path)
            assert wire.places == [], (actor, path)
        for what in WRITING:
            assert await sent(site, actor, what) in (401, 403), what
            assert wire.places == [], (actor, what)


async def test_who_may_not_search_makes_no_search_open_anything(site: Served, wire: Heard) -> None:
    for actor in ("no search", "only decrypt", "only write"):
        for name, path in SEARCHING.items():
            await got(site, actor, path)
            assert wire.places == [], (actor, name)


async def test_who_may_not_read_opens_nothing_not_even_the_rows_found(
    site: Served, wire: Heard
) -> None:
    for actor in ("no decrypt", "only search", "only write"):
        for name, path in (*READING.items(), *SEARCHING.items(), *BY_ROWS.items()):
            await got(site, actor, path)
            assert wire.memories == [], (actor, name)


async def test_who_may_not_write_makes_nothing_open_a_memory(site: Served, wire: Heard) -> None:
    for actor in ("no write", "only decrypt", "only search"):
        for what in WRITING:
            assert await sent(site, actor, what) == 403, what
            assert wire.memories == [], (actor, what)


async def test_the_wire_hears_a_caller_who_may(site: Served, wire: Heard) -> None:
    """The positive control: each of these surfaces opens something for a visitor who may read."""
    for name, path in (*SEARCHING.items(), *READING.items(), *BY_ROWS.items()):
        assert await got(site, "all", path) == 200, name
        assert wire.memories, name
        wire.clear()


# -- members of one collection and not of another ----------------------------------------


@dataclass(frozen=True)
class Parts:
    """The ids of an open collection and of two closed ones."""

    open: str
    ours: str
    theirs: str


@pytest.fixture
def parts(filled: Filled) -> Parts:
    """Two closed collections, each with two memories that every question finds."""
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        (personal,) = store.collections.list()
        ours = store.collections.create("ours", owner="olga")
        theirs = store.collections.create("theirs", owner="wanda")
        for actor, role in (("ada", "reader"), ("will", "writer"), ("sam", "searcher")):
            store.collections.change_members(ours.id, {actor: role})
        for home, role in ((ours, "reader"), (theirs, "searcher")):
            store.collections.change_members(home.id, {"both": role})
        store.collections.change_members(theirs.id, {"olga": "writer"})
        for home, id_ in ((ours.name, OURS), (theirs.name, THEIRS)):
            words, more = "The tomatoes want water every second day", {"collection": home}
            store.add(f"{words}, {home}.", type="decision", topics=("garden",), id=id_, **more)
            store.add(f"{words}. Another of {home}.", title="Tomatoes", topics=("garden",), **more)
    return Parts(personal.id, ours.id, theirs.id)


@pytest.fixture
async def started(wire: Heard, filled: Filled, parts: Parts, serve: Serve) -> Served:
    """Three collections, and an actor who may do everything wherever there are no members."""
    allow = {f"hybrid-{right}": {"id": "all"} for right in RIGHTS}
    settings = {"key-file": str(filled.key_file), "allow": allow}
    served = await serve(filled.path, options={"notes": settings})
    wire.clear()
    return served


@pytest.fixture
async def shared(started: Served, wire: Heard) -> Served:
    """The same when what is read once has been read: the index, and names of collections."""
    for actor in ("all", "olga"):
        for path in reads():
            await got(started, actor, path)
    wire.clear()
    return started


def reads(*ids: str) -> list[str]:
    """Whatever searches, lists or shows, for each of some memories (by default one of each
    collection)."""
    about_one = [*SEARCHING.values(), *READING.values(), *BY_ROWS.values()]
    paths = [path.replace(ONE, id_) for id_ in ids or (OURS, THEIRS, ONE) for path in about_one]
    return [*dict.fromkeys(paths), HOME, f"{HOME}/collections", f"{HOME}/collections.json"]


def of_others(wire: Heard, collections: set[str]) -> list[Decrypted]:
    """What was opened of other collections than these."""
    return [
        place
        for place in wire.places
        if place.collection not in collections and place.table != GUARDS
    ]


def members(parts: Parts) -> dict[str, tuple[Any, set[str], set[str]]]:
    """An actor of every kind, with the collections they may search and those they may read."""
    ours, theirs = {parts.ours}, {parts.theirs}
    token = {"r": {"notes": {parts.ours: ["hybrid-search", "hybrid-decrypt"]}}}
    return {
        "a reader": ("ada", ours, ours),
        "a writer": ("will", ours, ours),
        "a searcher": ("sam", ours, set()),
        "a reader, and elsewhere a searcher": ("both", ours | theirs, ours),
        "a token of one collection": ({"id": "olga", "_r": token}, ours, ours),
        "all rights and no member": ("all", {parts.open}, {parts.open}),
        "member of none": ("mallory", set(), set()),
    }


async def test_a_member_makes_nothing_of_another_collection_be_opened(
    shared: Served, wire: Heard, parts: Parts
) -> None:
    for who, (actor, searched, read) in members(parts).items():
        for path in reads():
            wire.clear()
            await got(shared, actor, path)
            assert of_others(wire, searched) == [], (who, path)
            assert {place.collection for place in wire.memories} <= read, (who, path)


async def test_a_member_who_comes_first_makes_no_memory_of_others_be_opened(
    started: Served, wire: Heard, parts: Parts
) -> None:
    """Then the index is read, which is one for all: of memories nothing is opened for it."""
    for path in reads():
        await got(started, "ada", path)
    assert {place.collection for place in wire.memories} == {parts.ours}


async def test_who_writes_in_one_collection_opens_nothing_of_another(
    shared: Served, wire: Heard, parts: Parts
) -> None:
    for actor in ("ada", "will", "sam", "all"):
        for what in WRITING:
            if "memories/" in WRITING[what][1]:
                assert await sent(shared, actor, what, THEIRS) in (403, 404), (actor, what)
                here = {parts.open if actor == "all" else parts.ours}
                assert of_others(wire, here) == [], (actor, what)
    assert await sent(shared, "will", "edit", OURS) == 200
    assert wire.memories
    assert of_others(wire, {parts.ours}) == []


async def test_the_wire_hears_members_where_they_may(
    shared: Served, wire: Heard, parts: Parts
) -> None:
    """The positive control: each way opens something of theirs to those who may."""
    for actor, id_, home in (("will", OURS, parts.ours), ("wanda", THEIRS, parts.theirs)):
        for path in reads(id_)[:-3]:
            wire.clear()
            assert await got(shared, actor, path) == 200, (actor, path)
            assert {place.collection for place in wire.memories} == {home}, (actor, path)
