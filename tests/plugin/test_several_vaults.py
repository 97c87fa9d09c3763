"""Several vaults in one Datasette: coming, going, exchanged, and not to be written to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasette.database import Database

from datasette_hybrid.permissions import grants
from datasette_hybrid.vaults.registry import vaults_of
from memory_store.errors import NotAVaultError
from memory_store.sqlite import connect
from memory_store.store import MemoryStore

from .conftest import ALLOW, PASSPHRASE, Filled, Serve, Served
from .test_unlocking import unlocked

BEARER = {"Authorization": "Bearer nothing"}  # a program that sends JSON is no form
OTHER_PASSPHRASE = "five tall white storks"
Make = Callable[..., Path]


@pytest.fixture
def make(model: Path, tmp_path: Path) -> Make:
    """Makes a vault with one memory in a folder of its own; locked."""

    def made(folder: str, name: str = "notes.db", passphrase: str = OTHER_PASSPHRASE) -> Path:
        (tmp_path / folder).mkdir(exist_ok=True)
        store, _ = MemoryStore.create(tmp_path / folder / name, passphrase=passphrase)
        store.add(f"The storks of {folder} came back.", title=f"Storks of {folder}")
        store.close()
        return store.path

    return made


def at(served: Served, database: str) -> Served:
    """Another database of the same Datasette, asked by the same browser."""
    return Served(served.datasette, database, served.cookies)


async def titles(served: Served, query: str) -> list[str]:
    answer = await served.get(f".json?q={query}")
    assert answer.status_code == 200, answer.text
    return [row["title"] for row in answer.json()["rows"]]


@pytest.mark.in_a_file
async def test_vaults_of_one_name_have_keys_and_sessions_of_their_own(
    filled: Filled, make: Make, serve: Serve
) -> None:
    served = await serve(filled.path, make("work"))
    assert sorted(served.datasette.databases)[-2:] == ["notes", "notes_2"]
    first = await unlocked(served, PASSPHRASE)
    assert (await at(first, "notes_2").get(".json?q=storks")).status_code == 423
    wrong = await at(first, "notes_2").submit("/unlock", {"secret": PASSPHRASE})
    assert wrong.status_code == 403
    both = await unlocked(at(first, "notes_2"), OTHER_PASSPHRASE)
    assert await titles(both, "storks") == ["Storks of work"]
    assert "Watering the tomatoes" in await titles(at(both, "notes"), "tomatoes")
    assert (await both.submit("/lock", {}, page="?q=storks")).status_code == 303
    assert (await both.get(".json?q=storks")).status_code == 423
    assert (await at(both, "notes").get(".json?q=tomatoes")).status_code == 200


async def test_a_copy_of_a_vault_is_locked_by_itself(
    filled: Filled, serve: Serve, tmp_path: Path
) -> None:
    copy = Path(shutil.copy(filled.path, tmp_path / "copy.db"))
    served = await serve(filled.path, copy)
    first = await unlocked(served, PASSPHRASE)
    both = await unlocked(at(first, "copy"), PASSPHRASE)
    assert (await at(both, "notes").get("?q=tomatoes")).status_code == 200
    assert (await both.get("?q=tomatoes")).status_code == 200
    await both.submit("/lock", {}, page="?q=tomatoes")
    assert (await at(both, "notes").get("?q=tomatoes")).status_code == 200
    assert (await both.get("?q=tomatoes")).status_code == 423


async def test_a_vault_added_at_runtime_is_found_and_opened_by_its_configured_key(
    filled: Filled, make: Make, serve: Serve
) -> None:
    settings = {"key-file": str(filled.key_file), "allow": ALLOW}
    served = await serve(make("work"), options={"late": settings})
    datasette = served.datasette
    datasette.add_database(Database(datasette, path=str(filled.path), is_mutable=True), name="late")
    bob = at(served.by("bob"), "late")
    assert "Watering the tomatoes" in await titles(bob, "tomatoes")
    assert (await at(served, "late").get(".json?q=tomatoes")).status_code == 403
    vault = vaults_of(datasette).of("late")
    datasette.remove_database("late")
    vaults_of(datasette).rest_where_due()
    assert not vault.is_open
    assert (await bob.get(".json?q=tomatoes")).status_code == 404


async def test_a_vault_added_at_runtime_without_a_key_can_be_unlocked(
    make: Make, closed: Served
) -> None:
    datasette = closed.datasette
    datasette.add_database(
        Database(datasette, path=str(make("work")), is_mutable=True), name="late"
    )
    late = at(closed, "late")
    assert (await late.get("?q=storks")).status_code == 423
    assert await titles(await unlocked(late, OTHER_PASSPHRASE), "storks") == ["Storks of work"]


@pytest.mark.in_a_file
@pytest.mark.usefixtures("no_watch")
@pytest.mark.parametrize("way", ["renamed over it", "copied into it"])
async def test_a_vault_exchanged_under_the_server_locks_and_opens_anew(
    filled: Filled, make: Make, serve: Serve, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    served = await serve(filled.path)
    session = await unlocked(served, PASSPHRASE)
    assert "Watering the tomatoes" in await titles(session, "tomatoes")
    other = make("work")
    for log in filled.path.parent.glob("notes.db-*"):
        connect(filled.path).execute("pragma wal_checkpoint(truncate)")
        assert log.exists()
    if way == "renamed over it":
        os.replace(other, filled.path)
    else:
        filled.path.write_bytes(other.read_bytes())
    assert (await session.get(".json?q=storks")).status_code == 423
    assert "its file was exchanged" in capsys.readouterr().err
    assert (await served.submit("/unlock", {"secret": PASSPHRASE})).status_code == 403
    assert await titles(await unlocked(served, OTHER_PASSPHRASE), "storks") == ["Storks of work"]


@pytest.mark.in_a_file
async def test_a_vault_written_to_by_another_person_stays_open(
    filled: Filled, serve: Serve
) -> None:
    session = await unlocked(await serve(filled.path), PASSPHRASE)
    with MemoryStore.open(filled.path, key_file=filled.key_file) as elsewhere:
        elsewhere.add("A crate of quinces.", title="Quinces")
    connect(filled.path).execute("pragma wal_checkpoint(truncate)")
    assert "Quinces" in await titles(session, "quinces")


@pytest.mark.in_a_file
@pytest.mark.parametrize("way", ["immutable", "nolock", "read-only"])
async def test_what_cannot_be_written_to_is_searched_and_says_why(
    filled: Filled, serve: Serve, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    connect(filled.path).execute("pragma journal_mode = delete")
    settings = filled.options(allow=ALLOW)
    more: dict[str, Any] = {"nolock": True} if way == "nolock" else {}
    paths = (filled.path,)
    if way == "immutable":
        more, paths = {"immutables": [str(filled.path)]}, ()
    if way == "read-only":
        if os.geteuid() == 0:
            pytest.skip("root may write to every file")
        filled.path.chmod(0o444)
    served = at(await serve(*paths, options=settings, **more), "notes")
    before = filled.path.read_bytes()
    assert "Watering the tomatoes" in await titles(served.by("bob"), "tomatoes")
    rows = await served.by("bob").sql("select hybrid_search('tomatoes', 1) found")
    assert "Watering" in rows[0]["found"]
    written = await served.by("wanda").send(
        "POST", "/notes/-/hybrid/memories.json", {"text": "more"}, headers=BEARER
    )
    assert written.status_code == 403
    assert "nothing can be written to notes.db" in written.json()["error"]
    assert "nothing can be written" in capsys.readouterr().err
    vaults_of(served.datasette).lock_all()
    assert filled.path.read_bytes() == before


async def test_json_of_another_database_asks_about_a_vault_only_if_its_sql_names_it(
    filled: Filled, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = await serve(filled.path, options=filled.options(allow=ALLOW))
    served.datasette.add_memory_database("plain")
    plain, asked = at(served, "plain"), list[str]()
    resolve = grants.resolve_some

    async def heard(datasette: Any, actor: Any, databases: list[str], *more: Any) -> Any:
        asked.extend(databases)
        return await resolve(datasette, actor, databases, *more)

    monkeypatch.setattr(grants, "resolve_some", heard)
    assert await plain.by("bob").sql("select 1 as one") == [{"one": 1}]
    assert not asked
    found = "select hybrid_search('tomatoes', '{\"database\": \"notes\"}') as found"
    for actor, readable in (("bob", True), ("nobody", False)):
        (row,) = await plain.by(actor).sql(found)
        assert ("Watering the tomatoes" in row["found"]) is readable
    assert set(asked) == {"notes"}


@pytest.mark.in_a_file
async def test_queries_across_databases_read_each_vault_by_its_own_grants(
    filled: Filled, make: Make, serve: Serve
) -> None:
    settings = filled.options(allow=ALLOW)
    served = await serve(filled.path, make("work", "work.db"), options=settings, crossdb=True)
    crossing = at(served.by("bob"), "_memory")
    rows = await crossing.sql(
        """
        select (select count(*) from notes.memories) here,
            hybrid_search('tomatoes', '{"database": "notes", "limit": 1}') found,
            hybrid_search('storks', '{"database": "work"}') locked,
            memory_text('00000000-0000-4000-8000-000000000001') text
        """
    )
    assert rows[0]["here"] == 3
    refused = await served.datasette.client.get(
        "/_memory.json",
        params={"sql": "select count(*) from work.memories"},
        cookies=crossing.cookies,
        follow_redirects=True,
    )
    assert refused.status_code == 403
    assert "Watering the tomatoes" in rows[0]["found"]
    assert rows[0]["locked"] == "[]"
    assert rows[0]["text"] is None  # the connection's own database holds no vault
    nameless = await at(served.by("bob"), "_memory").sql("select hybrid_search('tomatoes') error")
    assert "the database _memory holds no vault: name the one" in nameless[0]["error"]
    assert (
        await at(served.by("mallory"), "_memory").sql(
            """select hybrid_search('tomatoes', '{"database": "notes"}') found"""
        )
    )[0]["found"] == "[]"


async def test_a_wrong_key_for_one_vault_leaves_the_others_alone(
    filled: Filled, make: Make, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    key = {"key-file": str(filled.key_file), "allow": ALLOW}
    served = await serve(filled.path, make("work", "work.db"), options={"notes": key, "work": key})
    reported = capsys.readouterr().err.splitlines()
    assert [line for line in reported if "notes: open, by the configured key file" in line]
    assert [line for line in reported if "work: locked: " in line]
    assert await titles(served.by("bob"), "tomatoes")
    assert (await at(served.by("bob"), "work").get("?q=storks")).status_code == 423
    assert (await served.by("bob").get("/-/hybrid?q=tomatoes")).status_code == 200


async def test_a_file_that_cannot_be_read_today_is_looked_at_again(
    filled: Filled, tmp_path: Path, serve: Serve
) -> None:
    path = tmp_path / "later.db"
    connect(path).close()
    vaults = vaults_of((await serve(path)).datasette)
    whole = filled.path.read_bytes()
    path.write_bytes(whole[:100] + bytes(100) + whole[200:])  # the head of its schema
    status = path.stat()
    with pytest.raises(NotAVaultError):
        vaults.of("later")
    path.write_bytes(whole)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert vaults.of("later").path == path
