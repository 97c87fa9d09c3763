"""Reading needs no room: a vault on a full or read-only disk is read like any other.

What was committed is there, also where a killed program left it in a log or a journal; what it left
half done is not. Nothing is read that another program is changing meanwhile.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product, takewhile
from pathlib import Path
from typing import Any

import pytest
import reading_all
from counts import FULL as EVERYTHING
from counts import a_third_of, counted
from datasette.app import Datasette
from frozen import (
    CLOSED,
    DISK_ONLY,
    FILE_ONLY,
    FOLDER_ONLY,
    FULL,
    JOURNAL,
    LEFT,
    LOG,
    LOG_ALONE,
    NEWEST,
    NO_GROWTH,
    PLACES,
    Frozen,
    as_anybody,
    frozen,
    left_as,
)

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

EARLIER = "Earlier memory number {}, on the sluice and its keeper."
NOTES = 12
USUAL = [
    *((FULL, LOG_ALONE), (NO_GROWTH, CLOSED), (FILE_ONLY, CLOSED)),
    *((FOLDER_ONLY, JOURNAL), (DISK_ONLY, LOG)),
]
"""Every place and every way to leave a vault, once: a usual run tries some of them."""
SCENES = [*product(PLACES, LEFT)] if EVERYTHING else USUAL
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


@pytest.mark.sampled(1)
@pytest.mark.once
@pytest.mark.parametrize(("place", "left"), SCENES if EVERYTHING else SCENES[::2])
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
        cut_off = after.pop("notes.db")  # SQLite takes off what the killed writer had appended
        assert before.pop("notes.db").startswith(cut_off)
        assert after == before
        with MemoryStore.open(there.path, key_file=vault.key_file) as store:  # with room
            assert sorted(one.text for one in store.every()) == TEXTS
        return
    added, grown = said.pop("add"), place == NO_GROWTH
    for command, (code, _, complaint) in said.items():
        cannot = grown and command in ("export", "backup")  # what they write grows, too
        assert code == cannot, f"{command}: {complaint}"
    found = json.loads(said["search"][1])
    assert len(found["rows"]) == NOTES + 1
    assert not [line for line in found["degraded"] if "reranker" not in line]  # there is none here
    assert json.loads(said["get"][1])["text"] == EARLIER.format(0)
    assert sorted(one["text"] for one in json.loads(said["list"][1])) == TEXTS
    assert json.loads(said["verify"][1])["failures"] == []
    if not grown:
        exported = (tmp_path / "elsewhere" / "export").rglob("*.ndjson")
        lines = [json.loads(line) for file in exported for line in file.read_text().splitlines()]
        assert sorted(line["text"] for line in lines) == TEXTS
        with MemoryStore.open(
            tmp_path / "elsewhere" / "backup.db", key_file=vault.key_file
        ) as copy:
            assert sorted(memory.text for memory in copy.list()) == TEXTS
            assert copy.verify()["failures"] == []
    if left == CLOSED:
        assert added[0] == 1
        assert REFUSALS[place] in added[2]
    if place in (DISK_ONLY, FOLDER_ONLY) and added[0]:
        assert after == before


@pytest.mark.sampled(0)
@pytest.mark.once
@pytest.mark.parametrize(("place", "left"), SCENES if EVERYTHING else SCENES[-1:])
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


IMMUTABLE = (DISK_ONLY, FOLDER_ONLY)
"""Where Datasette itself reads nothing that is written through a log, without `immutable`."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("place", "left"), SCENES if EVERYTHING else SCENES[-2:])
def test_a_server_reads_there_too(vault: Vault, place: str, left: str, tmp_path: Path) -> None:
    if (place, left) == UNREADABLE:
        pytest.skip("this cannot be read: see above")
    if place == NO_GROWTH and hasattr(Datasette, "get_internal_database"):
        pytest.skip("Datasette 1.0 keeps a database of its own in a temporary file")
    if left == JOURNAL and place in (DISK_ONLY, FILE_ONLY, FOLDER_ONLY):
        way = "immutable"  # Datasette itself does not start where a journal is to be rolled back
    else:
        way = "immutable" if place in IMMUTABLE else "served"
    left_as(vault.path, vault.key_file, left)
    with frozen(vault.path, place, tmp_path / "there") as there:
        said = vault.read(way, there)
    added, found = said.pop("add"), json.loads(said["search"][1])
    of_datasette = ("database", "table", "sql")  # its own reading, where it takes the file as it is
    if way == "immutable" and left != CLOSED:
        said = {name: answer for name, answer in said.items() if name not in of_datasette}
    else:
        assert said.pop("sql") == NOTES + 1
    assert {name: code for name, (code, _) in said.items() if code != 200} == {}
    assert len(found["rows"]) == NOTES + 1
    if left == CLOSED:
        assert added[0] == (503 if place in (FULL, NO_GROWTH) else 403)
        cause = "immutable" if way == "immutable" else REFUSALS[place].rpartition(": ")[2]
        assert cause in added[1]


