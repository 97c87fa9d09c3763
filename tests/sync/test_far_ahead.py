"""A device says that what it wrote is of the year 144,683, or later still: nothing stops, and what
is chosen after it counts. A thief may say so before the keys are replaced."""

from __future__ import annotations

import pytest
from devices import Devices, held
from msgspec import msgpack
from msgspec.structs import replace

from memory_store.actions.sync.collections import SentCollection
from memory_store.actions.sync.copy import Sent
from memory_store.actions.sync.folder import Opening
from memory_store.records import Memory
from memory_store.store import MemoryStore
from memory_store.vault.bundles import CHANGES, sealed_parts, write_file
from memory_store.vault.contents import Content, digest, exact_digest, packed
from memory_store.vault.keyring import VAULT_SCOPE
from memory_store.vault.registers import LATEST, Register, Version
from memory_store.vault.sync_state import Chosen, Described

THIEF = "ee" * 8
LARGEST = 2**64 - 1
FAR = [LATEST, LARGEST]


def written_by_thief(
    store: MemoryStore, devices: Devices, opening: Opening, *memories: Sent
) -> None:
    """A file as whoever has the vault's keys can make it."""
    keys = store._opened.vault.keyring.of(VAULT_SCOPE)
    parts = [msgpack.encode(opening), msgpack.encode(memories)]
    sealed = sealed_parts(keys, CHANGES, THIEF, 1, parts)
    write_file(devices.drive, keys, CHANGES, THIEF, 1, [*sealed])


@pytest.mark.parametrize("far", FAR)
def test_a_setting(store: MemoryStore, phone: MemoryStore, devices: Devices, far: int) -> None:
    devices.sync(store, phone)
    chosen = {"trash": Chosen(msgpack.encode(99), far)}
    written_by_thief(store, devices, Opening((1,), {}, [], chosen))
    devices.sync(store, phone)
    assert (store.trash.days(), phone.trash.days()) == (99, 99)
    phone.set_trash(7)
    devices.sync(phone, store, phone)
    assert (store.trash.days(), phone.trash.days()) == (7, 7)


@pytest.mark.parametrize("far", FAR)
def test_a_name(store: MemoryStore, phone: MemoryStore, devices: Devices, far: int) -> None:
    work = store.collections.create("work").id
    devices.sync(store, phone)
    created = store._opened.vault.reader().collections.created()[work]
    described = SentCollection(Described(work, "taken over", created, time=far))
    written_by_thief(store, devices, Opening((1,), {}, [described]))
    devices.sync(store, phone)
    assert phone.collections.names()[work] == "taken over"
    phone.collections.rename("taken over", "work again")
    devices.sync(phone, store, phone)
    assert store.collections.names()[work] == phone.collections.names()[work] == "work again"


@pytest.mark.parametrize("far", FAR)
def test_a_memory(store: MemoryStore, phone: MemoryStore, devices: Devices, far: int) -> None:
    kept = store.add("Said first.")
    devices.sync(store, phone)
    collection = store._opened.vault.settings.personal
    said: Memory = replace(kept, text="Said by the thief.", collection=collection)
    version = Version(THIEF, 1, far, digest(said), packed(Content(said)), exact_digest(said))
    register = Register(kept.id, {THIEF: 1}, (version,))
    written_by_thief(store, devices, Opening((1,), {THIEF: 1}), Sent(register))
    (report,) = devices.sync(store)
    assert bool(report.ignored) == (far > LATEST)
    devices.sync(phone)
    phone.edit(kept.id, text="Said last.")
    devices.sync(phone, store, phone)
    assert store.get(kept.id).text == phone.get(kept.id).text == "Said last."
    assert held(store) == held(phone)
