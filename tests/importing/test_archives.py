"""An archive that is named is imported by what is in it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import zip_files
from click.testing import CliRunner
from reading_files import read

from memory_store.cli import main
from memory_store.importing import archive
from memory_store.store import MemoryStore

CONVERSATION: dict[str, Any] = {
    "uuid": "c-1",
    "name": "The lease",
    "created_at": "2024-05-01T12:00:00Z",
    "updated_at": "2024-05-01T13:00:00Z",
    "chat_messages": [{"sender": "human", "text": "When does it end?"}],
}


def zipped(files: dict[str, str | bytes], folder: Path, name: str = "export.zip") -> Path:
    path = folder / name
    path.write_bytes(zip_files.zipped(files))
    return path


def vault(here: Path) -> MemoryStore:
    store, _ = MemoryStore.create(here / "notes.db", key_file=here.parent / "key")
    return store


def test_a_plain_folder_of_notes_keeps_its_paths_and_leaves_pictures_by_name(here: Path) -> None:
    zipped(
        {
            "vault/trips/lisbon.md": "# Lisbon\n\nA tram",
            "vault/a.png": b"\x89PNG",
            "vault/a.db": b"SQLite",
            "vault/b.txt": "B",
        },
        here,
    )
    found = read("export.zip")
    assert sorted((one.title, one.ref) for one in found.drafts) == [
        ("Lisbon", "trips/lisbon.md"),
        ("b", "b.txt"),
    ]
    assert found.skips == {
        "export.zip/vault/a.png": "no reader for .png",
        "export.zip/vault/a.db": ".db is read from a disk alone: "
        "name the file itself in memory-store import",
    }


def test_an_export_of_conversations_gives_them_and_not_what_lies_beside(here: Path) -> None:
    files = {"conversations.json": json.dumps([CONVERSATION]), "users.json": "[]", "chat.html": "x"}
    zipped({**files}, here)
    found = read("export.zip")
    assert [(one.title, one.ref, one.source) for one in found.drafts] == [
        ("The lease", "c-1", "Claude")
    ]
    assert set(found.skips) == {"export.zip/users.json", "export.zip/chat.html"}


def test_a_newer_export_under_another_name_updates_and_adds_nothing_twice(here: Path) -> None:
    zipped({"conversations.json": json.dumps([CONVERSATION])}, here, "may.zip")
    later = {**CONVERSATION, "name": "The lease, ended"}
    zipped({"conversations.json": json.dumps([later])}, here, "june.zip")
    with vault(here) as store:
        assert store.import_paths("may.zip", embed=False).imported == 1
        again = store.import_paths("may.zip", embed=False)
        assert (again.imported, again.unchanged) == (0, 1)
        newer = store.import_paths("june.zip", embed=False)
        assert (newer.imported, newer.replaced) == (0, 1)


def test_a_note_gone_from_a_newer_archive_of_the_same_name_can_be_forgotten(here: Path) -> None:
    zipped({"a.md": "alpha", "b.md": "beta"}, here)
    with vault(here) as store:
        assert store.import_paths("export.zip", embed=False).imported == 2
        zipped({"a.md": "alpha"}, here)
        assert store.import_paths("export.zip", embed=False).vanished != ()
        assert store.import_paths("export.zip", embed=False, prune=True).pruned == 1
        os.unlink("export.zip")
        assert store.import_paths("export.zip", embed=False, prune=True).pruned == 0


def test_an_archive_in_parts_is_opened_and_no_deeper(here: Path) -> None:
    part = zip_files.zipped({"a.md": "alpha", "deeper.zip": zip_files.zipped({"b.md": "beta"})})
    zipped({"Part-1.zip": part}, here)
    found = read("export.zip")
    assert found.refs == ["a.md"]
    assert found.skips == {"export.zip/Part-1.zip/deeper.zip": "an archive within an archive"}


@pytest.mark.parametrize("name", ["../out.md", "/abs.md", "a/../../x.md", "C:\\x.md"])
def test_no_name_leads_out_of_its_folder(here: Path, name: str) -> None:
    zipped({name: "x", "in.md": "y"}, here)
    found = read("export.zip")
    assert found.refs == ["in.md"]
    assert [*found.failures.values()] == ["its name leads out of its folder"]


def test_archives_made_to_harm_are_named_and_cost_nothing(here: Path) -> None:
    zipped({"zeros.txt": b"0" * 20_000_000, "ok.md": "kept"}, here)
    found = read("export.zip")
    assert (found.refs, [*found.failures]) == (["ok.md"], ["export.zip/zeros.txt"])
    small = archive.Room(files=1, bytes=10)
    (many,) = archive.in_archive_file(here / "export.zip", "export.zip", small)
    assert "1 at most" in many.reason  # type: ignore[union-attr]
    (here / "broken.zip").write_bytes((here / "export.zip").read_bytes()[:500])
    assert read("broken.zip").failures == {"broken.zip": "no archive, or a broken one"}


def test_patterns_choose_among_the_files_of_an_archive(here: Path) -> None:
    zipped({"a.md": "alpha", "drafts/b.md": "beta", "c.txt": "gamma"}, here)
    assert read("export.zip", glob=["*.md"], exclude=["drafts/**"]).refs == ["a.md"]


def test_the_command_takes_an_archive(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(here.parent / "key"))
    vault(here).close()
    zipped({"a.md": "alpha", "b.md": "beta"}, here)
    run = CliRunner().invoke(main, ["import", "notes.db", "export.zip", "--no-embed"])
    assert "imported 2, unchanged 0" in run.output
