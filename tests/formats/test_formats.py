"""Every format ever released still opens, with all that was in it, and can be worked with."""

from __future__ import annotations

import json
import lzma
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from make_format import (
    EXPANSION,
    FOLDER,
    HERE,
    NOTES,
    PASSPHRASE,
    PROFILES,
    described,
    key_file,
    write_notes,
)
from typing_commands import run

from memory_store.actions.export import export_ndjson_folder
from memory_store.cli.backup import copy_vault
from memory_store.errors import BadInputError, FormatError, NotFoundError
from memory_store.paths import state_folder
from memory_store.sqlite import connect
from memory_store.store import MemoryStore
from memory_store.vault.expansions import stored
from memory_store.vault.storage import Storage
from memory_store.vault.storage.schema import (
    FORMAT_VERSION,
    LATER_TABLES,
    MEMORY_TABLES,
    VAULT_TABLES,
    is_vault,
)

RELEASED = sorted(file.stem for file in HERE.glob("format-*.json"))
SHARED = sorted(file.stem for file in HERE.glob("format-*-shared.json"))
Open = Callable[..., MemoryStore]


of_shared = pytest.mark.parametrize(
    "kept",
    [(name, profile) for name in SHARED for profile in PROFILES],
    ids="-".join,
    indirect=True,
)
"""Only those in which a folder was imported and a collection shared."""


@pytest.fixture(params=[(name, profile) for name in RELEASED for profile in PROFILES], ids="-".join)
def kept(request: pytest.FixtureRequest, tmp_path: Path, private_folders: Path) -> Path:
    """A vault as an earlier version left it."""
    name, profile = request.param
    return unpacked(f"{name}-{profile}.db", tmp_path / "vaults")


def unpacked(name: str, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(lzma.decompress((HERE / f"{name}.xz").read_bytes()))
    return folder / name


@pytest.fixture
def known(kept: Path) -> dict[str, Any]:
    """What it must hold."""
    name, _, profile = kept.stem.rpartition("-")
    held: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text("utf-8"))[profile]
    for memory in held["memories"]:
        memory.setdefault("superseded_by", None)  # said of a memory since, and kept nowhere
        memory.setdefault("original", None)
    return held


@pytest.fixture
def others(kept: Path) -> dict[str, Any]:
    """Who opens it besides the owner, and what of it."""
    name, _, profile = kept.stem.rpartition("-")
    reported: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text("utf-8"))["others"]
    opened: dict[str, Any] = reported[profile]
    return opened


def import_device_key(kept: Path) -> None:
    """Make this machine one that has the device key, where the passphrase needs one."""
    name, _, profile = kept.stem.rpartition("-")
    others = json.loads((HERE / f"{name}.json").read_text("utf-8")).get("others", {})
    code = others.get(profile, {}).get("device_key")
    if code:
        MemoryStore.import_device_key(kept, code)


@pytest.fixture
def notes() -> Iterator[Path]:
    """The folder that was imported, at the very path, for one test of this machine at a time."""
    fcntl = pytest.importorskip("fcntl", reason="no locks between processes here")
    if FOLDER.parent.parent.resolve() != FOLDER.parent.parent:
        pytest.skip(f"{FOLDER.parent.parent} is a link here: what is below it has another path")
    with FOLDER.parent.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        write_notes()
        yield FOLDER
        shutil.rmtree(FOLDER.parent)


@pytest.fixture
def at_home(others: dict[str, Any], private_folders: Path) -> bool:
    """Whether this is the machine that the vault was made on: formats before 3 knew none."""
    for place, content in others.get("machine", {}).items():
        file = state_folder() / place
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.write_text(content)
    return "machine" in others


@pytest.fixture
def opened(kept: Path, tmp_path: Path, tiny_model: Path) -> Iterator[Open]:
    """Opens it, or what came of it, with the published key."""
    stores: list[MemoryStore] = []

    def open_it(path: Path = kept, **key: Any) -> MemoryStore:
        secret = key or {"key_file": key_file(tmp_path)}
        stores.append(MemoryStore.open(path, embedder=str(tiny_model), **secret))
        return stores[-1]

    yield open_it
    for store in stores:
        store.lock()


