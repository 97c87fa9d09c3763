"""An exchange that is stopped anywhere loses nothing, and the next one finishes it.

Each place where something becomes lasting is one: before and after every commit, and before and
after every file. Each stop needs vaults of its own, so this takes some seconds.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from devices import Devices, held

from memory_store.store import MemoryStore
from memory_store.vault import bundles
from memory_store.vault.storage import Storage


class Stopped(BaseException):
    """The process ended here."""


@pytest.fixture
def stop_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[int]]:
    """Stop at a place that is counted; returns the count, which goes on for ever at -1."""
    transaction, write_file = Storage.transaction, bundles.write_file
    count, wanted = [0], [-1]

    def passed() -> None:
        count[0] += 1
        if count[0] == wanted[0]:
            raise Stopped

    @contextmanager
    def stopping(self: Storage, keys: Any = None) -> Iterator[None]:
        with transaction(self, keys):
            yield
            passed()
        passed()

    def writing(*given: Any) -> Path:
        passed()
        written = write_file(*given)
        passed()
        return written

    monkeypatch.setattr(Storage, "transaction", stopping)
    monkeypatch.setattr(bundles, "write_file", writing)

    def choose(place: int) -> list[int]:
        count[0], wanted[0] = 0, place
        return count

    return choose


def prepared(store: MemoryStore, phone: MemoryStore, devices: Devices) -> None:
    """Two devices with an edit on each, a conflict, a deletion, a collection, and news."""
    kept, both, gone = (store.add(text) for text in ("One to keep.", "One for both.", "One to go."))
    devices.sync(store, phone)
    store.edit(kept.id, text="One to keep, changed.")
    store.edit(both.id, text="One for both, here.")
    store.delete(gone.id)
    store.add("One for work.", collection="work")
    phone.edit(both.id, text="One for both, there.")
    phone.add("One from the phone.")
    devices.sync(store)


@pytest.mark.sampled(0)
def test_it_goes_on_from_any_place(
    store: MemoryStore,
    phone: MemoryStore,
    devices: Devices,
    stop_at: Callable[[int], list[int]],
    tmp_path: Path,
) -> None:
    prepared(store, phone, devices)
    wanted, passed = None, 1
    phone.lock()
    before = {
        "phone": tmp_path / "phone",
        "drive": devices.drive,
    }
    place, places = 0, 1
    while place <= places:
        for name, folder in before.items():
            shutil.copytree(folder, tmp_path / f"{name} {place}")
        drive = tmp_path / f"drive {place}"
        path = tmp_path / f"phone {place}" / "notes.db"
        with MemoryStore.open(path, key_file=devices.key_file) as one:
            count = stop_at(place)
            try:
                one.sync_with_folder(drive, embed=False)
                stopped = False
            except Stopped:
                stopped = True
            assert stopped == (0 < place <= places)
            if place == 0:
                places = count[0]
            stop_at(-1)
        with MemoryStore.open(path, key_file=devices.key_file) as one:
            one.sync_with_folder(drive, embed=False)
            texts = sorted(memory.text for memory in one.every())
            wanted = wanted or texts
            assert texts == wanted
            assert one.verify()["failures"] == []
            last = one.sync_with_folder(drive, embed=False)
            assert (last.sent, last.added, last.changed, last.deleted) == (0, 0, 0, 0)
        place += 1
        passed += 1
    assert wanted == [
        "One for both, here.",
        "One for both, there.",
        "One for work.",
        "One from the phone.",
        "One to keep, changed.",
    ]
    assert passed > 10
    shutil.rmtree(devices.drive)
    shutil.copytree(tmp_path / f"drive {place - 1}", devices.drive)
    devices.sync(store)
    with MemoryStore.open(path, key_file=devices.key_file) as one:
        assert held(one) == held(store)


def test_a_new_device_that_was_stopped_goes_on_without_the_name_of_the_folder(
    store: MemoryStore, devices: Devices, stop_at: Callable[[int], list[int]]
) -> None:
    store.add("The lease ends in June.")
    devices.sync(store)
    with MemoryStore.join(
        devices.folder / "new.db", devices.drive, key_file=devices.key_file
    ) as phone:
        for place in range(1, 100):
            stop_at(place)
            with pytest.raises(Stopped):
                devices.sync(phone)
            if held(phone):
                break
        stop_at(-1)
        phone.sync_with_folder(embed=False)
        assert held(phone) == held(store)
