"""Without a grant nothing is opened: not one sealed value, on no page, in no JSON, SQL or cell.

The ciphers themselves are listened to: whatever is decrypted while a request is answered was asked
of one of them, with the place that the value stands in. Somebody who may search and not read makes
nothing of a memory be opened, also where rows of it are the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest
from plugin.conftest import Filled, Serve, Served

from memory_store.crypto import sealing

HOME = "/notes/-/hybrid"
ONE = "00000000-0000-4000-8000-000000000001"
RIGHTS = ("search", "decrypt", "write")
BEARER = {"Authorization": "Bearer none"}  # 0.65 then asks for no token
MEMORIES = (b"memories", b"memory_bodies")  # tables, as places name them
TRAIL = b"vault_audit"  # which the server goes on with by itself, whoever asks


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


@dataclass
class Wire:
    """Where what was decrypted stands, as the ciphers were told."""

    heard: list[bytes] = field(default_factory=list)

    @property
    def places(self) -> list[bytes]:
        """All but the trail of the audit."""
        return [place for place in self.heard if TRAIL not in place]

    @property
    def memories(self) -> list[bytes]:
        """Those of heads and bodies of memories."""
        parts = [len(one).to_bytes(4, "big") + one for one in MEMORIES]
        return [place for place in self.places if any(part in place for part in parts)]

    def clear(self) -> None:
        self.heard.clear()


def listening(made: Callable[[bytearray], Any], wire: Wire) -> Callable[[bytearray], Any]:
    """A suite whose ciphers tell what they decrypt."""

    class Listening:
        def __init__(self, key: bytearray) -> None:
            self._cipher = made(key)
            self.encrypt = self._cipher.encrypt

        def decrypt_into(self, nonce: bytes, data: Any, place: bytes, into: bytearray) -> int:
            wire.heard.append(bytes(place))
            return int(self._cipher.decrypt_into(nonce, data, place, into))

    return Listening


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    heard = Wire()
    for number, made in list(sealing.SUITES.items()):
        monkeypatch.setitem(sealing.SUITES, number, listening(made, heard))
    return heard


@pytest.fixture
async def site(wire: Wire, filled: Filled, serve: Serve) -> Served:
    """Somebody for each right, who has all the others; and who has all, and one alone."""
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


async def got(site: Served, actor: str | None, path: str) -> int:
    client, cookies = site.datasette.client, site.by(actor).cookies
    answer = await client.get(path, cookies=cookies, follow_redirects=True)
    assert answer.status_code < 500
    return int(answer.status_code)


async def sent(site: Served, actor: str | None, what: str) -> int:
    method, path, value = WRITING[what]
    answer = await site.by(actor).send(method, path, value, headers=BEARER)
    return int(answer.status_code)


async def test_for_whom_may_do_nothing_nothing_is_opened(site: Served, wire: Wire) -> None:
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


async def test_who_may_not_search_makes_no_search_open_anything(site: Served, wire: Wire) -> None:
    for actor in ("no search", "only decrypt", "only write"):
        for name, path in SEARCHING.items():
            await got(site, actor, path)
            assert wire.places == [], (actor, name)


async def test_who_may_not_read_opens_nothing_not_even_the_rows_found(
    site: Served, wire: Wire
) -> None:
    for actor in ("no decrypt", "only search", "only write"):
        for name, path in (*READING.items(), *SEARCHING.items(), *BY_ROWS.items()):
            await got(site, actor, path)
            assert wire.memories == [], (actor, name)


async def test_who_may_not_write_makes_nothing_open_a_memory(site: Served, wire: Wire) -> None:
    for actor in ("no write", "only decrypt", "only search"):
        for what in WRITING:
            assert await sent(site, actor, what) == 403, what
            assert wire.memories == [], (actor, what)


async def test_the_wire_hears_whoever_may(site: Served, wire: Wire) -> None:
    """The positive control: each of these surfaces opens something for somebody."""
    for name, path in (*SEARCHING.items(), *READING.items(), *BY_ROWS.items()):
        assert await got(site, "all", path) == 200, name
        assert wire.memories, name
        wire.clear()
