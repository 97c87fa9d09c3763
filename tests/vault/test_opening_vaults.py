"""Who can open a vault, and what a locked one keeps to itself."""

from __future__ import annotations

import json
import re
import struct
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from thief import change

from memory_store.crypto.keys import Argon2Parameters
from memory_store.errors import (
    BadInputError,
    FormatError,
    LockedError,
    NotAVaultError,
    StorageError,
    WrongKeyError,
)
from memory_store.sqlite import connect, sqlite3  # two libraries would undo each other's locks
from memory_store.store import MemoryStore
from memory_store.vault.storage.file_access import file_access
from memory_store.vault.storage.schema import is_vault

PASSPHRASE = "four small grey herons"
Make = Callable[..., MemoryStore]


def test_a_vault_opens_by_key_file_passphrase_and_recovery_code(
    tmp_path: Path, private_folders: Path, key_file: Path, tiny_model: Path
) -> None:
    path = tmp_path / "notes.db"
    store, code = MemoryStore.create(
        path, key_file=key_file, passphrase=PASSPHRASE, embedder=str(tiny_model)
    )
    memory = store.add("The spare key hangs in the boathouse.")
    store.lock()
    for secret in (
        {"key_file": key_file},
        {"passphrase": PASSPHRASE},
        {"recovery_code": code},
        {"recovery_code": code.lower().replace("-", " ")},
    ):
        with MemoryStore.open(path, **secret) as opened:
            assert opened.get(memory.id).text == "The spare key hangs in the boathouse."


def test_wrong_secrets_are_named_by_kind_and_never_shown(
    tmp_path: Path, private_folders: Path, key_file: Path
) -> None:
    path = tmp_path / "notes.db"
    MemoryStore.create(path, passphrase=PASSPHRASE)[0].lock()
    with pytest.raises(WrongKeyError, match="wrong passphrase") as refusal:
        MemoryStore.open(path, passphrase="four small grey egrets")
    assert "egrets" not in str(refusal.value)
    other, _ = MemoryStore.create(tmp_path / "other.db", key_file=key_file)
    other.lock()
    with pytest.raises(WrongKeyError, match="not opened by a key file; it has: passphrase"):
        MemoryStore.open(path, key_file=key_file)
    with pytest.raises(BadInputError, match="no recovery code"):
        MemoryStore.open(path, recovery_code="not one")
    with pytest.raises(LockedError, match="no key was given: name its key_file, a passphrase"):
        MemoryStore.open(path)
    with pytest.raises(NotAVaultError, match="no such file"):
        MemoryStore.open(tmp_path / "nowhere.db")


def test_a_vault_without_a_key_or_with_a_weak_one_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="needs a key"):
        MemoryStore.create(tmp_path / "notes.db")
    with pytest.raises(BadInputError, match="at least 8 characters"):
        MemoryStore.create(tmp_path / "notes.db", passphrase="short")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.in_a_file
def test_a_commit_waits_for_the_disk(store: MemoryStore) -> None:
    connection = connect(store.path)
    assert connection.execute("pragma synchronous").fetchone() == (2,)  # full
    connection.close()


def test_a_vault_is_never_made_over_another(store: MemoryStore, key_file: Path) -> None:
    memory = store.add("Here first.")
    with pytest.raises(BadInputError, match="is a vault already"):
        MemoryStore.create(store.path, key_file=key_file)
    assert store.get(memory.id).text == "Here first."


def test_an_existing_database_gains_a_vault_and_keeps_its_tables(
    tmp_path: Path, key_file: Path, private_folders: Path, tiny_model: Path
) -> None:
    path = tmp_path / "existing.db"
    change(path, "create table plants (name text)")
    store, _ = MemoryStore.create(path, key_file=key_file, embedder=str(tiny_model))
    store.add("Sow the beans in May.")
    store.lock()
    with sqlite3.connect(path) as connection:
        assert connection.execute("select count(*) from plants").fetchone() == (0,)
    connection.close()


def test_files_that_are_no_vaults_are_distinguished(tmp_path: Path, key_file: Path) -> None:
    text, plain = tmp_path / "a.db", tmp_path / "b.db"
    text.write_text("not a database at all, just text")
    change(plain, "create table t (x)")
    MemoryStore.create(tmp_path / "ok.db", key_file=key_file)[0].lock()
    for path, message in (
        (tmp_path / "missing.db", "no such file"),
        (tmp_path, "not a file"),
        (text, "not an SQLite database"),
        (plain, "not a vault"),
    ):
        with pytest.raises(NotAVaultError, match=message) as refusal:
            MemoryStore.open(path, key_file=key_file)
        assert str(path) in str(refusal.value)


