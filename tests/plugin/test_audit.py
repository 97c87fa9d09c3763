"""The audit trail through Datasette: every surface is heard, and only hybrid-audit may read it."""

from __future__ import annotations

import asyncio
import csv
import io
import time
from typing import Any

import pytest
from bs4 import BeautifulSoup

from datasette_hybrid.vaults.registry import vaults_of
from memory_store.sqlite import connect
from memory_store.store import MemoryStore

from .browsing import PATIENCE
from .conftest import ALLOW, ONE, PASSPHRASE, Filled, Serve, Served


async def trail(served: Served, query: str = "") -> Any:
    """The trail as root reads it."""
    answer = await served.by("root").get(f"{served.base}/audit.json{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def reported(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Events, oldest first, as (who, surface, action, opened, returned)."""
    keys = ("who", "surface", "action", "opened", "returned")
    return [tuple(row[key] for key in keys) for row in reversed(rows)]


async def test_every_surface_is_heard(served: Served) -> None:
    bob, wanda = served.by("bob"), served.by("wanda")
    found = (await bob.get(".json?q=tomatoes")).json()
    opened, returned = found["opened"], len(found["rows"])
    await bob.get("?q=tomatoes")
    await bob.get(".csv?q=tomatoes")
    await bob.sql("select hybrid_search('tomatoes')")
    await bob.sql(f"select memory_text('{ONE}')")
    await bob.get(f"{served.base}/memories/{ONE}")
    await bob.get(f"{served.base}/memories/{ONE}.json")
    await bob.get("/notes/memories?_hybrid=tomatoes")
    added = await wanda.send("POST", f"{served.base}/memories.json", {"text": "x"})
    assert added.status_code == 201
    one = added.json()["rows"][0]["id"]
    await wanda.send("DELETE", f"{served.base}/memories/{one}.json")
    await served.by("alice").get(".json?q=tomatoes")  # who may search and not read
    await served.by("alice").get(f"{served.base}/memories/{ONE}.json")
    await served.by("mallory").get(".json?q=tomatoes")  # opens nothing: not in the trail
    events = reported((await trail(served))["rows"])
    assert events[0] == ("server", "server", "unlock", 0, 0)
    for surface in ("json", "page", "csv", "sql", "table"):
        assert ("bob", surface, "search", opened, returned) in events, surface
    assert ("bob", "sql", "read", 1, 1) in events
    assert ("bob", "memory", "read") in [event[:3] for event in events]
    assert ("bob", "json", "read", 1, 1) in events
    assert ("alice", "json", "search", 0, returned) in events
    assert ("alice", "json", "read", 0, 1) in events
    assert ("wanda", "json", "add", 0, 1) in events
    assert ("wanda", "json", "delete", 0, 1) in events
    assert "mallory" not in {event[0] for event in events}


async def test_sessions_and_wrong_secrets_are_distinguished(filled: Filled, serve: Serve) -> None:
    served = await serve(filled.path)
    await served.submit("/unlock", {"secret": "not the passphrase"})
    response = await served.submit("/unlock", {"secret": PASSPHRASE})
    session = Served(served.datasette, "notes", dict(response.cookies))
    await session.get(".json?q=tomatoes&sealed=1")
    await session.submit("/lock", {}, page="?q=x")
    response = await served.submit("/unlock", {"secret": PASSPHRASE})
    session = Served(served.datasette, "notes", dict(response.cookies))
    events = reported((await session.get(f"{served.base}/audit.json")).json()["rows"])
    assert [(who, action) for who, _, action, *_ in events if action != "search"] == [
        ("anonymous", "failed unlock"),
        ("unlocked session", "unlock"),
        ("unlocked session", "lock"),
        ("unlocked session", "unlock"),
    ]
    assert ("unlocked session", "json", "search") in [event[:3] for event in events]


async def test_only_those_with_the_permission_read_the_trail(served: Served) -> None:
    for who in ("bob", "wanda", "mallory", None):
        for suffix in ("", ".json", ".csv"):
            refused = await served.by(who).get(f"{served.base}/audit{suffix}")
            assert refused.status_code == 403, (who, suffix)
            assert "Totals" not in refused.text
    assert "Audit trail" not in (await served.by("bob").get("?q=tomatoes")).text
    assert "Audit trail" in (await served.by("root").get("?q=tomatoes")).text


async def test_an_allow_block_lets_a_person_read_it_and_nothing_else(
    filled: Filled, serve: Serve
) -> None:
    allow = {**ALLOW, "hybrid-audit": {"id": "auditor"}}
    served = await serve(filled.path, options=filled.options(allow=allow))
    auditor = served.by("auditor")
    assert (await auditor.get(f"{served.base}/audit.json")).json()["ok"] is True
    assert (await auditor.get(".json?q=tomatoes")).status_code == 403
    assert (await served.by("root").get(f"{served.base}/audit")).status_code == 403


async def test_the_trail_never_holds_a_query_or_a_text(served: Served) -> None:
    await served.by("bob").get(".json?q=tomatoes")
    await served.by("bob").get(f"{served.base}/memories/{ONE}")
    for suffix in (".json", ".csv"):
        shown = (await served.by("root").get(f"{served.base}/audit{suffix}")).text
        assert "bob" in shown
        assert "tomato" not in shown.lower()
        assert ONE not in shown


async def test_the_page_filters_pages_and_adds_up(served: Served) -> None:
    for _ in range(3):
        await served.by("bob").get(".json?q=tomatoes")
    await served.by("alice").get(".json?q=tomatoes")
    vault = served.vault
    for _ in range(230):
        vault.audit.note_server("lock")
    page = BeautifulSoup((await served.by("root").get(f"{served.base}/audit")).text, "html.parser")
    totals, events = page.select("table")
    assert {row.select_one("th").text for row in totals.select("tbody tr")} >= {"bob", "alice"}
    assert len(events.select("tbody tr")) == 100
    older = page.select_one("a[rel=next]")["href"]
    second = BeautifulSoup((await served.by("root").get(older)).text, "html.parser")
    assert len(second.select("table")[1].select("tbody tr")) == 100
    asked = f"{served.base}/audit?who=bob&surface=json&action=search&since=1d"
    one = BeautifulSoup((await served.by("root").get(asked)).text, "html.parser")
    (row,) = one.select("table")[1].select("tbody tr")
    assert [cell.text for cell in row.select("td")][1:5] == ["bob", "json", "search", "3"]
    assert one.select_one("select[name=who] option[selected]").text == "bob"
    refused = await served.by("root").get(f"{served.base}/audit?since=someday")
    assert refused.status_code == 400
    assert "since" in refused.text
    for path in ("?q=tomatoes", ".csv?q=tomatoes"):
        await served.by("bob").get(path)
    assert (await trail(served, "?limit=2&who=bob"))["next_url"].endswith("before=1")
    rest = await trail(served, "?limit=2&who=bob&before=1")
    assert (len(rest["rows"]), rest["next"], rest["truncated"]) == (1, None, False)
    assert rest["rows"][0]["times"] == 3


@pytest.mark.parametrize(
    "id", ["anonymous", "server", "Unlocked session", "assistant Claude", "actor server", "sync"]
)
async def test_nobody_passes_for_someone_else_by_an_id(
    filled: Filled, serve: Serve, id: str
) -> None:
    allow = {**ALLOW, "hybrid-search": {"id": [id, "root"]}}
    served = await serve(filled.path, options=filled.options(allow=allow))
    await served.by(id).get(f"{served.base}.json?q=tomatoes")
    assert f"actor {id}" in {row["who"] for row in (await trail(served))["rows"]}
    assert ("search", id) not in {
        (row["action"], row["who"]) for row in (await trail(served))["rows"]
    }


async def test_the_csv_runs_no_formula(served: Served) -> None:
    await served.by({"id": "=cmd|'/c calc'!A0"}).get(f"{served.base}/audit")
    vault = served.vault
    await served.by("bob").get(".json?q=tomatoes")
    vault.write_audit()
    text = (await served.by("root").get(f"{served.base}/audit.csv")).text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["action"] for row in rows if row["who"] == "bob"] == ["search"]
    assert not [cell for row in rows for cell in row.values() if cell.startswith("=")]


