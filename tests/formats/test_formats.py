"""Every format ever released still opens, with all that was in it, and can be worked with."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from make_format import HERE, PASSPHRASE, PROFILES, described, key_file

from memory_store.cli import main
from memory_store.cli.copying import copy_vault
from memory_store.errors import FormatError
from memory_store.export import export_ndjson_folder
from memory_store.sqlite import connect
from memory_store.store import MemoryStore
from memory_store.vault.schema import FORMAT_VERSION, is_vault

RELEASED = sorted(file.stem for file in HERE.glob("format-*.json"))
Open = Callable[..., MemoryStore]


@pytest.fixture(params=[(name, profile) for name in RELEASED for profile in PROFILES], ids="-".join)
def kept(request: pytest.FixtureRequest, tmp_path: Path, private_folders: Path) -> Path:
    """A vault as an earlier version left it."""
    name, profile = request.param
    path = tmp_path / "vaults" / f"{name}-{profile}.db"
    path.parent.mkdir()
    path.write_bytes(lzma.decompress((HERE / f"{path.name}.xz").read_bytes()))
    return path


@pytest.fixture
def known(kept: Path) -> dict[str, Any]:
    """What it must hold."""
    name, _, profile = kept.stem.rpartition("-")
    described: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text("utf-8"))[profile]
    return described


@pytest.fixture
def opened(kept: Path, tmp_path: Path, tiny_model: Path) -> Iterator[Open]:
    """Opens it, or what came of it, with the published key."""
    stores: list[MemoryStore] = []

    def open_it(path: Path = kept, **key: str) -> MemoryStore:
        secret: dict[str, Any] = key or {"key_file": key_file(tmp_path)}
        stores.append(MemoryStore.open(path, embedder=str(tiny_model), **secret))
        return stores[-1]

    yield open_it
    for store in stores:
        store.lock()


def test_it_opens_with_every_secret_and_holds_what_it_held(
    opened: Open, known: dict[str, Any]
) -> None:
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
    result = CliRunner().invoke(main, ["list", str(kept), "--key-file", str(key_file(tmp_path))])
    assert result.exit_code == 1
    assert expected in result.stderr
    assert kept.read_bytes() == before
