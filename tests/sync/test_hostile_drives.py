"""What happens to files on a drive on their way: late, cut, doubled, renamed, changed, foreign."""

from __future__ import annotations

import os
import random
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from devices import Devices, held
from msgspec.structs import replace

from memory_store.crypto.keys import Argon2Parameters
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore
from memory_store.vault import passphrase_slots
from memory_store.vault.bundles import (
    HEADER,
    KEYS,
    LENGTH,
    MAGIC,
    UNFINISHED,
    content_of_keys,
    found_in,
    name_of,
)
from memory_store.vault.key_heads import Head, decoded, encoded
from memory_store.vault.keyring import ROOT_SETTING, VAULT_SCOPE
from memory_store.vault.slots import Slot

NOTES = 150  # more than one part holds


@pytest.fixture
def written(store: MemoryStore, devices: Devices) -> Path:
    """The one file of a device that wrote some notes."""
    store.add_many([MemoryDraft(f"Note number {n}.") for n in range(NOTES)], embed=False)
    devices.sync(store)
    (file,) = devices.files()
    return file


def test_a_file_that_has_not_arrived_whole_is_taken_when_it_has(
    phone: MemoryStore, devices: Devices, written: Path
) -> None:
    whole = written.read_bytes()
    for length in (0, 10, 60, 61, 400, len(whole) // 2, len(whole) - 1):
        written.write_bytes(whole[:length])
        (report,) = devices.sync(phone)
        assert (report.added, len(report.ignored)) == (0, 1)
        assert written.name in report.ignored[0]
        assert held(phone) == {}
    written.write_bytes(whole)
    (report,) = devices.sync(phone)
    assert (report.added, report.ignored, report.waiting) == (NOTES, (), 0)


def test_no_changed_byte_is_taken_for_anything(
    phone: MemoryStore, devices: Devices, written: Path
) -> None:
    whole, draw = written.read_bytes(), random.Random(7)
    for at in (*range(0, 61, 3), *draw.sample(range(61, len(whole)), 40)):
        changed = bytearray(whole)
        changed[at] ^= 1 << draw.randrange(8)
        written.write_bytes(changed)
        (report,) = devices.sync(phone)
        assert report.added == 0, at
        assert report.ignored or report.waiting, at
        assert held(phone) == {}
    written.write_bytes(whole + b"\0")
    (report,) = devices.sync(phone)
    assert (report.added, len(report.ignored)) == (0, 1)


def test_a_large_file_of_a_stranger_is_refused_before_it_is_read(
    phone: MemoryStore, devices: Devices, written: Path
) -> None:
    """It looks like one of this vault's, with 32 parts of 32 MB, which a drive keeps as holes."""
    header, size = written.read_bytes()[:57], 32 << 20
    start = header[:-12] + (99).to_bytes(8, "big") + (32).to_bytes(4, "big")
    with (devices.drive / "large.sealed").open("wb") as file:
        file.write(start)
        for _ in range(32):
            file.write(size.to_bytes(4, "big"))
            file.seek(size, os.SEEK_CUR)
        file.truncate()
    tracemalloc.start()
    (report,) = devices.sync(phone)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert report.added == NOTES
    assert any("large.sealed: changed since it was written" in one for one in report.ignored)
    assert peak < 8 * size


@pytest.mark.parametrize("part", [0, 1])
def test_a_part_that_was_made_large_is_refused_before_it_is_read(
    phone: MemoryStore, devices: Devices, written: Path, part: int
) -> None:
    """The file's beginning is genuine, and a part is said to be of 400 MB, which are holes."""
    whole, size, start = written.read_bytes(), 400 << 20, HEADER.size
    for _ in range(part):
        start += LENGTH.size + LENGTH.unpack_from(whole, start)[0]
    with written.open("r+b") as file:
        file.seek(start)
        file.write(LENGTH.pack(size))
        file.truncate(start + LENGTH.size + size)
    tracemalloc.start()
    (report,) = devices.sync(phone)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (report.added, len(report.ignored)) == (0, 1)
    assert peak < size / 8


def test_a_link_that_lies_in_the_folder_is_not_written_through(
    store: MemoryStore, devices: Devices, tmp_path: Path
) -> None:
    """Syncthing, for one, brings links; and the numbers of the next files are known."""
    devices.sync(store)
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (device, _), *_ = (one.name.split("-") for one in devices.files())
    for number in range(12):
        for name in (name_of(device, number), f".{name_of(device, number)}{UNFINISHED}"):
            if not (devices.drive / name).exists():
                (devices.drive / name).symlink_to(precious)
    store.add("A note.")
    devices.sync(store)
    store.add("Another.")
    devices.sync(store)
    assert precious.read_text() == "mine"


def replaced_root(head: Head) -> Head:
    return replace(head, clear={**head.clear, ROOT_SETTING: "9"})


def later(head: Head) -> Head:
    keys = tuple((c, e + 1 if c == VAULT_SCOPE else e, w) for c, e, w in head.keys)
    return replace(head, keys=keys)


NUMBER = 2**64 - 1
FORGED: dict[str, Callable[[Head], Head]] = {
    "a later root key": replaced_root,
    "a later root key, without slots": lambda head: replace(replaced_root(head), slots=()),
    "later keys": later,
    "later keys, without slots": lambda head: replace(later(head), slots=()),
    "a number that no vault holds": lambda head: replace(replaced_root(head), revision=NUMBER),
    "a principal that no vault holds": lambda head: replace(
        later(head), slots=tuple(replace(one, principal=NUMBER) for one in head.slots)
    ),
    "an epoch that no vault holds": lambda head: replace(
        later(head), keys=(*later(head).keys, ("other", NUMBER, b""))
    ),
    "no number of root keys": lambda head: replace(head, clear={**head.clear, ROOT_SETTING: "x"}),
    "of another vault": lambda head: replace(head, clear={**head.clear, "vault": "00" * 16}),
}


def put_there(drive: Path, vault: bytes, head: Head, digest: bytes) -> None:
    epoch = max(number for scope, number, _ in head.keys if scope == VAULT_SCOPE)
    header = HEADER.pack(MAGIC, KEYS, vault, epoch, bytes(8), 1, 2)
    parts = (LENGTH.pack(len(one)) + one for one in (encoded(head), digest))
    (drive / "forged.sealed").write_bytes(b"".join((header, *parts)))


@pytest.mark.parametrize("kind", FORGED)
def test_keys_that_a_stranger_put_there_are_named_and_stop_nothing(
    store: MemoryStore, phone: MemoryStore, devices: Devices, kind: str
) -> None:
    """The folder's other users read how a vault is opened: all but the seals of it."""
    devices.sync(store)
    (true,) = (one for one in found_in(devices.drive)[0] if one.kind == KEYS)
    content, digest = content_of_keys(true)
    forged = FORGED[kind](decoded(content))
    put_there(devices.drive, true.vault, forged, digest)
    store.add("A note.")
    reports = devices.sync(store, phone)
    assert all(one.ignored and "forged.sealed: " in one.ignored[0] for one in reports)
    assert held(phone) == held(store)


@pytest.mark.parametrize("kind", ["a later root key", "later keys"])
def test_no_passphrase_is_tried_on_keys_that_a_stranger_put_there(
    store: MemoryStore, devices: Devices, kind: str
) -> None:
    """Each try takes a third of a second, as many as the stranger likes."""
    devices.sync(store)
    (true,) = (one for one in found_in(devices.drive)[0] if one.kind == KEYS)
    content, digest = content_of_keys(true)
    forged = FORGED[kind](decoded(content))
    costly = Slot(
        "",
        0,
        "passphrase",
        passphrase_slots.written(Argon2Parameters()),
        bytes(16),
        bytes(32),
        b"x",
    )
    slots = tuple(replace(costly, id=str(number)) for number in range(60))
    put_there(devices.drive, true.vault, replace(forged, slots=slots), digest)
    began = time.process_time()
    report = store.sync_with_folder(devices.drive, embed=False, answer="four small grey herons")
    assert time.process_time() - began < 5
    assert "forged.sealed: " in report.ignored[0]


def test_a_conflicted_copy_is_taken_once_and_stands_in_for_a_damaged_one(
    phone: MemoryStore, devices: Devices, written: Path
) -> None:
    whole = written.read_bytes()
    stem = written.name.removesuffix(".sealed")
    for name in (f"{stem} (Ada's conflicted copy 2026-01-02).sealed", f"{stem} (1).sealed"):
        (devices.drive / name).write_bytes(whole)
    written.write_bytes(whole[:1_000])
    (report,) = devices.sync(phone)
    assert (report.added, report.conflicts) == (NOTES, ())
    (report,) = devices.sync(phone)
    assert (report.added, report.changed) == (0, 0)


def test_renamed_and_swapped_files_say_what_they_said(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    for text in ("The first one.", "The second one.", "The third one."):
        store.add(text)
        devices.sync(store)
    first, _, third = devices.files()
    other = devices.drive / "aside"
    first.rename(other)
    third.rename(first)
    other.rename(third)
    devices.sync(phone)
    assert held(phone) == held(store)


def test_files_that_arrive_late_and_out_of_order_are_waited_for(
    store: MemoryStore, phone: MemoryStore, devices: Devices, tmp_path: Path
) -> None:
    lease = store.add("The lease ends in June.")
    devices.sync(store)
    (first,) = devices.files()
    away = tmp_path / first.name
    first.rename(away)
    store.edit(lease.id, text="The lease ends in July.")
    # the first file is not seen any more, so that everything is written once more
    devices.sync(store)
    (report,) = devices.sync(phone)
    assert phone.get(lease.id).text == "The lease ends in July."
    assert report.waiting == 0
    away.rename(first)
    (report,) = devices.sync(phone)
    assert (report.changed, report.conflicts) == (0, ())
    assert phone.get(lease.id).text == "The lease ends in July."


def test_a_missing_file_is_counted_until_it_arrives(
    store: MemoryStore, phone: MemoryStore, devices: Devices, tmp_path: Path
) -> None:
    for day in range(3):
        store.add(f"Said on day {day}.")
        devices.sync(store)
    second = devices.files()[1]
    second.rename(tmp_path / second.name)
    (report,) = devices.sync(phone)
    assert report.waiting == 1
    (tmp_path / second.name).rename(second)
    (report,) = devices.sync(phone)
    assert (report.waiting, held(phone)) == (0, held(store))


def test_an_earlier_state_of_the_drive_changes_nothing(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    lease = store.add("The lease ends in June.")
    devices.sync(store, phone)
    before = {file: file.read_bytes() for file in devices.files()}
    store.edit(lease.id, text="The lease ends in July.")
    devices.sync(store, phone)
    for file in devices.files():
        file.unlink()
    for file, content in before.items():
        file.write_bytes(content)
    (report,) = devices.sync(phone)
    assert phone.get(lease.id).text == "The lease ends in July."
    assert any("a later one of it was here before" in line for line in report.ignored)
    devices.sync(store, phone)
    assert held(store) == held(phone)


def test_files_of_another_vault_and_other_things_are_named_or_left_alone(
    store: MemoryStore, devices: Devices, tmp_path: Path
) -> None:
    other, _ = MemoryStore.create(tmp_path / "other.db", key_file=tmp_path / "keys" / "notes.key")
    with other:
        other.add("Of another vault.")
        devices.sync(other)
    foreign = [file.name for file in devices.drive.iterdir()]
    (devices.drive / "holiday.jpg").write_bytes(b"a picture")
    (devices.drive / "junk.sealed").write_bytes(b"nothing that was sealed")
    (devices.drive / "folder.sealed").mkdir()
    (report,) = devices.sync(store)
    assert report.added == 0
    assert sorted(report.ignored) == sorted(
        [
            *(f"{name}: of another vault" for name in foreign),
            "junk.sealed: not a sealed file, or one that is still arriving",
        ]
    )


def test_a_device_that_lost_its_files_on_the_drive_writes_them_again(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    store.add("The lease ends in June.")
    devices.sync(store)
    for file in devices.drive.iterdir():
        file.unlink()
    devices.sync(store, phone)
    assert held(phone) == held(store)


def test_writing_everything_anew_leaves_one_file_without_what_was_deleted(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    for text in ("To be deleted.", "To stay."):
        memory = store.add(text)
        devices.sync(store)
    (gone,) = [one for one in held(store) if one != memory.id]
    store.delete(gone)
    devices.sync(store)
    assert len(devices.files()) == 3
    store.sync_with_folder(devices.drive, whole=True)
    assert len(devices.files()) == 1
    devices.sync(phone)
    assert list(held(phone)) == [memory.id]
