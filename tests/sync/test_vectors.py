"""Vectors that one device made are used on the other, which need not have the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from devices import Devices

from memory_store.store import MemoryStore


@pytest.fixture
def without_model(devices: Devices, store: MemoryStore) -> Callable[[str], MemoryStore]:
    """Makes a device that joins, and embeds nothing itself."""

    def make(name: str) -> MemoryStore:
        path = devices.folder / name / "notes.db"
        path.parent.mkdir()
        made = MemoryStore.join(path, devices.drive, key_file=devices.key_file)
        devices.opened.append(made)
        devices.sync(made)
        return made

    return make


def vectors(store: MemoryStore, memory: str) -> list[list[float]]:
    snapshot = store._opened.vault.snapshot()
    ordinal = snapshot.ordinal_of(memory)
    assert ordinal is not None
    found: list[list[float]] = snapshot.stored_vectors(ordinal).tolist()
    return found


def test_vectors_arrive_bit_by_bit(
    store: MemoryStore, devices: Devices, without_model: Callable[[str], MemoryStore]
) -> None:
    memory = store.add("The lease of the flat ends in June.", title="Lease")
    devices.sync(store)
    tablet = without_model("tablet")
    assert vectors(tablet, memory.id) == vectors(store, memory.id) != []
    assert tablet.embedding().done == 1
    assert tablet.verify(full=True)["failures"] == []


def test_without_vectors_or_with_those_of_another_model_a_memory_is_left_to_be_embedded(
    store: MemoryStore,
    devices: Devices,
    without_model: Callable[[str], MemoryStore],
    second_model: Path,
) -> None:
    first = store.add("The lease of the flat ends in June.")
    devices.sync(store)
    tablet = without_model("tablet")
    store.reindex(embedder=str(second_model))
    second = store.add("The ferry leaves at noon.")
    store.edit(first.id, text="The lease of the flat ends in July.")
    devices.sync(store, tablet)
    assert vectors(tablet, first.id) == vectors(tablet, second.id) == []
    assert tablet.embedding().done == 0