@pytest.mark.in_a_file
def test_another_format_is_refused_by_number(store: MemoryStore, key_file: Path) -> None:
    store.lock()
    change(store.path, "pragma user_version = 7")
    with pytest.raises(FormatError, match="format 7"):
        MemoryStore.open(store.path, key_file=key_file)


@pytest.mark.in_a_file
@pytest.mark.parametrize(
    "statement",
    [
        "create trigger spy after insert on memories begin select 1; end",
        "create view memories_copy as select * from memories",
    ],
)
def test_a_schema_with_foreign_triggers_is_refused(
    store: MemoryStore, key_file: Path, statement: str
) -> None:
    store.lock()
    change(store.path, statement)
    with pytest.raises(FormatError, match="which a vault never has"):
        MemoryStore.open(store.path, key_file=key_file)


def beside(path: Path, names: Path) -> None:
    """The journal of a transaction that SQLite is to roll back, with the name of a file to delete:
    as where a program died that wrote to several databases at once."""
    magic, name = bytes.fromhex("d9d505f920a163d7"), str(names).encode()
    page, pages = 4_096, path.stat().st_size // 4_096
    head = (magic + struct.pack(">IIIII", 0, 1, pages, 512, page)).ljust(512, b"\0")
    marked = struct.pack(">I", (1 << 30) // page + 1) + name
    end = struct.pack(">II", len(name), sum(name)) + magic
    path.with_name(f"{path.name}-journal").write_bytes(head + marked + end)


@pytest.mark.in_a_file
def test_a_journal_beside_a_vault_has_no_other_file_deleted(
    store: MemoryStore, key_file: Path, tmp_path: Path
) -> None:
    """Who can put a file beside a vault could choose any file of whoever opens it."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    path, link = store.path, tmp_path / "link.db"
    store.add("A note.")
    store.lock()
    beside(path, precious)
    link.symlink_to(path)
    for place in (path, link):
        for attempt in (
            lambda place=place: MemoryStore.open(place, key_file=key_file),
            lambda place=place: is_vault(place),
            lambda place=place: file_access(place),
            lambda place=place: connect(place),
        ):
            with pytest.raises(StorageError, match="-journal: names another file"):
                attempt()
    other, _ = MemoryStore.create(tmp_path / "other.db", key_file=key_file)
    with other:
        assert other.import_paths([path]).failed == 1
    assert precious.read_text() == "mine"
    path.with_name(f"{path.name}-journal").unlink()
    with MemoryStore.open(link, key_file=key_file) as opened:
        assert [one.text for one in opened.every()] == ["A note."]


@pytest.mark.in_a_file
@pytest.mark.parametrize("table", ["vault_slots", "memories", "vault_trash"])
def test_a_virtual_table_in_the_place_of_a_table_is_refused(
    store: MemoryStore, key_file: Path, table: str
) -> None:
    """Its rows are what the file's own full-text index makes of bytes that the thief wrote."""
    store.lock()
    with closing(sqlite3.connect(store.path)) as connection, connection:
        rows = connection.execute(f"select * from {table}")
        columns, held = ", ".join(one[0] for one in rows.description), rows.fetchall()
        connection.execute(f"drop table {table}")
        connection.execute(f"create virtual table {table} using fts5({columns})")
        marks = ", ".join("?" * (columns.count(",") + 1))
        connection.executemany(f"insert into {table} values ({marks})", held)
    with pytest.raises(FormatError, match=table):
        MemoryStore.open(store.path, key_file=key_file)


def test_a_cheaper_passphrase_slot_is_refused(tmp_path: Path, private_folders: Path) -> None:
    """A thief who tunes the cost down gets neither a cheaper derivation nor a hint."""
    path = tmp_path / "notes.db"
    MemoryStore.create(path, passphrase=PASSPHRASE)[0].lock()
    for memory_kib, iterations, error in (
        (8, 1, FormatError),
        (2**30, 3, FormatError),
        (19_456, 2, WrongKeyError),  # allowed, but not what the key was wrapped under
    ):
        parameters = json.dumps({"memory_kib": memory_kib, "iterations": iterations, "lanes": 4})
        change(path, "update vault_slots set parameters = ? where kind = 'passphrase'", parameters)
        with pytest.raises(error):
            MemoryStore.open(path, passphrase=PASSPHRASE)
    assert Argon2Parameters().memory_kib == 65_536


@pytest.mark.sampled(0)
def test_many_costly_passphrase_slots_are_refused_before_one_is_tried(
    tmp_path: Path, private_folders: Path
) -> None:
    """Each may cost as much as it does: sixty of them would keep everybody waiting for an hour."""
    path, key_file = tmp_path / "notes.db", tmp_path / "keys" / "notes.key"
    store, _ = MemoryStore.create(path, key_file=key_file, passphrase=PASSPHRASE)
    for number in range(8):
        store.keys.add(passphrase=f"{PASSPHRASE} {number}")
    store.lock()
    parameters = json.dumps({"memory_kib": 262_144, "iterations": 64, "lanes": 4})
    change(path, "update vault_slots set parameters = ? where kind = 'passphrase'", parameters)
    with pytest.raises(FormatError, match="together ask for an unreasonable cost"):
        MemoryStore.open(path, passphrase=PASSPHRASE)
    MemoryStore.open(path, key_file=key_file).lock()


def test_a_locked_store_answers_nothing(store: MemoryStore) -> None:
    memory = store.add("Locked away.")
    store.lock()
    for ask in (
        lambda: store.get(memory.id),
        lambda: store.add("More."),
        lambda: store.list(),
        lambda: store.search("locked"),
        lambda: store.topics(),
        lambda: store.verify(),
    ):
        with pytest.raises(LockedError):
            ask()
    assert store.locked


@pytest.mark.in_a_file
def test_a_strict_vault_shows_no_types_times_or_topics(make_store: Make) -> None:
    store = make_store("strict.db", profile="strict")
    memory = store.add("Quiet.", type="preference", topics=["secret-plan"])
    assert store.get(memory.id).type == "preference"
    assert [m.id for m in store.list(topic="secret-plan", type="preference")] == [memory.id]
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("select type, created, updated from memories").fetchall() == [
            (None, None, None)
        ]
        assert connection.execute("select count(*) from memory_topics").fetchone() == (0,)
    connection.close()


@pytest.mark.in_a_file
def test_a_key_file_beside_the_database_or_open_to_others_is_refused(
    tmp_path: Path, store: MemoryStore, key_file: Path
) -> None:
    beside = store.path.parent / "notes.key"
    beside.write_bytes(key_file.read_bytes())
    with pytest.raises(BadInputError, match="lies in the folder"):
        MemoryStore.open(store.path, key_file=beside)
    key_file.chmod(0o644)
    with pytest.raises(BadInputError, match="chmod 600"):
        MemoryStore.open(store.path, key_file=key_file)
    key_file.chmod(0o600)
    key_file.write_text("not a key\n")
    with pytest.raises(BadInputError, match=re.escape(str(key_file))):
        MemoryStore.open(store.path, key_file=key_file)


def test_locking_while_others_search_ends_in_answers_and_lock_errors(make_store: Make) -> None:
    """Closing a connection or wiping an array in use crashed the process."""
    for round_number in range(4):
        store = make_store(f"round-{round_number}.db")
        for n in range(40):
            store.add(f"Entry {n} about kingfishers.", topics=["birds"])
        surprises: list[BaseException] = []
        refused = threading.Barrier(5)

        def search(
            store: MemoryStore = store,
            surprises: list[BaseException] = surprises,
            refused: threading.Barrier = refused,
        ) -> None:
            while True:
                try:
                    assert store.search("kingfishers", limit=20).rows
                    assert store.list(limit=5)
                except LockedError:
                    break
                except BaseException as error:  # noqa: BLE001 - the test reads it below
                    surprises.append(error)
                    break
            refused.wait(120)

        threads = [threading.Thread(target=search) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.15)
        store.lock()
        refused.wait(120)
        for thread in threads:
            thread.join()
        assert surprises == []
        assert store.locked


@pytest.mark.in_a_file
def test_a_damaged_vault_is_distinguished_from_a_file_that_is_none(
    store: MemoryStore, key_file: Path
) -> None:
    store.lock()
    whole = store.path.read_bytes()
    store.path.write_bytes(whole[:100] + bytes(100) + whole[200:])  # the head of its schema
    with pytest.raises(StorageError, match=r"notes.db: the file is damaged"):
        MemoryStore.open(store.path, key_file=key_file)
    with pytest.raises(StorageError):
        is_vault(store.path)
    store.path.write_bytes(whole)
    assert is_vault(store.path)


@pytest.mark.in_a_file
def test_a_page_that_cannot_be_read_is_named_by_verify_and_a_file_cut_short_asks_for_a_backup(
    store: MemoryStore, key_file: Path
) -> None:
    store.lock()
    whole = store.path.read_bytes()
    with closing(sqlite3.connect(store.path)) as connection:
        (size,) = connection.execute("pragma page_size").fetchone()
        query = "select rootpage from sqlite_master where name = 'idx_memories_type'"
        (page,) = connection.execute(query).fetchone()
    store.path.write_bytes(whole[: size * (page - 1)] + bytes(size) + whole[size * page :])
    with MemoryStore.open(store.path, key_file=key_file) as opened:
        assert opened.verify()["failures"][0].startswith("database: SQLite says: ")
    store.path.write_bytes(whole[: size * 4])
    with pytest.raises(StorageError, match=r"put back a backup$"):
        MemoryStore.open(store.path, key_file=key_file)
