"""A vault beside a public table in one file, another database beside it, and all doors to both.

A door is an address at which Datasette, or a plugin beside ours, answers out of the file. What may
come through none of them is everything that stands in the vault's tables: every sealed value and
keyed hash in the encodings that answers use, every id and time, and every count.
"""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from datasette.app import Datasette
from plugin.browsing import running
from plugin.conftest import private_environment

from memory_store.store import MemoryStore

IS_NEXT = hasattr(Datasette, "get_internal_database")
"""Whether this is Datasette 1.0; else it is 0.65."""
LEAK = "LEAKED"
TOLD = "'LEA'||'KED'"
"""SQL for it which does not hold it itself: pages show the SQL that they were asked."""
MEMORIES = 23
PUBLIC = "kingfisher"
PLUGIN = """
from datasette import Response, hookimpl


@hookimpl
def actor_from_request(request):
    name = request.headers.get("authorization", "").removeprefix("Bearer ")
    return {"id": name} if name else None


@hookimpl
def prepare_connection(conn):
    # for this plugin's own sake; a plugin that sets one last was alone with it before
    conn.set_authorizer(lambda action, first, *rest: 1 if first == "shy" else 0)


async def executed(datasette, request):
    try:
        found = await datasette.get_database(request.args["db"]).execute(request.args["sql"])
    except Exception as error:
        return Response.json({"failed": str(error)}, status=400)
    return Response.json([[repr(value) for value in row] for row in found.rows])


async def run(datasette, request, how):
    def read(connection):
        cursor = connection.cursor()
        cursor.row_factory = None
        return [repr(row) for row in cursor.execute(request.args["sql"])]

    try:
        found = await getattr(datasette.get_database(request.args["db"]), how)(read)
    except Exception as error:
        return Response.json({"failed": str(error)}, status=400)
    return Response.json(found)


async def by_function(datasette, request):
    return await run(datasette, request, "execute_fn")


async def by_writing(datasette, request):
    return await run(datasette, request, "execute_write_fn")


async def by_isolated(datasette, request):
    return await run(datasette, request, "execute_isolated_fn")


async def counted(datasette, request):
    return Response.json(await datasette.get_database(request.args["db"]).table_counts(1000))


@hookimpl
def register_routes():
    return [
        ("/-/executed$", executed),
        ("/-/by-function$", by_function),
        ("/-/by-writing$", by_writing),
        ("/-/by-isolated$", by_isolated),
        ("/-/counted$", counted),
    ]
"""
"""A person's plugin: names as tokens, SQL for every visitor, and an authorizer of its own."""

SEARCHERS = {"id": ["root", "sam", "rita"]}
READERS = {"id": ["root", "rita"]}
ADMINISTRATORS = {"id": "root"}
STRANGERS: Mapping[str, str | None] = {"anonymous": None, "without a grant": "eve", "writer": "wim"}
"""Who is granted nothing on the vault. The writer may change public tables of its file (1.0)."""

STOLEN = {
    "stolen": {"sql": "select hex(wrapped) as w from vault_slots"},
    "counted": {"sql": f"select {TOLD} || count(*) from memories"},
    "sightings": {"sql": "select name from birds"},
}
"""Queries that a person stored without thinking of the vault, and one beside them."""


@dataclass(frozen=True)
class Answer:
    """What a door answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    path: str

    @property
    def text(self) -> str:
        """The body, if it is text."""
        return self.body.decode("utf-8", "replace")


@dataclass(frozen=True)
class House:
    """A running server, and what may not be read from outside."""

    address: str
    secrets: Mapping[str, bytes]
    shown: str
    """The one id of a memory that stands in the public table, too."""
    rows: Mapping[str, str]
    """The id of a row by its table: a person may have seen it elsewhere."""

    def ask(self, path: str, who: str | None = None, data: Any = None) -> Answer:
        """GET (or POST ``data`` as JSON) by an actor; ``{table}`` is the id of a row there."""
        for name, row in self.rows.items():
            path = path.replace(f"{{{name}}}", row)
        headers = {"Authorization": f"Bearer {who}"} if who else {}
        body = None
        if data is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(data).encode()
        request = urllib.request.Request(self.address + path, body, headers)
        try:
            with urllib.request.urlopen(request) as response:
                return Answer(response.status, dict(response.headers), response.read(), path)
        except urllib.error.HTTPError as error:
            return Answer(error.code, dict(error.headers), error.read(), path)

    def leaks(self, answer: Answer) -> list[str]:
        """What of the vault an answer holds that was not in the question, by name."""
        asked = answer.path.encode()
        reported = {name: one for name, one in self.secrets.items() if one not in asked}
        found = [name for name, value in reported.items() if value in answer.body]
        return found + ([LEAK] if LEAK.encode() in answer.body else [])


def made(folder: Path, model: Path) -> tuple[Path, Path, str]:
    """The two files, and the id of the memory that a public table names. The key lies beside."""
    (folder / "served").mkdir(parents=True)
    path, other = folder / "served" / "notes.db", folder / "served" / "other.db"
    store, _ = MemoryStore.create(
        path, key_file=folder / "keys" / "notes.key", passphrase="four words", embedder=str(model)
    )
    ids = [
        store.add(f"Note {place} of the heron", title=f"T {place}", topics=("garden", f"t{place}"))
        for place in range(MEMORIES)
    ]
    store.search("heron")
    store.close()
    shown = sorted(str(getattr(one, "id", one)) for one in ids)[0]
    with connected(path) as connection:
        connection.executescript(
            f"""
            create table birds (
                id integer primary key, name text, memory text references memories (id)
            );
            insert into birds values (1, '{PUBLIC}', '{shown}'), (2, 'heron', null);
            create table heard (id integer primary key, bird integer references birds (id));
            insert into heard values (1, 1);
            create view seen as select name from birds;
            create view stolen_view as select id, collection, created, hex(head) from memories;
            create virtual table birds_fts using fts5 (name, content = birds);
            insert into birds_fts (birds_fts) values ('rebuild');
            analyze;
            """
        )
    with connected(other) as connection:
        connection.executescript(
            f"""
            create table memories (id integer primary key, name text);
            insert into memories values (1, 'public {PUBLIC}');
            create table collections (id integer primary key, name text);
            insert into collections values (1, 'collected {PUBLIC}');
            create table shy (id integer primary key, name text);
            insert into shy values (1, 'a shy one');
            """
        )
    return path, other, shown


@contextmanager
def connected(path: Path) -> Iterator[sqlite3.Connection]:
    """A plain connection, as a program that has the file makes one."""
    connection = sqlite3.connect(path)
    try:
        with connection:
            yield connection
    finally:
        connection.close()


def secrets_of(path: Path, shown: str) -> dict[str, bytes]:
    """Everything in the vault's tables, in every encoding of answers, by where it stands."""
    found: dict[str, bytes] = {}
    with connected(path) as connection:
        names = [
            name
            for (name,) in connection.execute("select name from sqlite_master where type = 'table'")
            if name.startswith(("vault_", "memor")) or name == "collections"
        ]
        for table in names:
            cursor = connection.execute(f"select * from {table}")
            columns = [one[0] for one in cursor.description]
            for row in cursor.fetchall():
                for column, value in zip(columns, row, strict=True):
                    found |= _encoded(f"{table}.{column}", value, shown)
    assert len(found) > 20 * MEMORIES
    return found


