"""The files that memories were read from go to other devices with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from devices import Devices

from memory_store.store import MemoryStore


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "lease.txt"
    path.write_text("It ends in May.\n" + "\n" * 300_000)  # two parts
    return path


def brought(store: MemoryStore, path: Path) -> str:
    store.import_paths(path, keep_originals=True, embed=False)
    return store.get(path.name).id


def test_by_a_drive_with_a_later_version_and_until_they_are_erased(
    devices: Devices, store: MemoryStore, phone: MemoryStore, note: Path
) -> None:
    memory = brought(store, note)
    devices.sync(store, phone)
    assert phone.original(memory) == note.read_bytes()
    assert phone.verify()["failures"] == []

    phone.edit(memory, title="The lease")  # says nothing else of the file
    devices.sync(phone, store)
    assert store.original(memory) == note.read_bytes()

    note.write_text("It ends in June.")
    brought(store, note)
    devices.sync(store, phone)
    assert phone.original(memory) == note.read_bytes()

    store.delete(memory, now=True)
    devices.sync(store, phone)
    assert phone.stats()["original_bytes"] == 0


def test_from_copy_to_copy(store: MemoryStore, phone: MemoryStore, note: Path) -> None:
    memory = brought(phone, note)
    report = store.sync_with_copy(phone, embed=False)
    assert report.added == 1
    assert store.original(memory) == phone.original(memory) == note.read_bytes()
    assert store.sync_with_copy(phone, embed=False).changed == 0


def test_one_that_lost_to_another_version_leaves_none_behind(
    devices: Devices, store: MemoryStore, phone: MemoryStore, note: Path
) -> None:
    memory = brought(store, note)
    devices.sync(store, phone)
    note.write_text("It ends in June, says the phone.")
    brought(phone, note)
    store.edit(memory, text="It ends in July, says the laptop.")
    devices.sync(store, phone, store)
    for one in (store, phone):
        assert one.verify()["failures"] == []
        assert [memory.id for memory in one.every() if memory.original] == [memory]
    assert store.original(memory) == phone.original(memory)
