"""A vault in a PostgreSQL database, served as one in a file is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from datasette.utils import StartupError
from postgres_server import Server
from typing_commands import run

from datasette_hybrid.vaults.registry import vaults_of
from memory_store.addresses import Address
from memory_store.store import MemoryStore
from memory_store.vault.storage.transfer import copy_vault

from .conftest import ALLOW, ONE, PASSPHRASE, Filled, Serve, Served, soup, unmarked
from .test_unlocking import unlocked
from .test_writing_pages import sent

WORD = "kestrel-and-weir"  # the password of the address, which is to be found nowhere
Start = Callable[..., Awaitable[Served]]


@pytest.fixture
def address(filled: Filled, postgres: Server) -> Address:
    """The vault of the other tests, in a database; its server lets any password in."""
    there = Address(postgres.address().replace("owner@", f"owner:{WORD}@"))
    copy_vault(filled.path, there)
    return there


@pytest.fixture
def start(address: Address, filled: Filled, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Starts a Datasette that serves it under the name of notes."""
    monkeypatch.setenv("NOTES_STORAGE", f"{address.text}&password={WORD}")

    async def started(**options: Any) -> Served:
        storage = {"$env": "NOTES_STORAGE"}
        options = {"key-file": str(filled.key_file), "allow": ALLOW, **options}
        served = await serve(options={"notes": {"storage": storage, **options}})
        return Served(served.datasette)

    return started


@pytest.mark.in_a_file
async def test_it_answers_as_the_same_vault_in_a_file(
    filled: Filled, serve: Serve, start: Start
) -> None:
    on_server = (await start()).by("root")
    in_file = (await serve(filled.path, options=filled.options(allow=ALLOW))).by("root")
    for question in (".json?q=tomato&limit=3", ".json?q=water+garden&mode=keyword"):
        here, there = [(await one.get(question)).json() for one in (in_file, on_server)]
        assert here["rows"] == there["rows"]
        assert here["rows"]
    sql = "select title, rank from hybrid_search('tomato', 2)"
    assert await on_server.sql(sql) == await in_file.sql(sql)
    page = await on_server.get("?q=tomatoes")
    assert page.status_code == 200
    assert "Watering the tomatoes" in unmarked(page.text)
    assert (await on_server.by(None).get("?q=tomatoes")).status_code == 403


