"""Key slots of another person's making never end a program, nor keep the real one from opening.

The attacker writes to the file: a row of his own beside the real ones, or in the place of one. What
he wants is a traceback, a wait of minutes, or an owner who cannot get in.
"""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path

import pytest
from counts import a_third_of
from plugin.conftest import PASSPHRASE, Filled, Serve
from thieves import change

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))

from typing_commands import run

from memory_store.errors import MemoryStoreError, WrongKeyError
from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore

DEEP = 100_000
USUAL = '{"memory_kib":65536,"iterations":3,"lanes":4}'
PARAMETERS = {
    "lists in lists": "[" * DEEP,
    "objects in objects": '{"memory_kib":' * DEEP,
    "lists in a field": '{"memory_kib":' + "[" * DEEP,
    "lists in an unknown field": USUAL[:-1] + ',"x":' + "[" * DEEP + "]" * DEEP + "}",
    "megabytes of blanks": USUAL + " " * 5_000_000,
    "no JSON": "\ud7ff",
    "another kind": '{"memory_kib":[],"iterations":{},"lanes":null}',
    "a number of 4,000 digits": USUAL.replace("65536", "9" * 4_000),
    "hours of work": '{"memory_kib":1048576,"iterations":64,"lanes":1}',
    "no end of memory": USUAL.replace("65536", "1099511627776"),
    "a device key of no one": USUAL[:-1] + f',"device":"{"ab" * 16}","device_key":"AAAA"}}',
    "a device key in another folder": USUAL[:-1] + ',"device":"../../../../etc/passwd"}',
    "a device key of half a character": USUAL[:-1] + ',"device":"\\ud800"}',
}
CELLS = {
    "parameters that are no text": "parameters = cast(x'ff00fe' as text)",
    "an id that is no text": "id = cast(x'ff' as text)",
    "a kind that is no text": "kind = cast(x'70ff' as text)",
    "no salt": "salt = x''",
    "a salt of megabytes": "salt = zeroblob(5000000)",
    "no commitment": "commitment = x''",
    "a wrapped key of megabytes": "wrapped = zeroblob(5000000)",
    "nothing at all": "salt = null, commitment = null, wrapped = null, parameters = null",
    "the number of another": "principal = 9223372036854775807",
}
"""What a row says in the place of a copy of the real one. A thief's SQLite checks no types."""


@pytest.fixture
def planted(filled: Filled, request: pytest.FixtureRequest) -> Filled:
    """The vault with hostile rows before and after the real ones."""
    name = request.param
    with closing(sqlite3.connect(filled.path)) as connection, connection:
        connection.execute("pragma writable_schema = on")
        connection.execute(
            "update sqlite_master set sql = replace(sql, 'STRICT', '') where name = 'vault_slots'"
        )
    for created in ("0000-01-01", "9999-01-01"):
        change(
            filled.path,
            "insert into vault_slots select 'planted-' || ?, principal, kind, parameters, salt, "
            "commitment, wrapped, ? from vault_slots where kind = 'passphrase' limit 1",
            created,
            created,
        )
        where = "where created in ('0000-01-01', '9999-01-01') and id like 'planted%'"
        if name in PARAMETERS:
            change(filled.path, f"update vault_slots set parameters = ? {where}", PARAMETERS[name])
        elif name in CELLS:
            change(filled.path, f"update or replace vault_slots set {CELLS[name]} {where}")
    return filled


HOSTILE = [*PARAMETERS, *CELLS, "a copy of the real row"]
hostile = pytest.mark.parametrize("planted", HOSTILE, indirect=True)
some_hostile = pytest.mark.parametrize("planted", a_third_of(HOSTILE), indirect=True)


@pytest.mark.once
@hostile
def test_beside_a_hostile_slot_every_real_key_opens_the_vault(planted: Filled) -> None:
    for secret in ({"key_file": planted.key_file}, {"recovery_code": planted.recovery_code}):
        with MemoryStore.open(planted.path, **secret) as store:  # type: ignore[arg-type]
            assert len(store.list()) == 3


