"""Settings that were chosen on one device hold on the others; what only one can know does not."""

from __future__ import annotations

import pytest
from devices import Devices

from memory_store.records import search_request
from memory_store.store import MemoryStore


def saved(store: MemoryStore) -> dict[str, object]:
    return {one.name: one.request() for one in store.searches.list()}


def test_what_was_chosen_last_counts_on_both(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    store.set_trash(7)
    store.searches.save("root", "rent", search_request("when does the lease end"))
    store.searches.save("root", "heron", search_request("heron", topic=["weir"]))
    devices.sync(phone, store, phone)
    assert (phone.trash.days(), saved(phone)) == (7, saved(store))
    phone.set_trash(30)  # as in a new vault, and chosen all the same
    phone.searches.remove("root", "rent")
    phone.searches.rename("root", "heron", "birds")
    devices.sync(phone, store)
    assert (store.trash.days(), [*saved(store)]) == (30, ["birds"])
    assert store.searches.find("root", "birds").id == phone.searches.find("root", "birds").id


def test_a_search_that_two_devices_renamed_is_there_once(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    store.searches.save("root", "heron", search_request("heron"))
    devices.sync(store, phone)
    store.searches.rename("root", "heron", "birds")
    phone.searches.rename("root", "heron", "water birds")
    devices.sync(store, phone, store, phone, store)
    assert [*saved(store)] == [*saved(phone)] == ["water birds"]


def test_a_feed_stays_with_the_device_that_gives_it(
    store: MemoryStore, phone: MemoryStore, devices: Devices
) -> None:
    made = store.searches.save("root", "heron", search_request("heron"))
    _, token = store.searches.make_feed("root", "heron")
    store.sync_with_copy(phone)
    assert phone.searches.of_feed(made.id, token) is None
    phone.searches.rename("root", "heron", "birds")
    phone.searches.rename("root", "birds", "heron")
    phone.sync_with_copy(store)
    assert store.searches.of_feed(made.id, token) is not None


@pytest.mark.parametrize("times", [1, 2])
def test_nothing_is_written_where_nothing_was_chosen(
    store: MemoryStore, phone: MemoryStore, devices: Devices, times: int
) -> None:
    store.set_trash(7)
    devices.sync(store, phone, store)
    before = devices.files()
    devices.sync(*[store, phone] * times)
    assert devices.files() == before
