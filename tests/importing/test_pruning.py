"""What ``--prune`` forgets: all that left its source, and nothing that the asker may not read."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from reading_files import write

from memory_store.records import ImportReport
from memory_store.scopes import EVERYTHING, Scope
from memory_store.store import MemoryStore


def rows(file: Path, *numbers: int, collection: str | None = None) -> Path:
    """An NDJSON file of these rows; the last one says which collection it belongs to."""
    written = [{"id": f"n{number}", "text": f"Row {number}."} for number in numbers]
    if collection is not None:
        written[-1]["collection"] = collection
    file.write_text("".join(json.dumps(row) + "\n" for row in written), encoding="utf-8")
    return file


def texts(store: MemoryStore) -> list[str]:
    return sorted(memory.text for memory in store.list())


def personal_of(store: MemoryStore) -> Scope:
    return Scope.of(one.id for one in store.collections.list() if one.name == "personal")


def prune(store: MemoryStore, path: Path, *, dry_run: bool = False) -> ImportReport:
    return store.import_paths([path], prune=True, dry_run=dry_run)


def test_a_row_that_left_is_pruned_though_the_file_was_imported_meanwhile(
    store: MemoryStore, tmp_path: Path
) -> None:
    file = rows(tmp_path / "rows.ndjson", 1, 2)
    store.import_paths([file])
    rows(file, 1)
    assert store.import_paths([file]).unchanged == 1
    report = prune(store, file)
    assert (report.unchanged, report.pruned) == (1, 1)
    assert texts(store) == ["Row 1."]


def test_a_row_that_left_its_table_is_named_and_pruned_and_other_tables_keep_theirs(
    store: MemoryStore, tmp_path: Path
) -> None:
    file = tmp_path / "blog.db"
    with closing(sqlite3.connect(file)) as blog, blog:
        for table in ("posts", "drafts"):
            blog.execute(f"create table {table} (id integer primary key, body text)")
            blog.execute(f"insert into {table} values (1, 'First of {table}'), (2, 'Second')")
    for table in ("posts", "drafts"):
        store.import_paths([file], table=table)
    (source,) = store.sources()
    assert source.memories == 4
    with closing(sqlite3.connect(file)) as blog, blog:
        blog.execute("delete from posts where id = 2")
    assert store.import_paths([file], table="posts").vanished == (f"{file}#posts: 2",)
    assert store.import_paths([file], table="drafts", prune=True).pruned == 0
    assert store.import_paths([file], table="posts", prune=True).pruned == 1
    assert texts(store) == ["First of drafts", "First of posts", "Second"]


def test_a_ref_that_left_a_note_is_pruned_though_the_note_was_imported_meanwhile(
    store: MemoryStore, tmp_path: Path
) -> None:
    note = tmp_path / "note.md"
    for ref in ("lease", "rent"):
        note.write_text(f"---\nref: {ref}\n---\nDue in May.")
        store.import_paths([note])
    assert prune(store, note).pruned == 1
    assert [memory.ref for memory in store.list()] == ["rent"]


@pytest.mark.parametrize("searched", [False, True])
def test_what_the_asker_may_not_read_is_neither_named_nor_pruned(
    store: MemoryStore, tmp_path: Path, searched: bool
) -> None:
    file = rows(tmp_path / "rows.ndjson", 1, 2, 3, collection="work")
    store.import_paths([file])
    personal = personal_of(store)
    scope = EVERYTHING if searched else personal
    asker = store.limited_to(scope, readable=personal)
    rows(file, 1)
    for dry_run in (True, False):
        report = prune(asker, file, dry_run=dry_run)
        assert report.forgotten == (f"{file}: n2",)
    assert texts(store) == ["Row 1.", "Row 3."]
    assert prune(store, file).pruned == 1


def test_a_note_that_left_and_may_not_be_read_is_passed_over(
    store: MemoryStore, tmp_path: Path
) -> None:
    notes = write(tmp_path / "notes", kept="Kept.", moved="---\ncollection: work\n---\nMoved.")
    store.import_paths([notes])
    personal = personal_of(store)
    (notes / "moved.md").unlink()
    assert prune(store.limited_to(personal), notes).pruned == 0
    assert texts(store) == ["Kept.", "Moved."]


def test_what_other_globs_leave_out_is_kept_whatever_its_ref(
    store: MemoryStore, tmp_path: Path
) -> None:
    write(tmp_path, kept="Kept.", lease="---\nref: lease\n---\nThe lease.")
    rows(tmp_path / "rows.ndjson", 1)
    store.import_paths([tmp_path], glob=["*.md", "*.ndjson"])
    report = store.import_paths([tmp_path], glob=["kept.md"], prune=True)
    assert report.pruned == 0
    assert texts(store) == ["Kept.", "Row 1.", "The lease."]


@pytest.mark.parametrize("outside", [False, True])
def test_a_note_that_gave_itself_a_ref_is_pruned_with_its_file(
    store: MemoryStore, tmp_path: Path, outside: bool
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("Another file.")
    ref = str(elsewhere) if outside else "lease"
    gone = f"---\nref: {ref}\n---\nThe lease."
    notes = write(tmp_path / "notes", kept="Kept.", gone=gone)
    store.import_paths([notes])
    (notes / "gone.md").unlink()
    assert prune(store, notes).forgotten == (f"{notes}: {ref}",)
    assert texts(store) == ["Kept."]


def test_nothing_is_forgotten_where_a_folder_cannot_be_listed(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = write(tmp_path / "notes", gone="Gone.", kept="Kept.")
    closed = write(notes / "closed", lease="---\nref: lease\n---\nThe lease.")
    rows(closed / "rows.ndjson", 1)
    store.import_paths([notes], glob=["*.md", "*.ndjson"])
    (notes / "gone.md").unlink()
    listed = os.scandir

    def scandir(path: Any) -> Any:  # no mode of a folder keeps an administrator out
        if Path(path) == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    with monkeypatch.context() as system:
        system.setattr(os, "scandir", scandir)
        report = prune(store, notes)
    assert report.pruned == 0
    assert any(name.endswith("closed") and "nothing of" in why for name, why in report.failures), (
        report.failures
    )
    assert texts(store) == ["Gone.", "Kept.", "Row 1.", "The lease."]
    assert prune(store, notes).pruned == 1


def test_prune_forgets_what_left_the_source_and_only_that(
    store: MemoryStore, tmp_path: Path
) -> None:
    notes = write(tmp_path / "notes", a="Alpha.", b="Beta.", c="Gamma.")
    elsewhere = write(tmp_path / "other", d="Delta.")
    store.import_paths([notes, elsewhere])
    store.add("By hand.")
    (notes / "b.md").unlink()
    assert store.import_paths([notes]).pruned == 0
    assert store.import_paths([notes], prune=True, dry_run=True).pruned == 1
    assert len(store.list()) == 5
    assert store.import_paths([notes], exclude=["c.md"], prune=True).pruned == 1
    assert sorted(m.text for m in store.list()) == ["Alpha.", "By hand.", "Delta.", "Gamma."]
    assert store.verify()["failures"] == []


def test_prune_forgets_nothing_of_a_source_that_is_not_there_or_empty(
    store: MemoryStore, tmp_path: Path
) -> None:
    notes = write(tmp_path / "notes", a="Alpha.", b="Beta.")
    store.import_paths([notes])
    notes.rename(tmp_path / "away")
    assert store.import_paths(prune=True).pruned == 0
    notes.mkdir()  # a mount point without its disk
    report = store.import_paths(prune=True)
    assert (report.pruned, report.failed) == (0, 1)
    assert len(store.list()) == 2


def test_prune_keeps_what_cannot_be_read_today(store: MemoryStore, tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", a="Alpha.", b="Beta.", c="Gamma.")
    store.import_paths([notes])
    (notes / "a.md").write_text("---\ntags: &all [unclosed]\n---\nAlpha.")
    (notes / "b.md").write_bytes(b"\x00\x01binary\x00")
    report = store.import_paths([notes], prune=True)
    assert (report.pruned, report.failed, report.skipped) == (0, 1, 1)
    assert len(store.list()) == 3
