"""The operating system's keyring as a key slot, through the keyring package's own interface."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_store.records import LockedError, WrongKeyError
from memory_store.store import MemoryStore
from memory_store.unlocking import open_store

keyring = pytest.importorskip("keyring", reason="the keyring extra is not installed")


@pytest.fixture
def backend() -> Iterator[dict[tuple[str, str], str]]:
    """A keyring that lives in this process: what it holds, by service and name."""
    held: dict[tuple[str, str], str] = {}

    class InProcess(keyring.backend.KeyringBackend):  # type: ignore[misc, name-defined]
        priority = 1

        def get_password(self, service: str, username: str) -> str | None:
            return held.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            held[service, username] = password

    before = keyring.get_keyring()
    keyring.set_keyring(InProcess())
    yield held
    keyring.set_keyring(before)


def test_a_key_in_the_keyring_opens_its_vault_without_being_asked_for(
    tmp_path: Path, private_folders: Path, tiny_model: Path, backend: dict[tuple[str, str], str]
) -> None:
    path = tmp_path / "notes.db"
    store, _ = MemoryStore.create(path, keyring=True, embedder=str(tiny_model))
    memory = store.add("The key never lay in a file.")
    store.lock()
    assert [name for _, name in backend] == [str(path)]
    with open_store(path) as opened:
        assert opened.get(memory.id).text == "The key never lay in a file."


def test_an_emptied_or_foreign_keyring_entry_is_told_apart(
    tmp_path: Path, private_folders: Path, backend: dict[tuple[str, str], str]
) -> None:
    for name in ("one.db", "two.db"):
        MemoryStore.create(tmp_path / name, keyring=True)[0].lock()
    ours, theirs = backend
    backend[ours] = backend[theirs]
    with pytest.raises(WrongKeyError, match="key in the OS keyring"):
        MemoryStore.open(tmp_path / "one.db", keyring=True)
    del backend[ours]
    with pytest.raises(LockedError, match="holds no key"):
        MemoryStore.open(tmp_path / "one.db", keyring=True)
