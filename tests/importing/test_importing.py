"""A folder of notes goes in: what is new, changed, unchanged, broken, and what a kill leaves.

Also when a note was written, as far as time stamps and front matter say in turn; and how far an
import is, while a batch is embedded too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from reading_files import write

from memory_store.importing import batch
from memory_store.session import entries
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
    notes = write(tmp_path / "notes", good="Fine.", bad="---\ntags: &all [a]\n---\nText.")
    (notes / "odd.md").write_text("---\ntags: !include roses\n---\nRoses.")
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
        assert after - batch.BATCH_MEMORIES <= kept <= after, (
            "a slow machine writes smaller batches"
        )
        assert again.verify()["failures"] == []
        report = again.import_paths([notes])
        assert (report.imported, report.unchanged) == (200 - kept, kept)
        assert len(again.list(limit=500)) == 200
        assert again.verify()["failures"] == []


def stamped(file: Path, text: str, at: str) -> None:
    file.write_text(text)
    os.utime(file, (0, datetime.fromisoformat(at).timestamp()))


def test_an_older_copy_that_is_put_back_is_no_younger_than_itself(
    store: MemoryStore, tmp_path: Path
) -> None:
    note = tmp_path / "note.md"
    stamped(note, "As of 2024.", "2024-05-01T00:00:00Z")
    store.import_paths([note], embed=False)
    stamped(note, "As of 2020.", "2020-05-01T00:00:00Z")
    assert store.import_paths([note], embed=False).replaced == 1
    (memory,) = store.list()
    assert (memory.created, memory.updated) == ("2020-05-01T00:00:00Z", "2020-05-01T00:00:00Z")


@pytest.mark.parametrize(
    ("first", "then", "created"),
    [
        ("2024-05-01T00:00:00Z", "2020-05-01T00:00:00Z", "2020-05-01T00:00:00Z"),
        ("2024-05-01T00:00:00.5Z", "2024-05-01T00:00:00Z", "2024-05-01T00:00:00Z"),
        ("2024-05-01T00:00:00Z", "2024-05-01T00:00:00.5Z", "2024-05-01T00:00:00Z"),
    ],
)
def test_a_change_that_is_dated_back_takes_the_beginning_with_it(
    store: MemoryStore, tmp_path: Path, first: str, then: str, created: str
) -> None:
    note = tmp_path / "note.md"
    for updated in (first, then):
        note.write_text(f"---\nupdated: {updated}\n---\nAlpha.")
        store.import_paths([note], embed=False)
    (memory,) = store.list()
    assert memory.created == created
    assert datetime.fromisoformat(memory.updated) == datetime.fromisoformat(then)


def test_an_edited_file_makes_its_memory_no_younger_unless_it_says_when_it_was_written(
    store: MemoryStore, tmp_path: Path
) -> None:
    note = tmp_path / "note.md"
    written, changed = "2020-05-01T00:00:00Z", "2024-05-01T00:00:00Z"

    def imported(text: str, at: str) -> tuple[str, str]:
        stamped(note, text, at)
        store.import_paths([note], embed=False)
        (memory,) = store.list()
        return memory.created[:4], memory.updated[:4]

    assert imported("Alpha.", written) == ("2020", "2020")
    assert imported("Alpha, mended.", changed) == ("2020", "2024")
    assert imported("---\ncreated: 2018-05-01\n---\nAlpha.", changed)[0] == "2018"
    assert imported("Alpha, mended again.", changed) == ("2018", "2024")


WORDS = ("car", "holiday", "money", "dog", "supper", "house")


def folder(path: Path, notes: int) -> Path:
    texts = (
        " ".join(WORDS[(number + i) % len(WORDS)] for i in range(1 + 9 * number))
        for number in range(notes)
    )
    return write(path, **{f"{n:02}": f"Note {n}. {text}" for n, text in enumerate(texts)})


def test_files_are_done_by_and_by_while_their_batch_is_embedded(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "EMBEDDED_AT_ONCE", 4)
    monkeypatch.setattr(batch, "BATCH_SECONDS", 600)
    steps: list[tuple[int, int | None]] = []
    windows: list[tuple[int, int]] = []
    report = store.import_paths(
        folder(tmp_path / "notes", 12),
        progress=lambda name, done, total: steps.append((done, total)),
        embedded=lambda done, total: windows.append((done, total)),
    )
    assert report.imported == 12
    assert {total for _, total in steps} == {12}
    done = [done for done, _ in steps]
    assert done == sorted(done)
    assert len(set(done)) > 4, done
    assert (done[0], done[-1]) == (0, 12)
    (total,) = {total for _, total in windows}
    assert [done for done, _ in windows] == [*range(0, total, 4), total]


def test_vectors_are_the_same_however_a_batch_is_cut(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [one.read_text() for one in folder(tmp_path / "notes", 40).iterdir()]
    contents = {str(number).encode(): ("Title", text) for number, text in enumerate(texts)}
    cut = entries.embed_contents(store.embedder(), contents)
    monkeypatch.setattr(entries, "EMBEDDED_AT_ONCE", 10_000)
    whole = entries.embed_contents(store.embedder(), contents)
    for tag in contents:
        assert cut[tag].spans == whole[tag].spans
        assert np.array_equal(cut[tag].vectors, whole[tag].vectors)