def test_the_command_that_serves_starts_in_a_folder_that_may_not_be_written(
    vault: Vault, tmp_path: Path
) -> None:
    with frozen(vault.path, FOLDER_ONLY, tmp_path / "there") as there:
        arguments = ["serve", "--no-browser", str(there.path), "--key-file", str(vault.key_file)]
        command = [*there.before, sys.executable, "-u", "-m", "memory_store", *arguments]
        with subprocess.Popen(command, stdout=-1, stderr=subprocess.STDOUT, text=True) as server:
            assert server.stdout is not None
            said = [*takewhile(lambda line: "running on" not in line, server.stdout)]
            server.terminate()
    assert any("token=" in line for line in said), said


READER = """
import sys
from memory_store import MemoryStore
from memory_store.errors import StorageError
path, key_file = sys.argv[1:]
print("ready", flush=True)
for line in sys.stdin:
    try:
        with MemoryStore.open(path, key_file=key_file) as store:
            for _ in range(3):
                count = sum(1 for _ in store.every())
                found = store.search("sluice", mode="keyword", limit=1).total
                failures = store.verify()["failures"]
                print("read", count, found, len(failures), flush=True)
    except StorageError as refusal:
        print("refused", refusal, flush=True)
    print("done", flush=True)
"""


@pytest.mark.sampled(0)
def test_what_another_program_writes_meanwhile_is_read_whole_or_not_at_all(
    vault: Vault, tmp_path: Path
) -> None:
    """A folder that may not be written by the one who reads, and by one who writes it may."""
    rounds = counted(400)
    with frozen(vault.path, FOLDER_ONLY, tmp_path / "there") as there:
        if not there.before:
            pytest.skip("only root writes where another process may not")
        command = [*there.before, sys.executable, "-c", READER, str(there.path)]
        reader = subprocess.Popen(
            [*command, str(vault.key_file)], stdin=-1, stdout=-1, text=True, bufsize=1
        )
        assert reader.stdin is not None
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
        lowest = NOTES
        for number in range(rounds):
            reader.stdin.write("go\n")
            for again in range(3):
                with MemoryStore.open(there.path, key_file=vault.key_file) as store:
                    store.add(f"Written meanwhile, on the sluice, {number} {again}.")
            for line in iter(reader.stdout.readline, "done\n"):
                reported = line.split()
                if reported[0] == "refused":
                    assert "another program" in line, line
                    continue
                count, found, failures = map(int, reported[1:])
                assert failures == 0
                assert lowest <= count <= found <= NOTES + 3 * (number + 1)
            lowest = NOTES + 3 * (number + 1)
        reader.stdin.write("go\n")
        assert reader.stdout.readline().startswith(f"read {lowest} ")
        reader.stdin.close()
        reader.wait()


def test_a_vault_that_is_open_says_so_when_another_program_wrote_to_it(
    vault: Vault, tmp_path: Path
) -> None:
    script = """
import sys
from memory_store import MemoryStore
from memory_store.errors import StorageError
store = MemoryStore.open(sys.argv[1], key_file=sys.argv[2])
print(len(store.list()), flush=True)
sys.stdin.readline()
try:
    print(len(store.list()), flush=True)
except StorageError as refusal:
    print(refusal, flush=True)
store.close()
with MemoryStore.open(sys.argv[1], key_file=sys.argv[2]) as store:
    print(len(store.list()), flush=True)
"""
    with frozen(vault.path, FOLDER_ONLY, tmp_path / "there") as there:
        if not as_anybody():
            pytest.skip("only root writes where another process may not")
        command = [*there.before, sys.executable, "-c", script, str(there.path)]
        reader = subprocess.Popen(
            [*command, str(vault.key_file)], stdin=-1, stdout=-1, text=True, bufsize=1
        )
        assert reader.stdout is not None
        assert reader.stdout.readline() == f"{NOTES}\n"
        with MemoryStore.open(there.path, key_file=vault.key_file) as store:
            store.add(NEWEST)
        said, _ = reader.communicate("go\n", timeout=120)
    refusal, count = said.splitlines()
    assert "notes.db: another program wrote to it while it was read here without locks" in refusal
    assert int(count) == NOTES + 1


@pytest.mark.once
@pytest.mark.parametrize("folder", a_third_of(["STATE", "CACHE", "CONFIG"]))
def test_the_folders_of_this_program_need_not_be_writable_to_read(
    vault: Vault, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "frozen-folder"
    there.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(there)], check=False)
    there.chmod(0o555) if not there.is_mount() else None
    monkeypatch.setenv(f"MEMORY_STORE_{folder}", str(there / "none yet"))
    (tmp_path / "vault").mkdir()
    try:
        said = vault.read("program", Frozen(vault.path, as_anybody()))
    finally:
        if there.is_mount():
            subprocess.run(["umount", str(there)], check=True)
    assert len(said["list"]) == said["here"] == said["elsewhere"] == NOTES
