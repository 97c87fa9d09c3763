"""Devices that meet in a folder, a file and a PostgreSQL database end with the same memories."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from devices import Devices, held
from postgres_server import Server
from typing_commands import run

from memory_store import BadInputError, MemoryStore, TamperedError, WrongKeyError
from memory_store.addresses import vault_path
from memory_store.errors import MemoryStoreError
from memory_store.vault.storage.transfer import copy_vault


@pytest.fixture
def there(store: MemoryStore, postgres: Server) -> Path:
    """The address of a copy in a database."""
    place = vault_path(postgres.address())
    copy_vault(store.path, place)
    return place


def meet(store: MemoryStore, place: Path) -> None:
    with store.open_copy(place) as other:
        store.sync_with_copy(other, embed=False)


def test_they_converge_over_all_three(
    store: MemoryStore, phone: MemoryStore, devices: Devices, there: Path, key_file: Path
) -> None:
    desk = devices.another("desk")
    lease = store.add("The lease ends in June.")
    ferry = store.add("The ferry leaves at noon.")
    meet(store, there)
    meet(phone, there)
    devices.sync(phone, desk)
    assert held(store) == held(phone) == held(desk)
    phone.edit(lease.id, text="The lease ends in July.")
    desk.edit(lease.id, text="The lease ends in August.")
    store.delete(ferry.id)
    with MemoryStore.open(there, key_file=key_file) as on_server:
        on_server.add("Written to the database.")
    meet(desk, store.path)
    for _ in range(2):
        meet(store, there)
        meet(phone, there)
        devices.sync(phone, desk)
    assert held(store) == held(phone) == held(desk)
    texts = {one.text for one in store.every()}
    assert {"The lease ends in July.", "The lease ends in August."} <= texts
    assert "Written to the database." in texts
    assert ferry.id not in held(phone)
    with MemoryStore.open(there, key_file=key_file) as on_server:
        assert held(on_server) == held(store)
        assert on_server.verify(full=True)["failures"] == []


def test_the_command_takes_an_address(
    store: MemoryStore, there: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(key_file))
    with MemoryStore.open(there, key_file=key_file) as on_server:
        note = on_server.add("Written to the database.")
    words = ["sync", str(store.path), str(there), "--no-embed", "--json"]
    answer = run(*words)
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)["added"] == 1
    assert note.id in held(store)
    secret = "kestrel-9021"
    refused = run("sync", str(store.path), f"postgresql://a:{secret}@h/d")
    assert (refused.exit_code, secret in refused.output) == (2, False)
    assert "PGPASSWORD" in refused.output


def test_keys_that_were_replaced_in_the_database_reach_who_meets_there(
    store: MemoryStore, phone: MemoryStore, there: Path, key_file: Path, tmp_path: Path
) -> None:
    lost_key = tmp_path / "keys" / "lost.key"
    meet(store, there)
    meet(phone, there)
    with MemoryStore.open(there, key_file=key_file) as on_server:
        slot = on_server.keys.add(key_file=lost_key)
    lost = tmp_path / "lost.db"
    copy_vault(there, lost)
    with MemoryStore.open(there, key_file=key_file) as on_server:
        on_server.keys.remove(slot.id)
        on_server.keys.rotate_root()
        on_server.keys.rotate()
    phone.add("Said on the phone, under the keys of before.")
    for one in (phone, store, phone):
        with one.open_copy(there) as other:
            report = one.sync_with_copy(other, embed=False)
        assert report.keys == ("adopted" if one is store else report.keys)
    secret = store.add("Said after the loss.")
    meet(store, there)
    meet(phone, there)
    assert held(store) == held(phone)
    for one in (store, phone):
        assert one.verify(full=True)["failures"] == []
        with MemoryStore.open(one.path, key_file=key_file) as again:
            assert again.get(secret.id).text == "Said after the loss."
    with pytest.raises(WrongKeyError):
        MemoryStore.open(there, key_file=lost_key)
    with MemoryStore.open(lost, key_file=lost_key) as thief:
        with pytest.raises((BadInputError, WrongKeyError, TamperedError)):
            meet(thief, there)
        forged = thief.add("Said by the thief.")
        with pytest.raises(BadInputError, match="a lost device may have written"):
            meet(store, thief.path)
    assert forged.id not in held(store)


def test_a_database_put_back_to_before_the_keys_were_replaced_is_not_taken_from(
    store: MemoryStore, postgres: Server, there: Path, key_file: Path
) -> None:
    """Its owner plays the thief who still has the root key of before."""
    meet(store, there)
    earlier = vault_path(postgres.address())
    copy_vault(there, earlier)
    with MemoryStore.open(there, key_file=key_file) as on_server:
        on_server.keys.rotate_root()
    meet(store, there)
    with MemoryStore.open(earlier, key_file=key_file) as put_back:
        forged = put_back.add("Said by the thief.")
    with pytest.raises(BadInputError, match="a lost device may have written"):
        meet(store, earlier)
    assert forged.id not in held(store)


@pytest.mark.parametrize("how", ["another vault's", "no vault"])
def test_what_is_no_copy_of_it_is_refused(
    store: MemoryStore, make_store: Callable[..., MemoryStore], postgres: Server, how: str
) -> None:
    place = vault_path(postgres.address())
    if how == "another vault's":
        copy_vault(make_store("other.db").path, place)
    with pytest.raises(MemoryStoreError, match=how.removesuffix("'s")):
        meet(store, place)


def test_a_database_is_one_device_whatever_machine_meets_there(
    store: MemoryStore, phone: MemoryStore, there: Path, tmp_path: Path
) -> None:
    def meet_from(machine: str, one: MemoryStore) -> int:
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("MEMORY_STORE_STATE", str(tmp_path / machine))
            with one.open_copy(there) as other:
                return one.sync_with_copy(other, embed=False).sent

    store.add("The lease ends in June.")
    machines = (("desk", store), ("phone", phone))
    for _ in range(2):
        for machine, one in machines:
            meet_from(machine, one)
    assert [meet_from(machine, one) for machine, one in machines] == [0, 0]


def test_a_database_that_was_written_more_makes_no_copy_of_it_older(
    store: MemoryStore, there: Path, key_file: Path
) -> None:
    meet(store, there)
    store.lock()
    with MemoryStore.open(there, key_file=key_file) as on_server:
        for number in range(9):
            on_server.add(f"Written to the database, {number}.")
    with MemoryStore.open(store.path, key_file=key_file) as again:
        assert again.older() is None
        meet(again, there)
    with MemoryStore.open(there, key_file=key_file) as on_server:
        assert on_server.older() is None
