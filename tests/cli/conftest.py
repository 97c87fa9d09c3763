"""A private corner of the file system for each test, and vaults made by the command itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from private import set_private
from typing_commands import Vault, run

NOTES = {
    "lease.md": (
        "---\ntitle: Lease of the flat\ntopics: [home, contracts]\ntype: fact\n"
        "created: 2024-03-02\n---\n"
        "The lease of the flat in Lisbon ends on 31 May. The deposit is two months' rent.\n"
    ),
    "bread.md": (
        "# Rye bread\n\nFeed the sourdough in the evening. Bake at 240 degrees with steam, "
        "then 45 minutes at 200. #baking #home\n"
    ),
    "travel/lisbon.md": (
        "# Three days in Lisbon\n\nTram 28 early in the morning, before the queues. "
        "Pastéis in Belém. #travel\n"
    ),
    "steuer.md": (
        "# Steuererklärung\n\nDie Frist für die Steuererklärung endet am 31. Juli. Belege für das "
        "Arbeitszimmer beilegen. #steuer\n"
    ),
    "backup.txt": "Restic runs every night at two and keeps thirty daily snapshots.\n",
}


@pytest.fixture(autouse=True)
def _private_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of their own, no network, no key of the person who runs the tests."""
    set_private(monkeypatch, tmp_path / "private")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MEMORY_STORE_MODEL", raising=False)


@pytest.fixture
def make_vault(tmp_path: Path) -> Callable[[str], Vault]:
    def make(name: str) -> Vault:
        path, key_file = tmp_path / name, tmp_path / "keys" / f"{name}.key"
        result = run("init", str(path), "--key-file", str(key_file), "--json")
        assert result.exit_code == 0, result.output
        return Vault(path, key_file, json.loads(result.stdout)["recovery_code"])

    return make


@pytest.fixture
def empty_vault(make_vault: Callable[[str], Vault]) -> Vault:
    return make_vault("notes.db")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder of five notes in Markdown and plain text."""
    folder = tmp_path / "notes"
    for name, text in NOTES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def vault(empty_vault: Vault, notes: Path) -> Vault:
    """A vault that holds the five notes, without vectors."""
    result = empty_vault.run("import", str(notes), "--no-embed")
    assert result.exit_code == 0, result.output
    return empty_vault


@pytest.fixture
def embedded(vault: Vault, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """The vault with vectors of the tiny model."""
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    assert vault.run("reindex").exit_code == 0
    return vault
