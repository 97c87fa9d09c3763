"""The operating system's keyring as a key slot, through the keyring package's own interface."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_store.errors import LockedError, WrongKeyError
from memory_store.store import MemoryStore
from memory_store.unlocking import open_store

keyring = pytest.importorskip("keyring", reason="the keyring extra is not installed")


def test_a_key_in_the_keyring_opens_its_vault_without_being_asked_for(
    tmp_path: Path, private_folders: Path, tiny_model: Path, os_keyring: dict[tuple[str, str], str]
) -> None:
    path = tmp_path / "notes.db"
    store, _ = MemoryStore.create(path, keyring=True, embedder=str(tiny_model))
    memory = store.add("The key never lay in a file.")
    store.lock()
    assert [name for _, name in os_keyring] == [str(path)]
    with open_store(path) as opened:
        assert opened.get(memory.id).text == "The key never lay in a file."


def test_an_emptied_or_foreign_keyring_entry_is_distinguished(
    tmp_path: Path, private_folders: Path, os_keyring: dict[tuple[str, str], str]
) -> None:
    for name in ("one.db", "two.db"):
        MemoryStore.create(tmp_path / name, keyring=True)[0].lock()
    ours, theirs = os_keyring
    os_keyring[ours] = os_keyring[theirs]
    with pytest.raises(WrongKeyError, match="key in the OS keyring"):
        MemoryStore.open(tmp_path / "one.db", keyring=True)
    del os_keyring[ours]
    with pytest.raises(LockedError, match="holds no key"):
        MemoryStore.open(tmp_path / "one.db", keyring=True)
