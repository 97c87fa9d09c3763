"""What was written on one device is found on the other: added, changed and deleted."""

from __future__ import annotations

from pathlib import Path

import pytest
from devices import Devices, held

from memory_store.actions.sync.copy import Copy
from memory_store.cli.backup import copy_vault
from memory_store.errors import BadInputError, ConflictError, NotFoundError
from memory_store.store import MemoryStore


def test_what_each_device_added_is_on_both(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    lease = store.add("The lease ends in June.", title="Lease", topics=["home"], metadata={"a": 1})
    phone.add("The ferry leaves at noon.", type="task", parent=lease.id)
    devices.sync(store, phone, store)
    assert held(store) == held(phone)
    assert len(held(store)) == 2
    assert [row.id for row in phone.search("lease", mode="keyword").rows] == [lease.id]
    assert phone.verify(full=True)["failures"] == []


def test_an_edit_travels_and_what_it_replaced_is_in_the_trash_there(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    lease = store.add("The lease ends in June.")
    devices.sync(store, phone)
    store.edit(lease.id, text="The lease ends in July.", topics=["home"])
    devices.sync(store, phone)
    assert phone.get(lease.id).text == "The lease ends in July."
    assert [(one.change, one.by) for one in phone.trash.list(lease.id)] == [("edited", "sync")]


def test_a_deletion_travels_into_the_trash_and_can_be_taken_back_on_either(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    lease = store.add("The lease ends in June.", title="Lease")
    devices.sync(store, phone)
    phone.delete(lease.id)
    devices.sync(phone, store)
    with pytest.raises(NotFoundError):
        store.get(lease.id)
    assert [(one.title, one.by) for one in store.trash.list()] == [("Lease", "sync")]
    store.trash.restore(lease.id)
    devices.sync(store, phone)
    assert phone.get(lease.id).title == "Lease"
    assert held(store) == held(phone)


def test_what_came_back_can_be_replaced_by_a_later_version_from_the_trash(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    """Each device counts versions for itself: what is in its trash may have a higher one."""
    lease = store.add("The lease ends in June.")
    devices.sync(store, phone)
    for month in ("July", "August", "September"):
        phone.edit(lease.id, text=f"The lease ends in {month}.")
    phone.delete(lease.id)
    devices.sync(phone, store)
    store.trash.restore(lease.id)
    devices.sync(store, phone)
    assert phone.get(lease.id).text == "The lease ends in June."
    phone.trash.restore(lease.id)
    assert phone.get(lease.id).text == "The lease ends in September."
    devices.sync(phone, store)
    assert held(store) == held(phone)


def test_a_memory_that_was_superseded_is_over_on_both(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    old = store.add("The lease ends in June.", type="fact")
    devices.sync(store, phone)
    new = phone.supersede(old.id, "The lease ends in July.")
    devices.sync(phone, store)
    assert store.get(old.id).superseded_by == new.id
    assert store.get(new.id).supersedes == old.id
    assert held(store) == held(phone)


def test_nothing_is_sent_twice(store: MemoryStore, phone: MemoryStore, devices: Devices) -> None:
    store.add("The lease ends in June.")
    devices.sync(store, phone, store, phone)
    before = devices.files()
    reports = devices.sync(store, phone, store)
    assert [(one.sent, one.added, one.changed, one.deleted) for one in reports] == [
        (0, 0, 0, 0)
    ] * 3
    assert devices.files() == before


def test_two_edits_of_one_memory_are_both_kept_and_the_later_one_has_its_place(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    lease = store.add("The lease ends in June.", title="Lease", topics=["home"])
    devices.sync(store, phone)
    store.edit(lease.id, text="The lease ends in July.")
    phone.edit(lease.id, text="The lease ends in August.")
    reports = devices.sync(store, phone, store)
    assert reports[1].conflicts == (lease.id,)
    assert held(store) == held(phone)
    assert store.get(lease.id).text == "The lease ends in August."
    (other,) = [one for one in store.every() if one.id != lease.id]
    assert other.text == "The lease ends in July."
    assert other.metadata["conflict_of"] == lease.id
    assert other.topics == ("home", "sync-conflict")
    store.delete(other.id)
    devices.sync(store, phone, store)
    assert list(held(phone)) == list(held(store)) == [lease.id]


def test_what_was_done_before_the_first_exchange_is_no_conflict_with_the_copy(
    store: MemoryStore, devices: Devices
) -> None:
    lease, ferry, oars = (
        store.add(text) for text in ("Lease: June.", "Ferry: noon.", "Oars: two.")
    )
    phone = devices.another("phone")
    store.edit(lease.id, text="Lease: July.")
    store.edit(lease.id, text="Lease: August.")
    phone.delete(oars.id)
    devices.sync(store)
    store.edit(ferry.id, text="Ferry: one o'clock.")
    reports = devices.sync(phone, store, phone)
    assert all(one.conflicts == () for one in reports)
    assert held(store) == held(phone)
    assert {one.text for one in phone.every()} == {"Lease: August.", "Ferry: one o'clock."}


def test_the_same_edit_on_both_devices_is_no_conflict(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    lease = store.add("The lease ends in June.")
    devices.sync(store, phone)
    store.edit(lease.id, text="The lease ends in July.")
    phone.edit(lease.id, text="The lease ends in July.")
    reports = devices.sync(store, phone, store, phone)
    assert all(one.conflicts == () for one in reports)
    assert held(store) == held(phone)
    assert len(held(store)) == 1


def test_an_edit_survives_a_deletion_on_the_other_device(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    lease = store.add("The lease ends in June.")
    devices.sync(store, phone)
    store.edit(lease.id, text="The lease ends in July.")
    phone.delete(lease.id)
    devices.sync(phone, store, phone)
    assert phone.get(lease.id).text == "The lease ends in July."
    assert held(store) == held(phone)


def test_collections_are_made_named_and_deleted_on_either_device(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    store.collections.create("work", owner="ada", analyser="de")
    store.add("Die Miete steigt.", collection="work")
    devices.sync(store, phone)
    assert dict(phone.collections.members("work")) == {"ada": "owner"}
    assert dict(phone.collections.analysers())["work"] == "de"
    phone.collections.rename("work", "office")
    devices.sync(phone, store)
    assert set(store.collections.names().values()) == {"personal", "office"}
    store.collections.delete("office")
    devices.sync(store, phone, store)
    for one in (store, phone):
        assert set(one.collections.names().values()) == {"personal"}
        assert held(one) == {}
        assert one.verify()["failures"] == []


def test_two_collections_of_one_name_stay_apart(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    for one in (store, phone):
        one.add("Said at work.", collection="work")
    devices.sync(store, phone, store)
    assert store.collections.names() == phone.collections.names() or held(store) == held(phone)
    assert sorted(store.collections.names().values()) == ["personal", "work", "work 2"]
    assert held(store) == held(phone)


def test_a_deleted_collection_is_there_again_when_another_device_wrote_in_it(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    store.add("Said at work.", collection="work")
    devices.sync(store, phone)
    store.collections.delete("work")
    kept = phone.add("Written meanwhile.", collection="work")
    devices.sync(store, phone, store, phone)
    assert list(held(store)) == list(held(phone)) == [kept.id]
    assert store.get(kept.id).collection == "work"
    assert held(store) == held(phone)


def test_two_copies_exchange_file_to_file(store: MemoryStore, phone: MemoryStore) -> None:
    lease = store.add("The lease ends in June.")
    ferry = phone.add("The ferry leaves at noon.", collection="travel")
    with store.open_copy(phone.path) as other:
        report = store.sync_with_copy(other, embed=False)
    assert (report.sent, report.added) == (1, 1)
    assert held(store) == held(phone)
    assert set(held(store)) == {lease.id, ferry.id}
    with store.open_copy(phone.path) as other:
        assert store.sync_with_copy(other).sent == 0


def test_a_vault_that_is_no_copy_is_refused(store: MemoryStore, tmp_path: Path) -> None:
    key = tmp_path / "keys" / "notes.key"
    other, _ = MemoryStore.create(tmp_path / "other.db", key_file=key)
    with other, pytest.raises(BadInputError, match="another vault"):
        store.open_copy(other.path)
    with store.open_copy(store.path) as itself, pytest.raises(BadInputError, match="itself"):
        store.sync_with_copy(itself)


def test_what_one_device_learned_from_a_stick_reaches_those_on_the_drive(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    third = devices.another("desk")
    lease = third.add("The lease ends in June.")
    with phone.open_copy(third.path) as other:
        phone.sync_with_copy(other, embed=False)
    devices.sync(phone, store)
    assert store.get(lease.id).text == "The lease ends in June."


@pytest.mark.parametrize("drive", ["the same drive", "another, empty one", "another copy"])
def test_a_backup_that_was_put_back_gives_no_number_twice(
    store: MemoryStore, phone: MemoryStore, devices: Devices, tmp_path: Path, drive: str
) -> None:
    first = store.add("The first one.")
    third = devices.another("third")
    devices.sync(store, phone, third)
    copy_vault(phone.path, tmp_path / "backup.db")
    phone.edit(first.id, text="Changed after the backup.")
    phone.add("Written after the backup.")
    devices.sync(phone, store)
    phone.lock()
    for file in phone.path.parent.glob("notes.db*"):
        file.unlink()
    copy_vault(tmp_path / "backup.db", phone.path)
    if drive != "the same drive":  # or one that holds back what it has
        devices.drive = tmp_path / "another drive"
        devices.drive.mkdir()
    with MemoryStore.open(phone.path, key_file=devices.key_file) as back:
        back.edit(first.id, text="Changed after the backup was put back.")
        if drive == "another copy":
            back.sync_with_copy(third)
            devices.sync(third)
        devices.sync(back, store, back)
        assert held(store) == held(back)
        assert len(held(store)) == 3
        assert store.get(first.id).text == "Changed after the backup was put back."


def test_the_trail_names_the_exchange(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    store.add("The lease ends in June.")
    devices.sync(store, phone)
    (event,) = phone.trail.events()
    assert (event.action, event.surface, event.opened, event.returned) == ("sync", "sync", 0, 1)


def test_what_was_erased_at_once_is_in_no_trash_of_another_device(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    lease, ferry = (store.add(text) for text in ("The lease ends.", "The ferry leaves."))
    devices.sync(store, phone)
    store.edit(lease.id, text="The lease ends in July.")
    phone.delete(ferry.id)
    devices.sync(store, phone, store)
    assert {one.id for one in phone.trash.list()} == {lease.id, ferry.id}
    store.delete(lease.id, now=True)
    devices.sync(store, phone, store)
    assert held(store) == held(phone) == {}
    assert [one.id for one in phone.trash.list()] == [ferry.id]
    assert [one.id for one in store.trash.list()] == [ferry.id]


def test_two_programs_that_sync_one_vault_do_not_overwrite_what_the_other_noted(
    store: MemoryStore, devices: Devices, key_file: Path
) -> None:
    store.add("The lease ends in June.")
    devices.sync(store)
    with MemoryStore.open(store.path, key_file=key_file) as again:
        late = Copy(again._opened)
        store.add("The ferry leaves at noon.")
        assert [report.sent for report in devices.sync(store)] == [1]
        with pytest.raises(ConflictError, match="another program is syncing it"):
            late.note_changes()
        assert [report.sent for report in devices.sync(again, store)] == [0, 0]