@pytest.mark.sampled(2)
@pytest.mark.once
@some_hostile
def test_the_passphrase_opens_it_and_the_commands_go_on_beside_a_hostile_slot(
    planted: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", PASSPHRASE)
    found = run("search", str(planted.path), "tomatoes", "--json")
    assert found.exit_code == 0, found.output
    listed = run("keys", "list", str(planted.path), "--key-file", str(planted.key_file))
    assert listed.exit_code == 0, listed.output
    devices = run("keys", "device", "list", str(planted.path))
    assert devices.exit_code == 0, devices.output


@pytest.mark.sampled(3)
@some_hostile
async def test_datasette_starts_and_is_unlocked_beside_a_hostile_slot(
    planted: Filled, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTES_SECRET", PASSPHRASE)
    settings = {"passphrase": {"$env": "NOTES_SECRET"}}
    served = await serve(planted.path, options={"notes": settings})
    assert (await served.by("root").get(".json?q=tomatoes")).status_code == 200


SLOW = ("hours of work", "a device key of no one")  # of well-formed slots: a minute, or in vain
ALONE = [name for name in PARAMETERS if name not in SLOW]


@pytest.fixture
def spoiled(filled: Filled, request: pytest.FixtureRequest) -> Filled:
    """The vault with all its passphrase slots spoiled."""
    statement = "update vault_slots set parameters = ? where kind = 'passphrase'"
    change(filled.path, statement, PARAMETERS[request.param])
    return filled


spoilt = pytest.mark.parametrize("spoiled", ALONE, indirect=True)
some_spoilt = pytest.mark.parametrize("spoiled", a_third_of(ALONE), indirect=True)


@spoilt
def test_a_spoiled_slot_alone_is_refused_in_a_line(
    spoiled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MemoryStoreError, match="slot"):
        MemoryStore.open(spoiled.path, passphrase=PASSPHRASE)
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", PASSPHRASE)
    said = run("search", str(spoiled.path), "tomatoes")
    assert (said.exit_code in (1, 3), "Traceback" in said.output) == (True, False), said.output


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another vault, which the same passphrase opens."""
    path = tmp_path_factory.mktemp("other") / "other.db"
    with MemoryStore.create(path, passphrase=PASSPHRASE, device_key=False)[0] as store:
        store.add("The other vault is served.")
    return path


@pytest.mark.sampled(1)
@some_spoilt
async def test_datasette_starts_over_a_spoiled_slot_and_serves_the_rest(
    spoiled: Filled, serve: Serve, monkeypatch: pytest.MonkeyPatch, other: Path
) -> None:
    monkeypatch.setenv("NOTES_SECRET", PASSPHRASE)
    settings = {"passphrase": {"$env": "NOTES_SECRET"}}
    options = {"notes": settings, "other": settings}
    served = await serve(spoiled.path, other, options=options)
    assert (await served.by("root").get(".json?q=tomatoes")).status_code == 423
    said = await served.by("root").get("/other/-/hybrid.json?q=served")
    assert said.status_code == 200


def test_a_wrong_passphrase_is_still_wrong_beside_a_hostile_slot(filled: Filled) -> None:
    change(
        filled.path,
        "insert into vault_slots values ('planted', 0, 'passphrase', ?, x'00', x'00', x'00', '')",
        PARAMETERS["lists in lists"],
    )
    with pytest.raises(WrongKeyError, match=r"wrong passphrase.*another key slot was not tried"):
        MemoryStore.open(filled.path, passphrase="not the passphrase of it")


def test_a_row_that_was_put_into_the_file_becomes_no_key_when_another_is_added(
    filled: Filled,
) -> None:
    """A removed slot is put back, and waits for the owner to write down which slots there are."""
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        slot, code = store.keys.add_recovery_code()
        with closing(sqlite3.connect(filled.path)) as connection:
            row = connection.execute(
                "select * from vault_slots where id = ?", (slot.id,)
            ).fetchone()
        store.keys.remove(slot.id)
        marks = ", ".join("?" * len(row))
        change(filled.path, f"insert into vault_slots values ({marks})", *row)
        store.keys.add_recovery_code()
    with pytest.raises(MemoryStoreError, match="put back"):
        MemoryStore.open(filled.path, recovery_code=code)


def test_a_row_that_was_put_into_the_file_is_no_other_key_than_the_last_one(
    filled: Filled,
) -> None:
    """The owner is not led to take his last key away because another one seems to be there."""
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        for slot in store.keys.list():
            if not slot.opened:
                store.keys.remove(slot.id)
        change(
            filled.path,
            "insert into vault_slots select 'planted', principal, kind, parameters, salt, "
            "commitment, wrapped, created from vault_slots",
        )
        (own,) = [slot.id for slot in store.keys.list() if slot.opened]
        with pytest.raises(MemoryStoreError, match="last one"):
            store.keys.remove(own)
        assert store.keys.remove("planted").id == "planted"


def test_verification_names_a_slot_that_was_put_into_the_file(filled: Filled) -> None:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.keys.add_recovery_code()  # the owner writes down which keys are his
        assert store.verify()["failures"] == []
        change(
            filled.path,
            "insert into vault_slots select 'planted', principal, kind, parameters, salt, "
            "commitment, wrapped, created from vault_slots where kind = 'key-file'",
        )
        (failure,) = store.verify()["failures"]
        assert "key slot planted" in failure
        store.keys.remove("planted")
        assert store.verify()["failures"] == []
        with MemoryStore.open(filled.path, key_file=filled.key_file) as other:
            other.keys.add_recovery_code()
        assert store.verify()["failures"] == [], "one that the owner made meanwhile"


@pytest.mark.parametrize("content", [b"[" * DEEP, b'{"count": 1}', b"null", b"\xff", b"1e999"])
def test_an_account_of_a_member_s_making_is_refused_in_a_line(
    filled: Filled, content: bytes
) -> None:
    """Accounts are sealed with the collection's key, so any member may write one."""
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        keyring = store._opened.vault.keyring
        keys = keyring.of(store._opened.vault.settings.personal)
        place = keys.place("vault_manifests", "sealed", keys.collection, 7)
        change(
            filled.path,
            "update vault_manifests set counter = 7, sealed = ? where collection = ?",
            keys.seal("manifest", place, content),
            keys.collection,
        )
    with pytest.raises(MemoryStoreError, match="vault_manifests"):
        MemoryStore.open(filled.path, key_file=filled.key_file)
    said = run("list", str(filled.path), "--key-file", str(filled.key_file))
    assert said.exit_code == 1, said.output


def test_no_deep_json_was_made_in_vain() -> None:
    with pytest.raises(RecursionError):
        json.loads(PARAMETERS["lists in lists"])
