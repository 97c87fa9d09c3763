"""``memory-store backup`` and ``export``: copies that open, and that come back."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

from typing_commands import Vault, run


def test_a_backup_opens_with_the_same_key(vault: Vault, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "copy.db"
    copy.parent.mkdir()
    assert run("backup", str(vault.path), str(copy)).exit_code == 0
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    again = Vault(copy, vault.key_file, vault.recovery_code)
    assert {m["id"] for m in again.json("list")} == {m["id"] for m in vault.json("list")}
    assert [p.name for p in copy.parent.iterdir() if p.suffix == ".db"] == ["copy.db"]


def test_a_backup_never_overwrites(vault: Vault, tmp_path: Path) -> None:
    taken = tmp_path / "taken.db"
    taken.write_text("precious")
    result = run("backup", str(vault.path), str(taken))
    assert result.exit_code == 2
    assert taken.read_text() == "precious"


def test_an_export_imported_again_gives_the_same_memories(
    vault: Vault, make_vault: Callable[[str], Vault], tmp_path: Path
) -> None:
    folder = tmp_path / "plain"
    assert vault.run("export", str(folder)).exit_code == 0
    other = make_vault("other.db")
    assert other.run("import", str(folder), "--no-embed").exit_code == 0
    kept = ("id", "title", "text", "topics", "type", "created")

    def told(from_vault: Vault) -> list[tuple[object, ...]]:
        return sorted(tuple(map(str, (m[k] for k in kept))) for m in from_vault.json("list"))

    assert told(other) == told(vault)


def test_an_export_can_be_piped(vault: Vault) -> None:
    result = vault.run("export", "-", "--ndjson")
    assert result.exit_code == 0, result.output
    exported = {json.loads(line)["id"] for line in result.stdout.splitlines()}
    assert exported == {m["id"] for m in vault.json("list")}


def test_an_export_fills_new_folders_only(vault: Vault, notes: Path) -> None:
    before = sorted(notes.rglob("*"))
    result = vault.run("export", str(notes))
    assert result.exit_code == 1
    assert str(notes) in result.stderr
    assert sorted(notes.rglob("*")) == before
