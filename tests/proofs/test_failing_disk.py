"""A disk that fails at one call, or from then on: an error that names the file and the cause,
nothing that was committed is lost, never another text, and the vault goes on.

The calls are those by which SQLite reads, writes, flushes and cuts the vault's files. ``strace``
lets the one that was drawn return EIO, or that one and all like it that follow.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import failing
import pytest
from counts import counted
from disks import FAILING
from tracing import FAILED, Traced, traced

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

KINDS = {
    "reading": ("pread64", "read"),
    "writing": ("pwrite64", "write"),
    "flushing": ("fdatasync", "fsync"),
    "cutting": ("ftruncate",),
}
CALLS = [call for calls in KINDS.values() for call in calls]
FAULTS = 10  # of each kind, where there are as many
SURE = 0.9  # of the calls of one run happen in every run
EARLIER, NOTES = 12, 4
DAMAGED = "the file is damaged"  # so SQLite calls a page that it cannot read
EDITED = " Edited."


@dataclass(frozen=True)
class Scene:
    """A vault that no process has open, what it holds, and what is to be imported into it."""

    vault: Path
    key_file: Path
    texts: dict[str, str]
    notes: Path
    folder: Path

    def at_work(self, name: str, *options: str) -> tuple[Path, Traced]:
        """A copy of the vault, and what ``failing.py`` said and called at work on it."""
        (self.folder / name).mkdir()
        path = self.folder / name / self.vault.name
        shutil.copyfile(self.vault, path)
        given = {"path": str(path), "key_file": str(self.key_file), "notes": str(self.notes)}
        its_files = [f"-P{path}{end}" for end in ("", "-wal", "-shm", "-journal")]
        script = [failing.__file__, json.dumps(given)]
        return path, traced(path.parent / "calls", script, CALLS, *its_files, *options)

    @property
    def to_import(self) -> list[str]:
        return sorted(note.read_text() for note in self.notes.iterdir())


@dataclass(frozen=True)
class Kept:
    """What a vault must hold: what each memory may say by now, and the notes that are in it."""

    texts: dict[str, set[str]]
    imported: set[str]
    may_come: set[str]

    @classmethod
    def of(cls, scene: Scene) -> Kept:
        """At first: each memory as it was or edited."""
        texts = {memory: {text, text + EDITED} for memory, text in scene.texts.items()}
        return cls(texts, set(), set(scene.to_import))

    def hear(self, said: str) -> list[str]:
        """Hold what was read against what had been written; returns what was refused."""
        refusals = []
        for what, reported in map(json.loads, said.splitlines()):
            if what == "refused":
                refusals.append(reported)
            elif what == "edited":
                self.texts[reported] = {
                    text for text in self.texts[reported] if text.endswith(EDITED)
                }
            elif what == "imported":
                self.imported.add(reported)
            else:
                self._check_read(*reported)
        return refusals

    def _check_read(self, memory: str, text: str) -> None:
        assert text in self.texts.get(memory, self.may_come)

    def check_reopened(self, scene: Scene, path: Path) -> None:
        """The disk is sound again: all of it is there, and what was begun can be ended."""
        with MemoryStore.open(path, key_file=scene.key_file) as store:
            assert store.verify()["failures"] == []
            there = {memory.id: memory.text for memory in store.list(limit=100)}
            assert there.keys() >= self.texts.keys()
            for memory, text in there.items():
                self._check_read(memory, text)
            notes = [text for memory, text in there.items() if memory not in self.texts]
            assert self.imported <= set(notes)
            again = store.import_paths([scene.notes], embed=False)
            assert (again.unchanged, again.imported) == (len(notes), NOTES - len(notes))
            after = {memory.id: memory.text for memory in store.list(limit=100)}
            assert there.items() <= after.items()
            come = [text for memory, text in after.items() if memory not in self.texts]
            assert sorted(come) == scene.to_import
            found = store.search("sluice", mode="keyword", limit=32).rows
            assert {row.id for row in found} == set(after)


@pytest.fixture
def scene(make_store: Callable[..., MemoryStore], key_file: Path, tmp_path: Path) -> Scene:
    drafts = [MemoryDraft(f"Earlier {n}, on the sluice and its keeper.") for n in range(EARLIER)]
    with make_store() as store:
        store.add_many(drafts)
        texts = {memory.id: memory.text for memory in store.list(limit=100)}
    notes, folder = tmp_path / "notes", tmp_path / "failing"
    notes.mkdir()
    folder.mkdir()
    for number in range(NOTES):
        (notes / f"{number}.md").write_text(f"Note {number}, on the sluice and the race.")
    return Scene(store.path, key_file, texts, notes, folder)


@pytest.mark.sampled(0)
def test_a_call_that_fails_is_said_and_loses_nothing(scene: Scene) -> None:
    _, whole = scene.at_work("whole")
    assert '"refused"' not in whole.stdout
    for kind in KINDS:
        refusals: list[str] = []
        for call, number, following in drawn(kind, whole):
            name = f"{call}-{number}{following}"
            path, run = scene.at_work(name, f"-einject={call}:error=EIO:when={number}{following}")
            print(f"{name}: {run.stdout}")  # shown when a check of it fails
            assert any(FAILED in line for line in run.calls), "no call failed"
            kept = Kept.of(scene)
            refusals += kept.hear(run.stdout)
            kept.check_reopened(scene, path)
        assert refusals, f"nothing was refused at {kind}"
        causes = (FAILING, DAMAGED) if kind == "reading" else (FAILING,)
        for line in refusals:
            assert any(f"notes.db: {cause}" in line for cause in causes), line


def drawn(kind: str, whole: Traced) -> list[tuple[str, int, str]]:
    """Different calls that are to fail, alone or (``+``) with all like them that follow."""
    there = [
        (call, number, following)
        for call in KINDS[kind]
        for number in range(1, int(SURE * len(whole.named(call))) + 1)
        for following in ("", "+")
    ]
    return random.Random(kind).sample(there, min(counted(FAULTS), len(there)))
