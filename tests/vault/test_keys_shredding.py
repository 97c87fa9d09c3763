"""A deleted collection's key is destroyed: what remains of its rows opens for no one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memory_store.cli.backup import copy_vault
from memory_store.errors import BadInputError, NotFoundError, TamperedError
from memory_store.sqlite import connect
from memory_store.store import MemoryStore

Make = Callable[..., MemoryStore]
TABLES = ("memories", "memory_bodies", "vault_segments", "vault_manifests", "vault_sources")


@pytest.fixture
def store(make_store: Make, tmp_path: Path) -> MemoryStore:
    store = make_store()
    store.add("The otter stays.", topics=["animals"])
    for number in range(5):
        store.add(f"Affair {number} of the otter.", topics=["secrets"], collection="affairs")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.md").write_text("An affair with an otter, from a file.")
    store.import_paths([tmp_path / "folder"], collection="affairs")
    return store


def rows(path: Path, collection: str) -> int:
    connection = connect(path)
    counts = [
        connection.execute(
            f"select count(*) from {table} where collection = ?", (collection,)
        ).fetchone()[0]
        for table in TABLES
    ]
    connection.close()
    return sum(counts)


@pytest.mark.in_a_file
def test_nothing_of_it_is_left_and_the_rest_is_whole(store: MemoryStore) -> None:
    collection = next(i for i, n in store.collections.names().items() if n == "affairs")
    connection = connect(store.path)
    wrapped = [r[0] for r in connection.execute("select wrapped from vault_collection_keys")]
    sealed = [r[0] for r in connection.execute("select body from memory_bodies")]
    assert store.collections.delete("affairs") == "affairs"
    kept = [r[0] for r in connection.execute("select wrapped from vault_collection_keys")]
    kept += [r[0] for r in connection.execute("select body from memory_bodies")]
    topics = connection.execute("select count(*) from memory_topics").fetchone()[0]
    connection.close()
    assert rows(store.path, collection) == 0
    assert topics == 1
    files = [file.read_bytes() for file in store.path.parent.glob(f"{store.path.name}*")]
    gone = [one for one in (*wrapped, *sealed) if one not in kept]
    assert len(gone) == 7
    assert not any(one in data for one in gone for data in files)
    assert [one.name for one in store.collections.list()] == ["personal"]
    assert [row.collection for row in store.search("otter").rows] == ["personal"]
    assert store.verify()["failures"] == []
    with pytest.raises(NotFoundError):
        store.collections.delete("affairs")


def test_who_has_the_vault_open_sees_it_vanish(
    store: MemoryStore, key_file: Path, tiny_model: Path
) -> None:
    with MemoryStore.open(store.path, key_file=key_file, embedder=str(tiny_model)) as other:
        assert len(other.search("otter").rows) == 7
        memory = other.list(collection="affairs")[0]
        store.collections.delete("affairs")
        with pytest.raises(NotFoundError):
            other.edit(memory.id, text="Still there?")
        assert len(other.search("otter").rows) == 1
        assert other.verify()["failures"] == []
        other.add("A new beginning with the otter.", collection="affairs")
    assert len(store.search("otter").rows) == 2


@pytest.mark.in_a_file
def test_rows_whose_key_is_gone_open_for_no_one_and_are_swept_away_later(
    store: MemoryStore, key_file: Path
) -> None:
    """The power fails between the key and the rows."""
    copied = store.path.with_name("before.db")
    copy_vault(store.path, copied)
    collection = next(i for i, n in store.collections.names().items() if n == "affairs")
    store.collections.delete("affairs")
    connection = connect(store.path)
    connection.execute("attach ? as before", (str(copied),))
    for table in (*TABLES, "memory_topics", "memory_sources"):
        connection.execute(f"insert or ignore into {table} select * from before.{table}")
    connection.close()
    assert rows(store.path, collection) > 0
    with MemoryStore.open(store.path, key_file=key_file) as again:
        assert len(again.list()) == 1
        assert again.verify()["failures"] == []
        again.keys.rotate()
    assert rows(store.path, collection) == 0
    with MemoryStore.open(copied, key_file=key_file) as backup:
        assert len(backup.list()) == 7  # what a backup holds, it holds


@pytest.mark.in_a_file
def test_its_key_put_back_from_a_copy_is_refused(store: MemoryStore, key_file: Path) -> None:
    connection = connect(store.path)
    kept = connection.execute("select * from vault_collection_keys order by rowid").fetchall()
    store.collections.delete("affairs")
    connection.execute("insert into vault_collection_keys values (?, ?, ?, ?)", kept[-1])
    connection.close()
    with pytest.raises(TamperedError, match="put back"):
        MemoryStore.open(store.path, key_file=key_file)


def test_the_personal_collection_stays(store: MemoryStore) -> None:
    with pytest.raises(BadInputError, match="personal"):
        store.collections.delete("personal")
    assert len(store.list()) == 7


def test_with_whom_it_alone_was_shared_opens_nothing(store: MemoryStore, tmp_path: Path) -> None:
    key_file = tmp_path / "keys" / "alice.key"
    data, _, _ = MemoryStore.introduce(store.path, "Alice", key_file=key_file)
    store.keys.share("affairs", data)
    store.collections.delete("affairs")
    assert store.keys.holders() == []
    with pytest.raises(Exception, match="opens no key slot"):
        MemoryStore.open(store.path, key_file=key_file)
    assert store.verify()["failures"] == []
