"""A source that changes between two imports: files that were renamed, and files that are gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reading_files import write

from memory_store.actions.export import export_ndjson_folder
from memory_store.store import MemoryStore


def test_a_renamed_file_is_moved_and_not_doubled(store: MemoryStore, tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", lease="# Lease\nIt ends in May.", rent="# Rent\nIt is due.")
    store.import_paths([notes])
    before = {memory.title: memory.id for memory in store.list()}
    (notes / "home").mkdir()
    (notes / "lease.md").rename(notes / "home" / "flat.md")
    report = store.import_paths([notes])
    assert (report.imported, report.unchanged, report.replaced) == (0, 1, 1)
    assert report.moved == (("lease.md", "home/flat.md"),)
    assert not report.vanished
    assert {memory.title: memory.id for memory in store.list()} == before
    assert store.get(before["Lease"]).ref == "home/flat.md"
    assert store.import_paths([notes]).unchanged == 2


def test_a_renamed_note_that_names_its_ref_is_not_forgotten(
    store: MemoryStore, tmp_path: Path
) -> None:
    notes = write(
        tmp_path / "notes", lease="---\nref: lease\ntitle: Lease\n---\nIt ends in May.", rent="Due."
    )
    store.import_paths([notes])
    before = {memory.text: memory.id for memory in store.list()}
    (notes / "lease.md").rename(notes / "flat.md")
    for dry_run in (True, False):
        report = store.import_paths([notes], prune=True, dry_run=dry_run)
        assert (report.unchanged, report.vanished, report.pruned) == (2, (), 0)
    assert {memory.text: memory.id for memory in store.list()} == before
    (notes / "flat.md").unlink()
    assert store.import_paths([notes], prune=True).pruned == 1


def test_a_row_of_an_export_that_went_to_another_file_is_not_forgotten(
    store: MemoryStore, tmp_path: Path
) -> None:
    for text in ("One.", "Two."):
        store.add(text)
    source = tmp_path / "rows"
    export_ndjson_folder(store.every(), source)
    rows = (source / "memories.ndjson").read_text().splitlines()
    options: dict[str, Any] = {"glob": ["*.ndjson"], "prune": True}
    store.import_paths([source], **options)
    (source / "memories.ndjson").write_text(rows[0])
    (source / "other.ndjson").write_text(rows[1])
    for _ in range(2):
        report = store.import_paths([source], **options)
        assert (report.unchanged, report.vanished, report.pruned) == (2, (), 0)


def test_a_copied_file_is_a_memory_of_its_own(store: MemoryStore, tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", lease="The lease.")
    store.import_paths([notes])
    write(notes, copy="The lease.")
    report = store.import_paths([notes])
    assert (report.imported, report.unchanged, report.moved) == (1, 1, ())


def test_each_of_two_renamed_twins_keeps_its_memory(store: MemoryStore, tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", a="# Twin\nThe same.", b="# Twin\nThe same.")
    store.import_paths([notes])
    before = {memory.id for memory in store.list()}
    for name in ("a", "b"):
        (notes / f"{name}.md").rename(notes / f"{name}{name}.md")
    assert len(store.import_paths([notes]).moved) == 2
    assert {memory.id for memory in store.list()} == before


def test_a_note_that_was_edited_here_keeps_its_edit_when_its_file_is_renamed(
    store: MemoryStore, tmp_path: Path
) -> None:
    notes = write(tmp_path / "notes", lease="The lease.")
    store.import_paths([notes])
    (memory,) = store.list()
    store.edit(memory.id, text="The lease, with a remark.")
    (notes / "lease.md").rename(notes / "flat.md")
    assert store.import_paths([notes]).moved == ()
    assert store.get(memory.id).text == "The lease, with a remark."


def test_what_is_gone_is_named_and_kept_until_it_is_pruned(
    store: MemoryStore, tmp_path: Path
) -> None:
    notes = write(tmp_path / "notes", gone="Gone.", kept="Kept.")
    store.import_paths([notes])
    (notes / "gone.md").unlink()
    report = store.import_paths([notes])
    assert (report.vanished, report.pruned) == ((str(notes / "gone.md"),), 0)
    assert len(store.list()) == 2
    assert store.import_paths([notes], prune=True).forgotten == report.vanished
    assert store.import_paths([notes]).vanished == ()
