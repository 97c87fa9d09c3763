"""A folder of notes goes in: what is new, changed, unchanged, broken, and what a kill leaves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from writing_notes import write

from memory_store.importing.batch import BATCH_MEMORIES
from memory_store.store import MemoryStore

Make = Callable[..., MemoryStore]


def test_import_skips_what_is_unchanged_and_replaces_what_changed(
    store: MemoryStore, tmp_path: Path
) -> None:
    notes = write(tmp_path / "notes", a="# Alpha\n\nFirst note.", b="# Beta\n\nSecond note.")
    assert store.import_paths([notes]).summary() == (
        "imported 2, unchanged 0, replaced 0, skipped 0, failed 0"
    )
    before = {m.ref: m for m in store.list()}
    (notes / "b.md").write_text("# Beta\n\nSecond note, mended.")
    report = store.import_paths([notes])
    assert (report.imported, report.unchanged, report.replaced) == (0, 1, 1)
    after = {m.ref: m for m in store.list()}
    assert after["a.md"] == before["a.md"]
    assert after["b.md"].id == before["b.md"].id
    assert after["b.md"].version == 2
    assert after["b.md"].text.endswith("mended.")
    assert store.import_paths().unchanged == 2  # every known source again


def test_two_identical_files_are_two_memories_that_share_one_content(
    store: MemoryStore, tmp_path: Path
) -> None:
    text = "The heron stands in the reeds."
    store.import_paths([write(tmp_path / "notes", one=text, two=text, other="Reeds.")])
    assert len(store.list()) == 3
    assert store.stats()["contents"] == 2
    found = store.search("heron", mode="keyword").rows
    assert len(found) == 1


def test_a_dry_run_says_what_would_happen_and_changes_nothing(
    store: MemoryStore, tmp_path: Path
) -> None:
    notes = write(tmp_path / "notes", a="Alpha.", b="Beta.")
    assert store.import_paths([notes], dry_run=True).imported == 2
    assert store.list() == []


def test_one_broken_file_loses_nothing_else(store: MemoryStore, tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", good="Fine.", bad="---\ntags: [unclosed\n---\nText.")
    (notes / "odd.md").write_text(f"---\ntopics: [{'t' * 300}]\n---\nRoses.")
    report = store.import_paths([notes])
    assert (report.imported, report.failed) == (1, 2)
    assert [m.text for m in store.list()] == ["Fine."]
    assert {Path(name.split(":")[0]).name for name, _ in report.failures} == {"bad.md", "odd.md"}
    (notes / "odd.md").write_text("---\ntype: note\n---\nRoses.")
    assert store.import_paths([notes]).imported == 1


def test_no_embed_leaves_vectors_to_reindex(store: MemoryStore, tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", a="The pump is primed by hand.", b="Rain since dawn.")
    store.import_paths([notes], embed=False)
    assert store.stats()["vectors"] == 0
    assert len(store.search("pump", mode="keyword").rows) == 1
    assert store.reindex() == 2
    assert store.reindex() == 0
    assert store.stats()["vectors"] == 2
    assert store.search("pump primed", mode="vector").rows[0].preview.startswith("The pump")
    assert store.verify()["failures"] == []


def test_one_path_may_be_given_as_it_is(store: MemoryStore, tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", a="Alpha.")
    assert store.import_paths(str(notes)).imported == 1
    assert store.import_paths(notes).unchanged == 1


KILLED = """
import os, sys
from memory_store.store import MemoryStore
store = MemoryStore.open(sys.argv[1], key_file=sys.argv[2], embedder=sys.argv[3])
def progress(name, done, total):
    if done >= int(sys.argv[5]):
        os.kill(os.getpid(), 9)
store.import_paths([sys.argv[4]], progress=progress)
"""


@pytest.mark.parametrize("after", [70, 150])
def test_a_killed_import_keeps_its_batches_and_goes_on(
    make_store: Make, key_file: Path, tiny_model: Path, tmp_path: Path, after: int
) -> None:
    store = make_store()
    store.lock()
    notes = write(
        tmp_path / "notes", **{f"n{n:03}": f"Note {n} about the mill race." for n in range(200)}
    )
    died = subprocess.run(
        [sys.executable, "-c", KILLED, store.path, key_file, tiny_model, notes, str(after)],
        check=False,
        timeout=300,
    )
    assert died.returncode == -9
    with MemoryStore.open(store.path, key_file=key_file, embedder=str(tiny_model)) as again:
        kept = len(again.list(limit=500))
        assert after - BATCH_MEMORIES <= kept <= after, "a slow machine writes smaller batches"
        assert again.verify()["failures"] == []
        report = again.import_paths([notes])
        assert (report.imported, report.unchanged) == (200 - kept, kept)
        assert len(again.list(limit=500)) == 200
        assert again.verify()["failures"] == []
