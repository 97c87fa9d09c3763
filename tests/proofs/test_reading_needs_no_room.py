"""Reading needs no room: a vault on a full or read-only disk is read like any other.

What was committed is there, also where a killed program left it in a log or a journal; what it left
half done is not. Nothing is read that another program is changing meanwhile.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import reading_all
from counts import FULL as EVERYTHING
from frozen import (
    CLOSED,
    DISK_ONLY,
    FILE_ONLY,
    FOLDER_ONLY,
    FULL,
    JOURNAL,
    LEFT,
    NEWEST,
    NO_GROWTH,
    PLACES,
    Frozen,
    frozen,
    left_as,
)

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

EARLIER = "Earlier memory number {}, on the sluice and its keeper."
NOTES = 12
SCENES = (
    [*product(PLACES, LEFT)]
    if EVERYTHING
    else [
        *product(PLACES, [CLOSED]),
        *zip(random.Random().sample(PLACES, 3), LEFT[1:], strict=True),
    ]
)
UNREADABLE = (NO_GROWTH, JOURNAL)
"""What cannot be read: a journal has to be rolled back, and no file may be written anywhere."""
REFUSALS = {
    FULL: "notes.db: the disk is full",
    NO_GROWTH: "notes.db: the disk does not read or write as it should",
    DISK_ONLY: "nothing can be written to notes.db: its disk is read-only",
    FILE_ONLY: "nothing can be written to notes.db: its file is read-only",
    FOLDER_ONLY: "nothing can be written to notes.db: its folder is read-only",
}


@dataclass(frozen=True)
class Vault:
    """A vault as a writer left it, and a way to read it in another place."""

    path: Path
    key_file: Path
    memory: str
    folder: Path

    def read(self, way: str, there: Frozen) -> dict[str, Any]:
        (self.folder / "elsewhere").mkdir(exist_ok=True)
        script = [reading_all.__file__, way, str(there.path), str(self.key_file), self.memory]
        done = there.run(*script, str(self.folder / "elsewhere"))
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout.splitlines()[-1]))


Make = Callable[..., MemoryStore]


@pytest.fixture
def vault(
    make_store: Make,
    key_file: Path,
    tiny_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Vault:
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(key_file))
    with make_store() as store:
        drafts = [MemoryDraft(EARLIER.format(n), topics=("mill",)) for n in range(NOTES)]
        memory = store.add_many(drafts)[0].id
    return Vault(store.path, key_file, memory, tmp_path)


TEXTS = sorted([NEWEST, *(EARLIER.format(number) for number in range(NOTES))])


@pytest.mark.parametrize(("place", "left"), SCENES)
def test_every_command_that_reads_does_so_where_nothing_can_be_written(
    vault: Vault, place: str, left: str, tmp_path: Path
) -> None:
    left_as(vault.path, vault.key_file, left)
    with frozen(vault.path, place, tmp_path / "there") as there:
        before = {file.name: file.read_bytes() for file in there.path.parent.iterdir()}
        said = vault.read("command", there)
        after = {file.name: file.read_bytes() for file in there.path.parent.iterdir()}
    if (place, left) == UNREADABLE:
        assert said["search"][0] == 1
        assert "notes.db-journal" in said["search"][2]
        assert "Make room" in said["search"][2]
        assert after == before
        return
    added, grown = said.pop("add"), place == NO_GROWTH
    for command, (code, _, complaint) in said.items():
        cannot = grown and command in ("export", "backup")  # what they write grows, too
        assert code == cannot, f"{command}: {complaint}"
    found = json.loads(said["search"][1])
    assert len(found["rows"]) == NOTES + 1
    assert found["degraded"] == []
    assert json.loads(said["get"][1])["text"] == EARLIER.format(0)
    assert sorted(one["text"] for one in json.loads(said["list"][1])["memories"]) == TEXTS
    assert json.loads(said["verify"][1])["failures"] == []
    if not grown:
        exported = (tmp_path / "elsewhere" / "export").rglob("*.ndjson")
        lines = [json.loads(line) for file in exported for line in file.read_text().splitlines()]
        assert sorted(line["text"] for line in lines) == TEXTS
        with MemoryStore.open(tmp_path / "elsewhere" / "backup.db") as copy:
            assert sorted(memory.text for memory in copy.list()) == TEXTS
            assert copy.verify()["failures"] == []
    if left == CLOSED:
        assert added[0] == 1
        assert REFUSALS[place] in added[2]
    if place in (DISK_ONLY, FOLDER_ONLY) and added[0]:
        assert after == before


@pytest.mark.parametrize(("place", "left"), SCENES if EVERYTHING else SCENES[::3])
def test_a_program_and_its_search_processes_read_there_too(
    vault: Vault, place: str, left: str, tmp_path: Path
) -> None:
    if (place, left) == UNREADABLE:
        pytest.skip("this cannot be read: see above")
    left_as(vault.path, vault.key_file, left)
    with frozen(vault.path, place, tmp_path / "there") as there:
        said = vault.read("program", there)
    assert said == {
        "list": TEXTS,
        "every": TEXTS,
        "get": EARLIER.format(0),
        "failures": [],
        "older": None,
        "here": NOTES + 1,
        "elsewhere": NOTES + 1,
    }
