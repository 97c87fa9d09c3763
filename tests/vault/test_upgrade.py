"""A vault of an earlier format becomes one of today's when its owner first opens it for writing."""

from __future__ import annotations

import lzma
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from memory_store.crypto.keys import decode_key_file
from memory_store.errors import ReadOnlyError, TamperedError
from memory_store.sqlite import FileAccess, connect
from memory_store.store import MemoryStore
from memory_store.vault.keyring import WholeKeyring
from memory_store.vault.opened_slots import open_root
from memory_store.vault.rows import Origin, insert_memories, open_memories
from memory_store.vault.settings import read_settings, read_vault_id
from memory_store.vault.slots import KEY_FILE, Secret
from memory_store.vault.storage import Storage
from memory_store.vault.storage.memories import MemoryRow
from memory_store.vault.storage.schema import FORMAT_VERSION

FORMATS = Path(__file__).parents[1] / "formats"


@pytest.fixture(params=["format-1-default", "format-1-strict", "format-2-default"])
def old(request: pytest.FixtureRequest, tmp_path: Path, private_folders: Path) -> Path:
    path = tmp_path / "vaults" / "old.db"
    path.parent.mkdir()
    path.write_bytes(lzma.decompress((FORMATS / f"{request.param}.db.xz").read_bytes()))
    return path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    kept = tmp_path / "formats.key"
    kept.write_bytes((FORMATS / "formats.key").read_bytes())
    kept.chmod(0o600)
    return kept


def header(path: Path) -> int:
    with closing(connect(path, read_only=True)) as connection:
        (version,) = connection.execute("pragma user_version").fetchone()
    return int(version)


def test_opening_it_upgrades_it_and_loses_nothing(old: Path, key: Path) -> None:
    assert header(old) < FORMAT_VERSION
    with MemoryStore.open(old, key_file=key) as store:
        held = [memory.as_dict() for memory in store.list(limit=1_000)]
        assert store.stats()["format"] == header(old) == FORMAT_VERSION
    with MemoryStore.open(old, key_file=key) as store:
        assert [memory.as_dict() for memory in store.list(limit=1_000)] == held
        assert store.verify()["failures"] == []


def test_an_earlier_number_in_the_header_brings_no_earlier_rules_back(old: Path, key: Path) -> None:
    with MemoryStore.open(old, key_file=key):
        pass
    with closing(connect(old)) as connection:
        connection.execute("pragma user_version = 2")
    with MemoryStore.open(old, key_file=key) as store:
        assert store._opened.vault.settings.format == FORMAT_VERSION


def exchanged(path: Path, key: Path) -> str:
    """Put another row of its id and version in a memory's place, as one that was kept would be.

    The earlier rules let that happen whenever an id was made again.
    """
    with closing(Storage.open(path)) as storage:
        vault = read_vault_id(storage)
        secret = Secret(KEY_FILE, key=decode_key_file(key.read_bytes(), key.name))
        keyring = WholeKeyring.of_slot(storage, vault, open_root(storage, vault, [secret]))
        settings = read_settings(storage, keyring)
        keyring.strict = settings.profile == "strict"
        keys = keyring.of(settings.personal)
        memory = storage.memories.ids([settings.personal])[0]
        (present,) = open_memories(storage, keyring, [memory], Believing())
        storage.memories.remove([memory])
        other = replace(present, text="Another text, which was kept.")
        written = [(other, Origin())]
        insert_memories(storage, keys, written, strict=keyring.strict, hash_topics=False)
        keyring.wipe()
    return memory


class Believing:
    """Knows nothing of rows."""

    def check(self, row: MemoryRow, tag: bytes | None) -> None:
        """Nothing."""

    def check_absent(self, memory: str, elsewhere: str = "") -> None:
        """Nothing."""

    def earliest(self, collection: str) -> int:
        """The first."""
        return 0


def test_a_row_that_was_exchanged_before_is_refused_from_the_upgrade_on(
    old: Path, key: Path
) -> None:
    memory = exchanged(old, key)
    with MemoryStore.open(old, key_file=key) as store:
        others = [one for one in store._opened.vault.snapshot().ids([0, 1, 2]) if one != memory]
        assert store.get(others[0]).text
        with pytest.raises(TamperedError, match=memory):
            store.get(memory)
        (failure,) = store.verify()["failures"]
        assert memory in failure
        store.delete(memory)
        assert store.verify()["failures"] == []


def test_rows_kept_from_before_the_upgrade_are_refused_after_it(old: Path, key: Path) -> None:
    with closing(connect(old, read_only=True)) as connection:
        (memory,) = connection.execute("select id from memories where version = 1").fetchone()
        row = connection.execute("select * from memories where id = ?", (memory,)).fetchone()
        body = connection.execute(
            "select * from memory_bodies where id = (select content from memories where id = ?)",
            (memory,),
        ).fetchone()
    with MemoryStore.open(old, key_file=key) as store:
        store.delete(memory)
        store.add("Made again.", id=memory)
        with closing(connect(old)) as connection:
            connection.execute("delete from memories where id = ?", (memory,))
            connection.execute("insert into memories values (?, ?, ?, ?, ?, ?, ?, ?)", row)
            connection.execute("insert or ignore into memory_bodies values (?, ?, ?, ?)", body)
        with pytest.raises(TamperedError, match=memory):
            store.get(memory)
        assert any(memory in failure for failure in store.verify()["failures"])


def test_an_account_of_before_is_refused_after_it(old: Path, key: Path) -> None:
    with closing(connect(old, read_only=True)) as connection:
        accounts = connection.execute("select * from vault_manifests").fetchall()
        segments = connection.execute("select id, main from vault_segments").fetchall()
    with MemoryStore.open(old, key_file=key):
        pass
    with closing(connect(old)) as connection:
        connection.executemany("insert or replace into vault_manifests values (?, ?, ?)", accounts)
        connection.executemany("update vault_segments set main = ?2 where id = ?1", segments)
    with pytest.raises(TamperedError), MemoryStore.open(old, key_file=key) as store:
        store.list()


def test_a_vault_whose_accounts_are_wrong_is_left_as_it_is_and_can_be_verified(
    old: Path, key: Path
) -> None:
    with closing(connect(old)) as connection:
        connection.execute(
            """
            update memories set version = version + 1
            where rowid = (select min(rowid) from memories)
            """
        )
    before = header(old)
    with MemoryStore.open(old, key_file=key) as store:
        assert any("account" in failure for failure in store.verify()["failures"])
        with pytest.raises((ReadOnlyError, TamperedError)):
            store.add("More.")
    assert header(old) == before


def test_a_file_that_may_not_be_written_is_read_by_the_rules_of_before(
    old: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = FileAccess("as a test wants it", "mode=ro")
    found = "memory_store.session.unlock.check_is_vault"
    monkeypatch.setattr(found, lambda path, given: access)
    with MemoryStore.open(old, key_file=key) as store:
        assert store.search("the", mode="keyword").counts
        assert store.verify()["failures"] == []
        memory = store.list()[0]
        assert store.get(memory.id) == memory
        with closing(connect(old)) as connection:
            connection.execute("delete from memories where id = ?", (memory.id,))
        with pytest.raises(TamperedError):
            store.list()
    assert header(old) < FORMAT_VERSION
