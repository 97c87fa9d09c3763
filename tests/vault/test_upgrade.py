"""A vault of an earlier format becomes one of today's when its owner first opens it for writing."""

from __future__ import annotations

import lzma
from contextlib import closing
from pathlib import Path

import pytest

from memory_store.sqlite import connect
from memory_store.store import MemoryStore
from memory_store.vault.schema import FORMAT_VERSION

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
        assert store._vault.settings.format == FORMAT_VERSION
