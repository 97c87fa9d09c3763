"""What happens to an actor who changes the file: it is noticed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from thief import change

from memory_store.errors import MemoryStoreError, TamperedError
from memory_store.sqlite import sqlite3  # two libraries on one file undo each other's locks
from memory_store.store import MemoryStore

pytestmark = pytest.mark.in_a_file  # its rows are changed by another program

Make = Callable[..., MemoryStore]


SEALED_COLUMNS = (
    ("memories", "head"),
    ("memory_bodies", "body"),
    ("vault_settings", "sealed"),
    ("vault_collection_keys", "wrapped"),
    ("vault_slots", "wrapped"),
    ("vault_slots", "commitment"),
    ("vault_slots", "salt"),
    ("vault_manifests", "sealed"),
    ("vault_segments", "main"),
    ("vault_segments", "vectors"),
    ("vault_segments", "pairs"),
    ("vault_segment_parts", "sealed"),
)


@pytest.mark.parametrize(("table", "column"), SEALED_COLUMNS)
def test_a_changed_byte_in_any_sealed_column_is_noticed(
    store: MemoryStore, key_file: Path, table: str, column: str
) -> None:
    store.add("The ledger is reconciled on Fridays.", title="Ledger", topics=["work"])
    store.lock()
    with sqlite3.connect(store.path) as connection:
        for rowid, blob in connection.execute(
            f"select rowid, {column} from {table} where {column} is not null"
        ).fetchall():
            changed = bytearray(blob)
            changed[len(changed) // 2] ^= 0x10
            connection.execute(
                f"update {table} set {column} = ? where rowid = ?", (bytes(changed), rowid)
            )
    connection.close()
    failures = None
    try:
        opened = MemoryStore.open(store.path, key_file=key_file)
        failures = opened.verify()["failures"]
    except MemoryStoreError:
        return
    assert failures
    opened.lock()


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("delete from memories where rowid = 1", "account"),
        ("update memories set type = 'preference' where rowid = 1", "type"),
        ("update memories set created = '2001-01-01T00:00:00Z' where rowid = 1", "created"),
        ("update memories set version = version + 1 where rowid = 1", "changed, cut or moved"),
        ("delete from memory_bodies", "body is missing"),
        ("delete from memory_topics", "topic hashes"),
        ("delete from vault_segments", "account"),
        ("delete from vault_manifests", "account"),
        (
            "update memories set content = (select content from memories where rowid = 2) "
            "where rowid = 1",
            "another memory's body",
        ),
    ],
)
def test_rows_taken_away_or_swapped_are_noticed(
    store: MemoryStore, key_file: Path, statement: str, complaint: str
) -> None:
    store.add("First memory.", topics=["one"])
    store.add("Second memory.", topics=["two"])
    store.lock()
    assert change(store.path, statement) >= 1
    try:
        with MemoryStore.open(store.path, key_file=key_file) as opened:
            failures = opened.verify()["failures"]
    except TamperedError as refusal:  # noticed before anything was opened
        failures = [str(refusal)]
    assert any(complaint in failure for failure in failures), failures


def test_an_old_version_of_a_row_put_back_is_noticed(store: MemoryStore, key_file: Path) -> None:
    memory = store.add("The code is 1111.")
    columns = "id, collection, type, created, updated, version, content, head"
    with sqlite3.connect(store.path) as connection:
        old = connection.execute(f"select {columns} from memories").fetchone()
        old_body = connection.execute("select id, collection, tag, body from memory_bodies")
        body = old_body.fetchone()
    connection.close()
    store.edit(memory.id, text="The code is 2222.")
    store.lock()
    with sqlite3.connect(store.path) as connection:
        connection.execute("delete from memories")
        connection.execute(f"insert into memories ({columns}) values (?,?,?,?,?,?,?,?)", old)
        connection.execute("insert into memory_bodies values (?,?,?,?)", body)
    connection.close()
    with MemoryStore.open(store.path, key_file=key_file) as opened:
        assert any("account" in failure for failure in opened.verify()["failures"])


def test_a_deleted_memory_leaves_no_sealed_copy_behind(store: MemoryStore) -> None:
    kept = store.add("Stays.")
    gone = store.add("Goes.", topics=["away"])
    with sqlite3.connect(store.path) as connection:
        (head,) = connection.execute(
            "select head from memories where id = ?", (gone.id,)
        ).fetchone()
    connection.close()
    store.delete(gone.id)
    assert [m.id for m in store.list()] == [kept.id]
    assert store.verify()["failures"] == []
    files = [store.path, store.path.with_name(store.path.name + "-wal")]
    for file in files:
        if file.exists():
            assert bytes(head)[18:] not in file.read_bytes()
            assert gone.id.encode() not in file.read_bytes() or file == store.path
    store.trash.empty()
    with sqlite3.connect(store.path) as connection:
        documents = connection.execute("select sum(documents) from vault_segments").fetchone()[0]
    connection.close()
    assert documents == 1


def test_the_profile_cannot_be_changed_by_a_thief(make_store: Make, key_file: Path) -> None:
    store = make_store("strict.db", profile="strict")
    store.lock()
    with sqlite3.connect(store.path) as connection:
        clear = connection.execute("select name, value from vault_settings").fetchall()
    connection.close()
    assert "strict" not in json.dumps(clear)
    change(store.path, "update vault_settings set value = '1' where name = 'settings'")
    with pytest.raises(TamperedError):
        MemoryStore.open(store.path, key_file=key_file)


def test_an_older_copy_put_back_is_said_once_an_opening_until_it_is_accepted(
    store: MemoryStore, key_file: Path
) -> None:
    store.add("Before.")
    store.lock()
    older = store.path.read_bytes()
    with MemoryStore.open(store.path, key_file=key_file) as opened:
        opened.add("After.")
        assert not any("older than" in line for line in opened.search("before").degraded)
    store.path.write_bytes(older)
    for suffix in ("-wal", "-shm"):
        store.path.with_name(store.path.name + suffix).unlink(missing_ok=True)
    with MemoryStore.open(store.path, key_file=key_file) as opened:
        assert any("older than the one last used" in d for d in opened.search("before").degraded)
        assert not any("older than" in line for line in opened.search("before").degraded)
    with MemoryStore.open(store.path, key_file=key_file) as opened:
        for number in range(5):
            opened.add(f"Written over what is missing, {number}.")
        found = opened.verify()
        assert found["failures"] == []
        assert "older than the one last used" in found["older"]
    with MemoryStore.open(store.path, key_file=key_file) as opened:
        assert "older than the one last used" in (opened.first_warning() or "")
        opened.accept_older()
        assert opened.older() is None
    with MemoryStore.open(store.path, key_file=key_file) as opened:
        assert opened.first_warning() is None
        assert opened.verify()["older"] is None


def test_a_change_log_that_names_another_memory_is_noticed(
    store: MemoryStore, key_file: Path
) -> None:
    edited, hidden = store.add("The alder is felled."), store.add("The birch stays.")
    store.edit(edited.id, text="The alder stays too.")
    store.lock()
    assert change(store.path, "update vault_changes set memory = ?", hidden.id) == 1
    with MemoryStore.open(store.path, key_file=key_file) as opened:
        with pytest.raises(TamperedError, match="account"):
            opened.search("birch")
        assert any("index" in failure for failure in opened.verify()["failures"])


def test_a_segment_whose_place_in_time_was_changed_is_noticed(
    store: MemoryStore, key_file: Path
) -> None:
    memory = store.add("First words.")
    store.edit(memory.id, text="Second words.")
    store.lock()
    assert change(store.path, "update vault_segments set sequence = sequence + 1") == 2
    with (
        MemoryStore.open(store.path, key_file=key_file) as opened,
        pytest.raises(TamperedError, match="vault_segments"),
    ):
        opened.search("words")


def test_a_part_of_the_index_that_stands_there_twice_is_noticed(
    store: MemoryStore, key_file: Path
) -> None:
    """In a table without a key of its own: every memory would be exported twice."""
    store.add("First words.")
    store.lock()
    change(store.path, "create table unkeyed as select * from vault_segments")
    change(store.path, "drop table vault_segments")
    doubled = "select * from unkeyed union all select * from unkeyed"
    change(store.path, f"create table vault_segments as {doubled}")
    with (
        pytest.raises(TamperedError, match="twice"),
        MemoryStore.open(store.path, key_file=key_file) as opened,
    ):
        list(opened.every())


def test_a_collection_whose_key_was_taken_away_is_missed(
    store: MemoryStore, key_file: Path
) -> None:
    shed = store.collections.create("shed").id
    store.add("The scythe hangs left.", collection="shed")
    store.lock()
    assert change(store.path, "delete from vault_collection_keys where collection = ?", shed) == 1
    with pytest.raises(TamperedError, match="the owner's key is missing"):
        MemoryStore.open(store.path, key_file=key_file)


def test_older_settings_put_back_are_noticed(store: MemoryStore, key_file: Path) -> None:
    query = "select value, sealed from vault_settings where name = 'settings'"
    with sqlite3.connect(store.path) as connection:
        older = connection.execute(query).fetchone()
    connection.close()
    store.collections.create("attic")
    store.lock()
    change(
        store.path,
        "update vault_settings set value = ?, sealed = ? where name = 'settings'",
        *older,
    )
    with pytest.raises(TamperedError, match="an older version was put back"):
        MemoryStore.open(store.path, key_file=key_file)


def test_a_swapped_content_tag_never_gives_a_new_memory_another_s_text(
    store: MemoryStore, key_file: Path
) -> None:
    store.add("alpha one")
    store.add("bravo two")
    store.lock()
    with sqlite3.connect(store.path) as connection:
        (one, first), (two, second) = connection.execute("select id, tag from memory_bodies")
        connection.execute("update memory_bodies set tag = x'00' where id = ?", (one,))
        connection.execute("update memory_bodies set tag = ? where id = ?", (first, two))
        connection.execute("update memory_bodies set tag = ? where id = ?", (second, one))
    connection.close()
    with MemoryStore.open(store.path, key_file=key_file) as opened:
        assert opened.get(opened.add("alpha one").id).text == "alpha one"


def test_a_text_that_is_written_again_is_read_whatever_became_of_the_one_before(
    store: MemoryStore, key_file: Path
) -> None:
    """Memories that say the same share a body, but no damaged one."""
    damaged = store.add("A page of the diary.")
    change(store.path, "update memory_bodies set body = zeroblob(length(body))")
    added = store.add("A page of the diary.", title="Once more")
    assert store.get(added.id).text == "A page of the diary."
    store.edit(added.id, title="Twice")
    assert store.get(added.id).text == "A page of the diary."
    (failure,) = store.verify(full=True)["failures"]
    assert damaged.id in failure
    store.delete(damaged.id)
    assert store.verify(full=True)["failures"] == []


def test_clear_columns_that_were_emptied_are_noticed(store: MemoryStore, key_file: Path) -> None:
    memory = store.add("Quiet.", type="preference")
    store.lock()
    change(store.path, "update memories set type = null")
    with (
        MemoryStore.open(store.path, key_file=key_file) as opened,
        pytest.raises(TamperedError, match=r"memories\.type"),
    ):
        opened.get(memory.id)


def test_what_was_pruned_leaves_no_entry_in_the_index_once_the_trash_is_empty(
    store: MemoryStore, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for name in ("stays", "goes"):
        (notes / f"{name}.md").write_text(f"This one {name}.")
    store.import_paths([notes])
    gone = next(memory for memory in store.list() if memory.ref == "goes.md")
    with sqlite3.connect(store.path) as connection:
        (head,) = connection.execute(
            "select head from memories where id = ?", (gone.id,)
        ).fetchone()
    connection.close()
    (notes / "goes.md").unlink()
    assert store.import_paths([notes], prune=True).pruned == 1
    assert store.trash.empty() == 1
    with sqlite3.connect(store.path) as connection:
        (documents,) = connection.execute("select sum(documents) from vault_segments").fetchone()
    connection.close()
    assert documents == 1
    for file in (store.path, store.path.with_name(store.path.name + "-wal")):
        assert not file.exists() or bytes(head)[18:] not in file.read_bytes()