def test_every_format_up_to_todays_is_kept_in_both_profiles(tmp_path: Path) -> None:
    kept = set()
    for file in HERE.glob("format-*.db.xz"):
        with closing(connect(unpacked(file.stem, tmp_path), read_only=True)) as connection:
            (version,) = connection.execute("pragma user_version").fetchone()
        kept.add((version, Path(file.stem).stem.rpartition("-")[2]))
    assert kept == {(n, profile) for n in range(1, FORMAT_VERSION + 1) for profile in PROFILES}


def test_no_table_of_todays_format_is_empty_in_all_that_is_kept(tmp_path: Path) -> None:
    rows: set[str] = set()
    for file in HERE.glob(f"format-{FORMAT_VERSION}*-default.db.xz"):
        with closing(connect(unpacked(file.stem, tmp_path), read_only=True)) as connection:
            there = connection.execute("select name from sqlite_master where type = 'table'")
            for (table,) in there.fetchall():
                if connection.execute(f"select 1 from {table} limit 1").fetchone():
                    rows.add(table)
    assert {*VAULT_TABLES, *LATER_TABLES, *MEMORY_TABLES} <= rows


@pytest.mark.sampled(4)
def test_it_opens_with_every_secret_and_holds_what_it_held(
    opened: Open, kept: Path, known: dict[str, Any]
) -> None:
    import_device_key(kept)
    for secret in ({}, {"passphrase": PASSPHRASE}):
        with opened(**secret) as store:
            assert described(store) == known
            assert store.verify()["failures"] == []


def test_it_is_searched_by_words_topics_and_meaning(opened: Open) -> None:
    store = opened()
    assert store.search("boathouse key", mode="keyword").rows[0].title == "Spare key"
    assert store.search('"behind the second oar"', mode="keyword").rows[0].title == "Spare key"
    assert [row.title for row in store.search("", topic="Häuser").rows] == ["Dachkammer"]
    assert store.reindex() >= 3  # those that were added without a model; all, were it another
    assert store.search("Größe der Dachkammer", mode="vector").rows[0].title == "Dachkammer"


@pytest.mark.sampled(4)
def test_it_is_written_to_indexed_again_and_verified(opened: Open, known: dict[str, Any]) -> None:
    before = {memory["id"]: memory for memory in known["memories"]}
    *_, edited, deleted = before
    with opened() as store:
        added = store.add("Written by a later version.", topics=["later"])
        store.edit(edited, text="Edited by a later version.")
        store.delete(deleted)
        store.reindex()
    with opened() as store:
        assert store.verify()["failures"] == []
        after = {memory.id: memory.as_dict() for memory in store.list(limit=1_000)}
    assert after.pop(added.id)["text"] == "Written by a later version."
    assert after.pop(edited)["text"] == "Edited by a later version."
    del before[edited], before[deleted]
    assert after == before


def test_an_import_knows_what_an_earlier_version_imported(
    opened: Open, known: dict[str, Any], tmp_path: Path
) -> None:
    with opened() as store:
        export_ndjson_folder(store.list(limit=1_000), tmp_path / "export")
        report = store.import_paths([tmp_path / "export"])
        assert described(store)["memories"] == known["memories"]
    assert (report.imported, report.failed) == (0, 0)


@of_shared
def test_a_folder_that_an_earlier_version_imported_is_known_by_its_files(
    opened: Open, known: dict[str, Any], notes: Path, at_home: bool
) -> None:
    with opened() as store:
        if not at_home:
            with pytest.raises(BadInputError, match="notes is not read again until you name it"):
                store.import_paths()  # a member of the collection might have named it
        for report in (
            store.import_paths([notes], collection="mill", topics=["imported"]),
            store.import_paths(),  # every source that the owner named here, which it is by now
        ):
            assert (report.unchanged, report.imported, report.replaced) == (len(NOTES), 0, 0)
            assert report.failures == ()
        assert described(store) == known


@of_shared
def test_a_file_that_was_changed_or_removed_since_is_changed_or_forgotten(
    opened: Open, known: dict[str, Any], notes: Path, at_home: bool
) -> None:
    ids = {one["ref"]: one["id"] for one in known["memories"] if one["ref"] in NOTES}
    assert set(ids) == set(NOTES)
    (notes / "weir.md").write_text("The weir was opened in May.\n", "utf-8")
    (notes / "log/wheel.txt").unlink()
    with opened() as store:
        report = store.import_paths([notes], collection="mill", topics=["imported"], prune=True)
        assert (report.replaced, report.pruned, report.imported) == (1, 1, 0)
        assert store.get(ids["weir.md"]).text == "The weir was opened in May."
        with pytest.raises(NotFoundError):
            store.get(ids["log/wheel.txt"])
        assert store.verify()["failures"] == []