def rows_of(path: Path) -> dict[str, str]:
    """The id of a row of each table whose rows have addresses that hold one."""
    tables = ("memories", "memory_bodies", "collections", "vault_slots")
    with connected(path) as connection:
        return {
            table: str(connection.execute(f"select max(id) from {table}").fetchone()[0])
            for table in tables
        }


def _encoded(place: str, value: Any, shown: str) -> dict[str, bytes]:
    if isinstance(value, str) and len(value) >= 16 and value != shown:
        return {f"{place} {value[:40]}": value.encode()}
    if not isinstance(value, bytes) or len(value) < 8:
        return {}
    begin = value[:12] if value[:12].strip(b"\0\1") else value[4:16]
    whole = value[:48]
    cut = len(whole) // 3 * 3
    name = f"{place} {begin.hex()}"
    return {
        f"{name} raw": begin,
        f"{name} raw, its end": value[-12:],
        f"{name} hex": value[-12:].hex().encode(),
        f"{name} HEX": value[-12:].hex().upper().encode(),
        f"{name} base64": base64.b64encode(whole[:cut])[8:],
        f"{name} repr": repr(value[-12:])[2:-1].encode(),
    }


@contextmanager
def house(folder: Path, model: Path, *, immutable: bool, locked: bool = False) -> Iterator[House]:
    """``datasette serve`` over both files, as people start it, with the plugin beside ours."""
    path, other, shown = made(folder, model)
    (folder / "plugins").mkdir()
    (folder / "plugins" / "others.py").write_text(PLUGIN)
    settings: dict[str, Any] = {
        "allow": {
            "hybrid-search": SEARCHERS,
            "hybrid-decrypt": READERS,
            "hybrid-write": ADMINISTRATORS,
            "hybrid-audit": ADMINISTRATORS,
        },
    }
    if not locked:
        settings["key-file"] = str(folder / "keys" / "notes.key")
    writing = ("execute-write-sql", "insert-row", "update-row", "alter-table", "create-table")
    queries = {**STOLEN}
    if not IS_NEXT and not immutable:
        queries |= {
            "copied": {
                "sql": "insert into birds (name) select hex(wrapped) from vault_slots",
                "write": True,
            },
        }
    notes: dict[str, Any] = {"queries": queries}
    if IS_NEXT:
        notes["permissions"] = {name: {"id": "wim"} for name in (*writing, "store-query")}
    configuration = {
        "plugins": {"datasette-hybrid": {"databases": {"notes": settings}}},
        "databases": {"notes": notes},
    }
    (folder / "configuration.json").write_text(json.dumps(configuration))
    files = [*(["-i", path, "-i", other] if immutable else [path, other])]
    with running(
        *files,
        *("--crossdb", "--memory", "--plugins-dir", folder / "plugins"),
        *("-c" if IS_NEXT else "-m", folder / "configuration.json"),
        environment={**os.environ, **private_environment(folder, model)},
    ) as server:
        yield House(server.address, secrets_of(path, shown), shown, rows_of(path))


def sql(statement: str, database: str = "notes", extension: str = ".json", **more: str) -> str:
    """The address of an answer to SQL."""
    path = f"/{database}/-/query{extension}" if IS_NEXT else f"/{database}{extension}"
    return f"{path}?{urlencode({'sql': statement, **more})}"


def table(name: str, extension: str = "", query: str = "", database: str = "notes") -> str:
    """The address of a table."""
    return f"/{database}/{quote(name)}{extension}" + (f"?{query}" if query else "")