@pytest.mark.in_a_file
async def test_events_are_written_within_seconds_and_at_shutdown(
    served: Served, filled: Filled
) -> None:
    await served.by("bob").get(".json?q=tomatoes")
    deadline = time.monotonic() + PATIENCE
    while served.vault.audit.waiting():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)
    await served.by("alice").get(".json?q=tomatoes")
    vaults_of(served.datasette).lock_all()
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        assert [event.actor for event in store.trail.events() if event.action == "search"] == [
            "bob",
            "alice",
        ]
        assert store.verify()["failures"] == []


async def test_searching_again_and_again_pushes_nothing_out_of_the_trail(
    filled: Filled, serve: Serve
) -> None:
    audit = {"events": 100}
    served = await serve(filled.path, options=filled.options(allow=ALLOW, audit=audit))
    await served.by("bob").get(".json?q=tomatoes")
    vault = served.vault
    for _ in range(8):
        for _ in range(30):  # as many as a page that searches while a person types
            await served.by("alice").get(".json?q=tomatoes&mode=keyword&limit=1")
        vault.write_audit()
    totals = {one["who"]: one for one in (await trail(served))["totals"]}
    assert (totals["bob"]["events"], totals["alice"]["events"]) == (1, 240)
    shown = (await served.by("root").get(f"{served.base}/audit.csv?who=alice")).text
    assert len(shown.splitlines()) <= 4
    assert "times" in shown.splitlines()[0]


