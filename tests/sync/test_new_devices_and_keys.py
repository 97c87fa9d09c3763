"""A new device needs a key and the folder. Keys that are replaced on one device are on all; one
that was lost has none of them."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest
from devices import Devices, held
from msgspec.structs import replace
from typing_commands import run

from memory_store.cli.backup import copy_vault
from memory_store.errors import BadInputError, NotAVaultError, TamperedError, WrongKeyError
from memory_store.sqlite import connect
from memory_store.store import MemoryStore
from memory_store.vault import sync_state
from memory_store.vault.bundles import KEYS, found_in, key_parts, write_file
from memory_store.vault.key_heads import encoded, read_head
from memory_store.vault.keyring import ROOT_SETTING, VAULT_SCOPE

PASSPHRASE = "five random words are better"


@pytest.fixture
def lease(store: MemoryStore, devices: Devices) -> str:
    """A memory that is on the drive."""
    memory = store.add("The lease ends in June.", collection="home", topics=["flat"])
    devices.sync(store)
    return memory.id


def joined(devices: Devices, name: str, **key: object) -> MemoryStore:
    path = devices.folder / name / "notes.db"
    path.parent.mkdir()
    store = MemoryStore.join(path, devices.drive, **(key or {"key_file": devices.key_file}))  # type: ignore[arg-type]
    devices.opened.append(store)
    devices.sync(store)
    return store


def check_adopted(store: MemoryStore, phone: MemoryStore, devices: Devices, lease: str) -> None:
    """The phone takes the keys that were replaced on the other device, and goes on with them."""
    store.edit(lease, text="The lease ends in July.")
    devices.sync(store)
    (report,) = devices.sync(phone)
    assert report.keys == "adopted"
    assert phone.keys.unfinished() == []
    assert phone.get(lease).text == "The lease ends in July."
    assert phone.verify(full=True)["failures"] == []
    phone.add("Written with the new keys.")
    devices.sync(phone, store)
    assert held(store) == held(phone)


def test_a_new_device_needs_the_key_and_the_folder(
    store: MemoryStore, devices: Devices, lease: str
) -> None:
    tablet = joined(devices, "tablet")
    assert held(tablet) == held(store)
    assert tablet.collections.names() == store.collections.names()
    assert tablet.verify(full=True)["failures"] == []
    tablet.edit(lease, text="The lease ends in July.")
    devices.sync(tablet, store)
    assert store.get(lease).text == "The lease ends in July."


def test_a_recovery_code_and_a_passphrase_open_a_new_device(
    store: MemoryStore, devices: Devices, lease: str
) -> None:
    _, code = store.keys.add_recovery_code()
    store.keys.add(passphrase=PASSPHRASE, device_key=False)
    devices.sync(store)
    assert held(joined(devices, "one", recovery_code=code)) == held(store)
    assert held(joined(devices, "two", passphrase=PASSPHRASE)) == held(store)


def test_no_other_key_joins_and_nothing_is_left_of_the_try(
    store: MemoryStore, devices: Devices, lease: str, tmp_path: Path
) -> None:
    path = tmp_path / "tried.db"
    with pytest.raises(WrongKeyError):
        MemoryStore.join(path, devices.drive, passphrase="another passphrase")
    assert not path.exists()
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInputError, match="no keys of a vault there"):
        MemoryStore.join(path, tmp_path / "empty", key_file=devices.key_file)
    path.write_bytes(b"something else")
    with pytest.raises(NotAVaultError):
        MemoryStore.join(path, devices.drive, key_file=devices.key_file)
    assert path.read_bytes() == b"something else"


def test_keys_that_were_changed_on_the_drive_join_nothing(
    store: MemoryStore, devices: Devices, lease: str, tmp_path: Path
) -> None:
    (keys,) = [one.path for one in found_in(devices.drive)[0] if one.kind == KEYS]
    whole = keys.read_bytes()
    for at in range(70, len(whole), 97):
        changed = bytearray(whole)
        changed[at] ^= 1
        keys.write_bytes(changed)
        with pytest.raises((WrongKeyError, TamperedError, BadInputError)):
            MemoryStore.join(tmp_path / "tried.db", devices.drive, key_file=devices.key_file)
        assert not (tmp_path / "tried.db").exists()


def test_replaced_keys_reach_the_other_device(
    store: MemoryStore, phone: MemoryStore, devices: Devices, lease: str
) -> None:
    devices.sync(phone)
    store.keys.rotate()
    check_adopted(store, phone, devices, lease)


def test_keys_that_were_replaced_before_any_exchange_reach_a_copy_of_before(
    store: MemoryStore, phone: MemoryStore, devices: Devices, lease: str
) -> None:
    store.keys.rotate_root()
    store.keys.rotate()
    store.keys.rotate_root()
    check_adopted(store, phone, devices, lease)


@pytest.mark.parametrize("said", ["7", "1"])
@pytest.mark.parametrize("rotate", ["rotate", "rotate_root"])
def test_a_number_in_clear_keeps_no_device_from_newer_keys(
    store: MemoryStore, devices: Devices, lease: str, rotate: str, said: str
) -> None:
    """Who can write to a device's file could have it take the newest keys for older ones."""
    (devices.folder / "phone").mkdir()
    path = devices.folder / "phone" / "notes.db"
    copy_vault(store.path, path)
    with closing(connect(path)) as connection:
        row = {"name": "root", "value": said}
        connection.execute(
            "insert or replace into vault_settings values (:name, :value, null)", row
        )
    with MemoryStore.open(path, key_file=devices.key_file) as phone:
        getattr(store.keys, rotate)()
        check_adopted(store, phone, devices, lease)


