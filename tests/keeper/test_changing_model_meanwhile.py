"""A vault gets another model in the background, while a keeper answers searches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from keeping_open import KeptOpen, by_itself, by_keeper, start, until

from memory_store.keeper import launch
from memory_store.store import MemoryStore


@pytest.fixture
def notes(vault: KeptOpen, tmp_path: Path) -> KeptOpen:
    """Notes that the usual model has embedded."""
    path = tmp_path / "changing.db"
    store, _ = MemoryStore.create(path, key_file=vault.key_file)
    with store:
        for number in range(40):
            store.add(f"Note {number} about the automobile")
    return KeptOpen(path, vault.key_file, launch.socket_for(path))


@pytest.mark.parametrize("open_before", [True, False])
def test_it_ends_at_once_and_the_process_goes_on(
    notes: KeptOpen,
    second_model: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    open_before: bool,
) -> None:
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(notes.key_file))
    if open_before:
        start(notes.path, notes.key_file)

    def searched() -> dict[str, object]:
        capfdbinary.readouterr()
        words = ("search", str(notes.path), "car", "--mode", "vector", "--json")
        code, out, _ = by_keeper(capfdbinary, *words)
        assert code == 0
        found = json.loads(out)
        assert found["rows"]  # by the earlier model, the later one, or both
        return found

    try:
        words = ["--collection", "personal", "--embedder", str(second_model), "--background"]
        code, out, _ = by_itself(capfdbinary, "reindex", str(notes.path), *words)
        assert code == 0
        assert b"40 memories to embed, in the background" in out
        until(lambda: searched()["degraded"] == [], seconds=60)
        with MemoryStore.open(notes.path, key_file=notes.key_file) as store:
            (info,) = store.collections.list()
            assert info.embedder == second_model.name
            assert store.collections.stale() == {}
        code, out, _ = by_itself(capfdbinary, "reindex", str(notes.path), "--background")
        assert out == b"Every memory is embedded.\n"
    finally:
        notes.lock()


def test_all_and_background_do_not_go_together(
    notes: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(notes.key_file))
    code, _, err = by_itself(capfdbinary, "reindex", str(notes.path), "--all", "--background")
    assert code == 2
    assert b"--all is not done in the background" in err