async def test_locking_what_is_locked_is_no_event(filled: Filled, serve: Serve) -> None:
    served = await serve(filled.path, options=filled.options(allow=ALLOW))
    for _ in range(3):
        await served.by("wanda").submit("/lock", {}, page="/unlock")
    vault = served.vault
    assert [one.action for one in vault.audit.waiting()].count("lock") <= 1


@pytest.mark.in_a_file
@pytest.mark.usefixtures("no_watch")
async def test_a_busy_file_delays_the_trail_and_no_search(served: Served, filled: Filled) -> None:
    writer = connect(filled.path)
    writer.execute("begin immediate")
    for _ in range(3):
        assert (await served.by("bob").get(".json?q=tomatoes")).status_code == 200
    vault = served.vault
    await asyncio.to_thread(vault.write_audit)
    assert [one.times for one in vault.audit.waiting() if one.actor == "bob"] == [3]
    writer.execute("rollback")
    vault.write_audit()
    assert vault.audit.waiting() == []


async def test_the_trail_can_be_turned_off_or_kept_shorter(filled: Filled, serve: Serve) -> None:
    served = await serve(filled.path, options=filled.options(allow=ALLOW, audit=False))
    await served.by("bob").get(".json?q=tomatoes")
    assert (await trail(served))["rows"] == []
    page = await served.by("root").get(f"{served.base}/audit")
    assert "turned off in the configuration" in page.text


async def test_what_cannot_be_written_is_shown_from_memory(
    filled: Filled, serve: Serve, capsys: Any
) -> None:
    connect(filled.path).execute("pragma journal_mode = delete")
    served = await serve(options=filled.options(allow=ALLOW), immutables=[str(filled.path)])
    served = Served(served.datasette, "notes")
    await served.by("bob").get(".json?q=tomatoes")
    events = reported((await trail(served))["rows"])
    assert ("bob", "json", "search") in [event[:3] for event in events]
    assert "the audit trail is kept in memory" in capsys.readouterr().err
    page = await served.by("root").get(f"{served.base}/audit")
    assert "it is served as immutable" in page.text
