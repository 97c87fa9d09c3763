"""Copies that sync are written at their own pace: none is taken for an older one because another
was written more, and each is still held against what this machine saw of itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from devices import Devices

from memory_store.store import MemoryStore


def older(path: Path, key_file: Path) -> str | None:
    with MemoryStore.open(path, key_file=key_file) as store:
        return store.older()


def write(path: Path, key_file: Path, times: int) -> None:
    with MemoryStore.open(path, key_file=key_file) as store:
        for number in range(times):
            store.add(f"Written at this copy, {number}.")


@pytest.fixture
def places(
    store: MemoryStore, devices: Devices, tmp_path: Path, key_file: Path
) -> tuple[Path, Path]:
    """Two copies that sync by a drive; the second one joined."""
    for number in range(3):
        store.add(f"Written before, {number}.")
    devices.sync(store)
    store.lock()
    second = tmp_path / "second" / "notes.db"
    second.parent.mkdir()
    with MemoryStore.join(second, devices.drive, key_file=key_file) as joined:
        devices.sync(joined)
    return store.path, second


def test_a_copy_that_was_written_less_is_not_older(
    places: tuple[Path, Path], key_file: Path
) -> None:
    first, second = places
    assert older(second, key_file) is None
    for written in (second, first, second):
        write(written, key_file, 9)
        assert [older(one, key_file) for one in places] == [None, None]


@pytest.mark.parametrize("which", [0, 1])
def test_each_that_is_put_back_is_older(
    places: tuple[Path, Path], key_file: Path, which: int
) -> None:
    one, other = places[which], places[1 - which]
    write(one, key_file, 1)
    before = one.read_bytes()
    write(one, key_file, 2)
    write(other, key_file, 30)
    one.write_bytes(before)
    assert "older than the one last used" in (older(one, key_file) or "")
    assert older(other, key_file) is None
    write(one, key_file, 50)
    assert older(one, key_file) is not None, "until it is accepted"
    with MemoryStore.open(one, key_file=key_file) as store:
        store.accept_older()
    assert [older(one, key_file) for one in places] == [None, None]


def test_another_copy_in_its_place_is_older(places: tuple[Path, Path], key_file: Path) -> None:
    first, second = places
    earlier = second.read_bytes()
    write(first, key_file, 30)
    first.write_bytes(earlier)
    assert older(first, key_file) is not None


def test_a_backup_elsewhere_is_older_as_before(
    places: tuple[Path, Path], key_file: Path, tmp_path: Path
) -> None:
    first, _ = places
    backup = tmp_path / "backup.db"
    backup.write_bytes(first.read_bytes())
    write(first, key_file, 1)
    assert older(backup, key_file) is not None
    assert older(first, key_file) is None