async def test_a_role_that_may_only_read_is_refused_a_change(
    address: Address, start: Start, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.sql(
        "create role onlooker login",
        "grant usage on schema memory_store, memory_store_vault to onlooker",
        "grant select on memory_store.vaults to onlooker",
        "grant select on all tables in schema memory_store_vault to onlooker",
    )
    monkeypatch.setenv("NOTES_STORAGE", address.text.replace("owner", "onlooker"))
    served = (await start()).by("root")
    refused = await served.send("POST", f"{served.base}/memories/{ONE}/done.json", {})
    assert refused.status_code == 403
    assert "this role may only read" in refused.json()["error"]
    assert (await served.get(f"{served.base}/memories/{ONE}.json")).status_code == 200


async def test_each_of_its_pages_is_there(start: Start) -> None:
    served = (await start()).by("root")
    below = (
        "/new",
        "/import",
        "/audit",
        "/collections",
        "/trash",
        "/searches",
        "/review",
        "/exists",
    )
    one = f"/memories/{ONE}"
    for path in (*below, one, f"{one}.json", f"{one}/edit", "/landscape", "/unlock"):
        answer = await served.get(served.base + path)
        assert answer.status_code == 200, (path, answer.text)
    for path in ("/", "/notes", "/-/hybrid"):
        answer = await served.datasette.client.get(path, cookies=served.cookies)
        assert answer.status_code == 200
        assert soup(answer).select_one('[action*="/-/hybrid"]'), path


@pytest.mark.in_a_file
async def test_its_tables_hold_what_stands_in_clear_and_show_titles_to_readers(
    start: Start, filled: Filled, serve: Serve
) -> None:
    served = (await start()).by("root")
    in_file = (await serve(filled.path, options=filled.options(allow=ALLOW))).by("root")
    await asyncio.to_thread(served.vault.follow_server)  # as the clock does
    for table in ("memories", "collections", "memory_topics"):
        query = f"select * from {table} order by 1"
        here, there = [await one.sql(query) for one in (in_file, served)]
        assert here
        clear = [name for name, value in there[0].items() if value is not None]
        assert [[row[name] for name in clear] for row in here] == [
            [row[name] for name in clear] for row in there
        ]
    assert all(row["head"] is None for row in await served.sql("select head from memories"))
    page = await served.get("/notes/memories")
    assert "Watering the tomatoes" in page.text
    found = await served.get("/notes/memories?_hybrid=watering&_hybrid_mode=keyword")
    assert "Watering the tomatoes" in found.text
    assert "The database" not in soup(found).select_one("table.rows-and-columns").text
    assert "Watering" not in (await served.by("alice").get("/notes/memories")).text
    stranger = await served.by(None).get("/notes/memories.json")
    assert stranger.status_code == 403
    await served.send("DELETE", f"{served.base}/memories/{ONE}.json")
    await asyncio.to_thread(served.vault.follow_server)
    (left,) = await served.sql("select count(*) as n from memories")
    assert left["n"] == 2
    copy = Path(served.datasette.databases["notes"].path)
    for file in copy.parent.iterdir():
        assert b"omato" not in file.read_bytes()
    assert copy.parent.stat().st_mode & 0o077 == 0
    vaults_of(served.datasette).lock_all()
    assert not copy.exists()


async def test_what_one_server_writes_the_other_finds(start: Start) -> None:
    one, other = (await start()).by("root"), (await start()).by("root")
    assert (await other.get(".json?q=kingfisher&mode=keyword")).json()["rows"] == []
    added = await sent(one, "/new", title="Kingfisher", text="Seen at the kingfisher weir.")
    assert added.status_code == 303, added.text
    found = (await other.get(".json?q=kingfisher&mode=keyword")).json()["rows"]
    assert [row["title"] for row in found] == ["Kingfisher"]
    gone = await other.send("DELETE", f"{other.base}/memories/{found[0]['id']}.json")
    assert gone.status_code == 200, gone.text
    assert (await one.get(".json?q=kingfisher&mode=keyword")).json()["rows"] == []


async def test_who_wrote_finds_it_at_once_on_every_surface(start: Start) -> None:
    served = (await start()).by("root")
    await asyncio.to_thread(served.vault.follow_server)
    counted = "select count(*) as n from memories"
    ((before,),) = (one.values() for one in await served.sql(counted))
    assert (await sent(served, "/new", title="Kingfisher", text="At the weir.")).status_code == 303
    (row,) = (await served.get(".json?q=kingfisher&mode=keyword")).json()["rows"]
    assert "Kingfisher" in unmarked((await served.get("?q=kingfisher&mode=keyword")).text)
    assert (await served.sql(counted)) == [{"n": before + 1}]
    found = "select title from hybrid_search('kingfisher', 1)"
    assert await served.sql(found) == [{"title": "Kingfisher"}]
    shown = await served.get("/notes/memories?_hybrid=kingfisher&_hybrid_mode=keyword")
    assert "Kingfisher" in unmarked(shown.text)
    await served.send("DELETE", f"{served.base}/memories/{row['id']}.json")
    assert (await served.sql(counted)) == [{"n": before}]
    assert (await served.get(".json?q=kingfisher&mode=keyword")).json()["rows"] == []


async def test_it_is_unlocked_in_the_browser_and_locked_again(start: Start) -> None:
    closed = await start(**{"key-file": None})
    assert (await closed.get("?q=tomatoes")).status_code == 423
    session = await unlocked(closed, PASSPHRASE)
    assert "Watering the tomatoes" in unmarked((await session.get("?q=tomatoes")).text)
    await session.submit("/lock", {}, "?q=tomatoes")
    assert (await session.get("?q=tomatoes")).status_code == 423


async def test_an_address_is_shown_to_nobody(
    start: Start, address: Address, capfd: pytest.CaptureFixture[str]
) -> None:
    served = (await start()).by("root")
    pages = ("/-/metadata.json", "/-/config.json", "/-/plugins.json", "/-/databases.json", "/notes")
    for path in (*pages, "/notes/-/hybrid?q=tomato", "/notes/-/hybrid/unlock"):
        answer = await served.datasette.client.get(path, cookies=served.cookies)
        assert WORD not in answer.text
        assert address.options["host"] not in answer.text, path
    said = capfd.readouterr()
    assert WORD not in said.out + said.err


async def test_while_the_server_is_away_each_answer_says_so_and_none_waits(
    start: Start,
    postgres: Server,
    no_watch: None,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("memory_store.vault.storage.postgres_link.WAITS", (0.0,))
    served = (await start()).by("root")
    assert (await served.get(".json?q=tomato")).status_code == 200
    postgres.stop("immediate")
    try:
        for path in (".json?q=tomato", f"/memories/{ONE}.json", "/mcp"):
            method = "POST" if path == "/mcp" else "GET"
            answer = await served.send(method, served.base + path)
            assert answer.status_code == 503, path
            assert "notes: the database is away" in answer.text
            assert answer.headers["retry-after"]
        page = await served.get("?q=tomato")
        assert (page.status_code, "Traceback" in page.text) == (503, False)
        assert "notes: the database is away" in soup(page).text
        typed = await served.submit("/new", {"text": "A long thought."})
        assert typed.status_code in (403, 503)
        assert "A long thought." in typed.text
        for path in ("/", "/notes", "/-/hybrid"):
            answer = await served.datasette.client.get(path, cookies=served.cookies)
            assert answer.status_code == 200, path
        refused = await served.datasette.client.get(
            "/notes.json?sql=select+*+from+hybrid_search('tomato')", follow_redirects=True
        )
        assert (refused.status_code, "the database is away" in refused.text) == (400, True)
        beside = await start()  # a server that starts meanwhile
        assert (await beside.get(".json?q=tomato")).status_code == 503
    finally:
        postgres.start()
    for one in (served, beside.by("root")):
        await asyncio.to_thread(one.vault.follow_server)  # as the clock does
        assert (await one.get(".json?q=tomato")).json()["rows"]
    said = capfd.readouterr().err
    assert "notes: the database is away" in said
    assert "notes: its server answers again" in said
    assert "Traceback" not in said
    assert WORD not in said


async def test_a_key_that_was_replaced_elsewhere_opens_it_no_more(
    start: Start, address: Address, filled: Filled, tiny_model: Any
) -> None:
    served = (await start()).by("root")
    with closing(MemoryStore.open(address, passphrase=PASSPHRASE)) as owner:
        (slot,) = [one for one in owner.keys.list() if one.kind == "key-file"]
        owner.keys.remove(slot.id)
        owner.keys.rotate()
    await asyncio.to_thread(served.vault.follow_server)
    assert (await served.get(".json?q=tomato")).status_code in (403, 423)
    assert not served.vault.is_open


@pytest.mark.parametrize(
    ("storage", "reason"),
    [
        (f"postgresql://ann:{WORD}@db.example/work", "expected, which holds the address"),
        ({"$env": "NOT_SET"}, "variable or file is missing"),
        ({"$env": "A_FILE"}, "datasette notes.db"),
        ({"$env": "BLANK"}, "without blanks"),
    ],
)
async def test_what_is_no_address_stops_the_start(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, storage: Any, reason: str
) -> None:
    monkeypatch.setenv("A_FILE", f"/srv/{WORD}.db")
    monkeypatch.setenv("BLANK", f"postgresql://ann:{WORD}@db.example/wo rk")
    with pytest.raises(StartupError, match=reason) as refused:
        await serve(options={"notes": {"storage": storage}})
    assert WORD not in str(refused.value)


@pytest.mark.in_a_file
async def test_a_file_keeps_its_name(filled: Filled, serve: Serve, start: Start) -> None:
    options = {"notes": {"storage": {"$env": "NOTES_STORAGE"}}}
    with pytest.raises(StartupError, match="another database of that name"):
        await serve(filled.path, options=options)


def test_an_assistant_knows_it_by_its_name(address: Address, filled: Filled) -> None:
    """Not by an address, which names user and host, and which no assistant takes for a name."""
    command = ["mcp", str(address), "install", "cursor", "--print", "--key-file"]
    shown = run(*command, str(filled.key_file))
    assert f'"memories-{address.vault}": {{' in shown.output, shown.output