def test_a_state_that_was_tampered_with_keeps_no_root_key(
    store: MemoryStore, phone: MemoryStore, devices: Devices, lease: str
) -> None:
    """Who has the key, and can write to the file, would have kept the owner from replacing it."""
    devices.sync(phone)
    vault = store._opened.vault
    tag = sync_state._tag(vault.keyring.of(VAULT_SCOPE), sync_state.ITSELF)
    with closing(connect(store.path)) as connection:
        connection.execute("update vault_sync set sealed = x'01' where tag = ?", (tag,))
    with pytest.raises(TamperedError, match="vault_sync"):
        devices.sync(store)
    store.keys.rotate_root()
    store.keys.rotate()
    store.edit(lease, text="The lease ends in July.")
    devices.sync(store)
    (report,) = devices.sync(phone)
    assert report.keys == "adopted"
    phone.add("Written with the new keys.")
    devices.sync(phone, store)
    assert held(store) == held(phone)


def test_what_a_device_wrote_before_it_had_the_new_keys_is_not_lost(
    store: MemoryStore, phone: MemoryStore, devices: Devices, lease: str
) -> None:
    devices.sync(phone)
    store.keys.rotate()
    devices.sync(store)
    phone.add("Written while apart.")
    devices.sync(phone)
    (report,) = devices.sync(store)
    assert report.added == 1
    assert held(store) == held(phone)


def test_a_lost_device_is_shut_out(
    store: MemoryStore, devices: Devices, lease: str, tmp_path: Path
) -> None:
    """The thief has the lost device open: its root key, every key of before, and the folder."""
    lost_key = tmp_path / "keys" / "lost.key"
    slot = store.keys.add(key_file=lost_key)
    devices.sync(store)
    lost = joined(devices, "lost", key_file=lost_key)
    kept = joined(devices, "kept")
    store.keys.remove(slot.id)
    store.keys.rotate_root()
    store.keys.rotate()
    secret = store.add("Said after the loss.")
    devices.sync(store)
    (report,) = devices.sync(kept)
    assert report.keys == "adopted"
    assert kept.get(secret.id).text == "Said after the loss."

    with pytest.raises(WrongKeyError, match="replaced on another device"):
        devices.sync(lost)
    assert secret.id not in held(lost)
    with pytest.raises(WrongKeyError):
        MemoryStore.join(tmp_path / "again.db", devices.drive, key_file=lost_key)

    # what it writes under the keys that it has, in a folder of its own, is taken by nobody
    apart = tmp_path / "apart"
    apart.mkdir()
    forged = lost.add("Said by the thief.")
    lost.edit(lease, text="Changed by the thief.")
    lost.sync_with_folder(apart)
    for file in apart.iterdir():
        shutil.copy(file, devices.drive / file.name)
    reports = devices.sync(store, kept)
    assert all(any("keys that were replaced" in line for line in one.ignored) for one in reports)
    ignored = len(reports[0].ignored)
    words = ["sync", str(store.path), str(devices.drive), "--key-file", str(devices.key_file)]
    said = run(*words).stdout
    assert ignored > 1
    assert said.count("Ignored") == said.count(f"Ignored {ignored} files: sealed with keys") == 1
    for one in (store, kept):
        assert forged.id not in held(one)
        assert one.get(lease).text == "The lease ends in June."
    kept.edit(lease, text="The lease ends in July.")
    devices.sync(kept, store)
    assert held(store) == held(kept)


