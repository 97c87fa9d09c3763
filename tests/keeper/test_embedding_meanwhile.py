"""A keeper gives memories that were imported in words alone their vectors, in the background."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from keeping_open import KeptOpen, by_keeper, start, until

from memory_store.cli import main
from memory_store.store import MemoryStore


def test_what_an_import_left_is_embedded(
    vault: KeptOpen, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path, notes = tmp_path / "left.db", tmp_path / "notes"
    store, _ = MemoryStore.create(path, key_file=vault.key_file)
    store.lock()
    notes.mkdir()
    for number in range(5):
        (notes / f"{number}.md").write_text(f"# Note {number}\n\nThe weir is inspected in May.")
    words = ["import", str(path), str(notes), "--no-embed", "--key-file", str(vault.key_file)]
    with pytest.raises(SystemExit):
        main.main(words)
    kept = start(path, vault.key_file)

    def embedded() -> bool:
        capfdbinary.readouterr()
        return json.loads(by_keeper(capfdbinary, "stats", str(path), "--json")[1])["vectors"] == 5

    try:
        until(embedded)
    finally:
        kept.lock()