@of_shared
def test_its_recovery_code_opens_it(
    opened: Open, known: dict[str, Any], others: dict[str, Any]
) -> None:
    with opened(recovery_code=others["recovery_code"]) as store:
        assert store.is_owner
        assert described(store) == known


@of_shared
def test_whom_a_collection_was_shared_with_reads_that_one_alone(
    opened: Open, known: dict[str, Any], others: dict[str, Any], tmp_path: Path, at_home: bool
) -> None:
    member = key_file(tmp_path, "formats.member")
    if not at_home:  # formats before 3
        with pytest.raises(FormatError, match="owner has to open it once with this version"):
            opened(key_file=member)
        opened().lock()
    with opened(key_file=member) as store:
        hers = {memory.id: memory.as_dict() for memory in store.list(limit=1_000)}
        assert (store.is_owner, store.keys.identity().collections) == (False, ("mill",))
        assert [row.title for row in store.search("weir March").rows][:1] == ["The weir"]
        assert store.search("boathouse", mode="keyword").rows == ()
        assert store.verify()["failures"] == []
    assert sorted(hers) == others["shared"]
    assert hers == {one["id"]: one for one in known["memories"] if one["id"] in hers}
    assert 0 < len(hers) < len(known["memories"])


@of_shared
def test_the_owner_still_shares_and_revokes(opened: Open, tmp_path: Path) -> None:
    hers = key_file(tmp_path, "formats.member")
    with opened() as store:
        assert [(one.name, one.collections) for one in store.keys.holders()] == [
            ("Grace", ("mill",))
        ]
        store.keys.share("personal", "Grace")
        store.keys.revoke("Grace", "mill")
        assert store.verify()["failures"] == []
    with opened(key_file=hers) as store:
        assert store.keys.identity().collections == ("personal",)
        assert store.search("boathouse", mode="keyword").rows[0].title == "Spare key"
        assert store.search("weir", mode="keyword").rows == ()


@of_shared
def test_what_a_language_model_answered_is_still_there(opened: Open, kept: Path) -> None:
    word = EXPANSION[1].split()[1]
    with opened() as store, closing(Storage.open(kept, read_only=True)) as connection:
        opens = store._opened.vault.expansions.open
        found = [opens(tag, sealed).decode() for _, tag, sealed in stored(connection)]
        assert len(found) == (store.profile == "default")  # a strict vault keeps none in its file
        assert all(word in one for one in found)


def test_a_copy_of_it_opens_too(opened: Open, kept: Path, known: dict[str, Any]) -> None:
    copy_vault(kept, kept.with_name("copy.db"))
    assert described(opened(kept.with_name("copy.db"))) == known


def test_a_newer_format_is_refused_by_its_number_and_left_alone(
    kept: Path, opened: Open, tmp_path: Path
) -> None:
    connection = connect(kept)
    connection.execute("pragma journal_mode = delete")
    connection.execute(f"pragma user_version = {FORMAT_VERSION + 1}")
    connection.close()
    before = kept.read_bytes()
    expected = f"{kept}: a vault of format {FORMAT_VERSION + 1}; this version reads format"
    with pytest.raises(FormatError) as refusal:
        opened()
    assert str(refusal.value).startswith(expected)
    assert is_vault(kept)  # so that nothing makes another one over it
    result = run("list", str(kept), "--key-file", str(key_file(tmp_path)))
    assert result.exit_code == 1
    assert expected in result.stderr
    assert kept.read_bytes() == before


@pytest.mark.sampled(8)
@pytest.mark.parametrize("profile", PROFILES)
def test_what_was_deleted_in_it_is_still_put_back(
    profile: str, opened: Open, tmp_path: Path
) -> None:
    with opened(unpacked(f"format-3-trash-{profile}.db", tmp_path / "vaults")) as store:
        (gone,) = [one for one in store.trash.list() if one.change == "deleted"]
        assert store.trash.restore(gone.id)[0].text == "Regretted at once."
        assert store.verify()["failures"] == []