def test_a_thief_with_the_old_root_key_cannot_replace_keys_for_others(
    store: MemoryStore, phone: MemoryStore, devices: Devices, lease: str, tmp_path: Path
) -> None:
    """The lost device replaces root key and keys itself, more often than the owner did."""
    lost = joined(devices, "lost")
    devices.sync(phone)
    store.keys.rotate_root()
    store.keys.rotate()
    devices.sync(store, phone)
    apart = tmp_path / "apart"
    apart.mkdir()
    lost.sync_with_folder(apart)
    for _ in range(3):
        lost.keys.rotate_root()
        lost.keys.rotate()
    forged = lost.add("Said by the thief.")
    lost.sync_with_folder(apart)
    for file in apart.iterdir():
        shutil.copy(file, devices.drive / file.name)
    reports = devices.sync(store, phone)
    for one, report in zip((store, phone), reports, strict=True):
        assert report.keys == ""
        assert any("do not follow" in line or "not signed" in line for line in report.ignored)
        assert forged.id not in held(one)


def test_a_new_device_joins_no_keys_that_a_lost_one_calls_the_newest(
    store: MemoryStore, devices: Devices, lease: str, tmp_path: Path
) -> None:
    """The thief knows no key that the new device is given, and needs none: it has its slot."""
    lost_key, path = tmp_path / "keys" / "lost.key", tmp_path / "new.db"
    slot = store.keys.add(key_file=lost_key)
    devices.sync(store)
    lost = joined(devices, "lost", key_file=lost_key)
    store.keys.remove(slot.id)
    store.keys.rotate_root()
    store.keys.rotate()
    store.add("Said after the loss.")
    devices.sync(store)

    vault = lost._opened.vault.whole_vault()
    head = read_head(vault.reader(), sync_state.read_state(vault.reader(), vault.keyring).roots)
    newest = replace(head, clear={**head.clear, ROOT_SETTING: "9"})
    keys = vault.keyring.of(VAULT_SCOPE)
    parts = key_parts(keys, "00" * 8, 1, encoded(newest))
    file = write_file(devices.drive, keys, KEYS, "00" * 8, 1, parts)
    with pytest.raises(TamperedError, match=f"{file.name}.*do not follow"):
        MemoryStore.join(path, devices.drive, key_file=devices.key_file)
    assert not path.exists()
    file.unlink()
    assert held(joined(devices, "new")) == held(store)


def test_a_device_with_another_key_is_asked_once_for_one_that_still_opens(
    store: MemoryStore, devices: Devices, lease: str, tmp_path: Path
) -> None:
    own_key = tmp_path / "keys" / "tablet.key"
    tablet = joined(devices, "tablet")
    tablet.keys.add(key_file=own_key)
    path = tablet.path
    tablet.lock()
    _, code = store.keys.rotate_root()
    store.keys.rotate()
    devices.sync(store)
    with MemoryStore.open(path, key_file=own_key) as tablet:
        with pytest.raises(WrongKeyError, match="passphrase or recovery code"):
            devices.sync(tablet)
        report = tablet.sync_with_folder(devices.drive, answer=code)
        assert report.keys == "adopted"
        assert held(tablet) == held(store)
    with pytest.raises(WrongKeyError):
        MemoryStore.open(path, key_file=own_key)
    MemoryStore.open(path, recovery_code=code).close()


def test_keys_that_two_devices_replaced_at_once_are_named(
    store: MemoryStore, phone: MemoryStore, devices: Devices, lease: str
) -> None:
    devices.sync(phone)
    for one in (store, phone):
        one.keys.rotate()
    devices.sync(store)
    (report,) = devices.sync(phone)
    assert any("two devices at once" in line for line in report.ignored)
    phone.add("Said meanwhile.")
    phone.keys.rotate()
    devices.sync(phone, store)
    assert held(store) == held(phone)
