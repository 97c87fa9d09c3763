"""A disk that is full, or fails: an error that names the file and the cause, and nothing is lost.

An operation meets the end of the disk (see ``disks.py``) at many places in it.
"""

from __future__ import annotations

import contextlib
import lzma
import os
import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from counts import counted
from disks import FAILING, FULL, NOTES, POINTS, Disk, Scene, refused, unharmed, used
from plugin.conftest import Filled, Serve, Served
from typing_commands import run

from memory_store.actions.export import export_markdown, export_ndjson_folder
from memory_store.cli.backup import copy_vault
from memory_store.errors import TamperedError
from memory_store.store import MemoryStore
from memory_store.vault.storage.schema import FORMAT_VERSION

Operation = Callable[[Scene, MemoryStore], object]


def import_notes(scene: Scene, store: MemoryStore) -> None:
    """Thirty batches, as if each had been full."""
    for note in sorted(scene.notes.iterdir()):
        report = store.import_paths([note])
        assert report.failed == 0


def edit(scene: Scene, store: MemoryStore) -> None:
    for memory in store.list(limit=8, offset=5):
        store.edit(
            memory.id, text=memory.text.partition(" Edited")[0] + " Edited." + " wheel" * 300
        )


def delete(scene: Scene, store: MemoryStore) -> None:
    for memory in store.list(limit=100):
        if memory.text.endswith(
            ("3, on the sluice and its keeper.", "7, on the sluice and its keeper.")
        ):
            store.delete(memory.id)


def reindex(scene: Scene, store: MemoryStore) -> None:
    store.reindex()


CHANGES: tuple[Operation, ...] = (import_notes, edit, delete, reindex)


@pytest.mark.sampled(2)
@pytest.mark.once
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_that_meets_the_end_of_the_disk_loses_nothing_and_goes_on(
    scene: Scene, change: Operation
) -> None:
    choose, refusals = random.Random(1), []
    needed = space_needed(scene, change)
    for number in range(counted(POINTS)):
        scene.place()
        room = choose.randrange(needed)
        with scene.open(renewed=change is reindex) as store:
            before = unharmed(store)
            store.warm()
            with scene.disk.only(room):
                refusals += refused(lambda: change(scene, store))
                kept = unharmed(store)  # reading needs no room
                if number % 2:
                    store.lock()
            if not number % 2:
                complete(scene, store, change, before, kept)
        with scene.open(renewed=change is reindex) as store:
            if number % 2:
                complete(scene, store, change, before, kept)
    assert refusals, "the disk was never full"
    cause = FULL if scene.disk.real else FAILING
    assert all(line.startswith("notes.db: ") for line in refusals)
    assert any(cause in line for line in refusals), refusals


def complete(
    scene: Scene,
    store: MemoryStore,
    change: Operation,
    before: dict[str, str],
    kept: dict[str, str],
) -> None:
    """There is room again: nothing was lost, and the change can be made to its end."""
    assert unharmed(store) == kept
    if change in (import_notes, reindex):
        assert before.items() <= kept.items()
    change(scene, store)
    after = unharmed(store)
    if change is import_notes:
        assert len(after) == len(before) + NOTES
    assert len(store.search("sluice", mode="keyword", limit=20).rows) == 20
    assert store.search("the keeper of the sluice", mode="vector").rows


def space_needed(scene: Scene, change: Operation) -> int:
    """Bytes by which the files grow when there is room."""
    scene.place()
    with scene.open(renewed=change is reindex) as store:
        store.warm()
        before = used(scene.path.parent)
        change(scene, store)
        return used(scene.path.parent) - before


Copy = Callable[[Scene, MemoryStore, Path], object]


def backup(scene: Scene, store: MemoryStore, target: Path) -> None:
    copy_vault(scene.path, target)


def as_markdown(scene: Scene, store: MemoryStore, target: Path) -> None:
    export_markdown(store.list(limit=100), target)


def as_ndjson(scene: Scene, store: MemoryStore, target: Path) -> None:
    export_ndjson_folder(store.list(limit=100), target)


@pytest.mark.once
@pytest.mark.parametrize("copy", [backup, as_markdown, as_ndjson], ids=lambda copy: copy.__name__)
def test_a_copy_that_does_not_fit_is_refused_and_leaves_nothing(scene: Scene, copy: Copy) -> None:
    choose, refusals = random.Random(2), []
    folder = scene.disk.folder / "copies"
    folder.mkdir()
    scene.place()
    with scene.open() as store:
        copy(scene, store, folder / "copy")
        sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
        needed = sum(sizes) if scene.disk.real else max(sizes)
        for _ in range(counted(POINTS)):
            empty(folder)
            with scene.disk.only(choose.randrange(needed)):
                said = refused(lambda: copy(scene, store, folder / "copy"))
                if said:
                    assert not list(folder.iterdir())
            refusals += said
            assert store.verify()["failures"] == []
    assert refusals, "everything fitted"
    for line in refusals:
        assert line.startswith(f"{folder / 'copy'}: ")
        assert any(cause in line for cause in (FULL, FAILING, "no space left", "too large")), line


def empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


@pytest.mark.sampled(4)
@pytest.mark.once
@pytest.mark.parametrize(
    ("command", "culprit"),
    [
        (["import", "{db}", "{notes}"], "notes.db"),
        (["add", "{db}", "A new memory. " * 2_000], "notes.db"),
        (["reindex", "{db}"], "notes.db"),
        (["backup", "{db}", "{disk}/copy.db"], "copy.db"),
        (["export", "{db}", "{disk}/out"], "out"),
        (["export", "{db}", "{disk}/out", "--ndjson"], "out"),
    ],
    ids=lambda given: " ".join(given[:1] + given[3:]) if isinstance(given, list) else "",
)
def test_the_command_line_says_in_one_line_which_file_and_why(
    scene: Scene, command: list[str], culprit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(scene.key_file))
    model = scene.other_model if command[0] == "reindex" else scene.model
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(model))
    places = {"db": scene.path, "notes": scene.notes, "disk": scene.disk.folder}
    scene.place()
    with scene.open() as store:
        before = unharmed(store)
        with scene.disk.only(0):
            result = run(*[part.format(**places) for part in command])
    assert result.exit_code == 1, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert culprit in line
    assert any(cause in line for cause in (FULL, FAILING, "no space left", "too large")), line
    with scene.open() as store:
        assert before.items() <= unharmed(store).items()


@pytest.mark.asyncio
async def test_the_json_api_says_which_vault_and_why_and_then_goes_on(
    filled: Filled, serve: Serve, disk: Disk
) -> None:
    path = disk.folder / "notes.db"
    shutil.copy(filled.path, path)
    served = await serve(path, options={"notes": {"key-file": str(filled.key_file)}})
    root = served.by("root")
    assert (await root.get(".json?q=tomatoes")).status_code == 200
    with disk.only(0):
        answer = await posted(root, "water " * 5_000)
        searched = await root.get(".json?q=tomatoes&mode=keyword")
    assert answer.status_code == 503, answer.text
    assert answer.json()["error"] == f"notes.db: {FULL if disk.real else FAILING}"
    assert "Traceback" not in answer.text
    assert len(searched.json()["rows"]) == 2
    answer = await posted(root, "There is room again.")
    assert answer.status_code == 201, answer.text


async def posted(served: Served, text: str) -> Any:
    """The answer to one memory that is added."""
    headers = {"Authorization": "Bearer nothing"}  # as a program sends it
    return await served.send(
        "POST", f"{served.base}/memories.json", {"text": text}, headers=headers
    )


def test_a_file_that_is_cut_under_an_open_vault_gives_an_error_or_the_right_answer(
    scene: Scene,
) -> None:
    choose = random.Random(3)
    refusals: list[str] = []
    for _ in range(counted(POINTS)):
        scene.place()
        with scene.open() as store:
            texts = {memory.id: memory.text for memory in store.list(limit=100)}
            os.truncate(scene.path, choose.randrange(scene.path.stat().st_size))
            for memory, text in texts.items():
                refusals += refused(partial(reported, store, memory, text))
            refusals += refused(lambda: store.search("sluice", mode="keyword"))
    assert refusals
    assert all(line.startswith("notes.db: ") for line in refusals)


def reported(store: MemoryStore, memory: str, text: str) -> None:
    with contextlib.suppress(TamperedError):  # the row is there, its body no longer
        assert store.get(memory).text == text


FORMATS = Path(__file__).parents[1] / "formats"


def test_a_vault_of_an_earlier_format_is_read_before_the_disk_has_room_to_upgrade_it(
    disk: Disk, tmp_path: Path
) -> None:
    key = tmp_path / "formats.key"
    shutil.copy(FORMATS / key.name, key)
    key.chmod(0o600)
    packed = (FORMATS / "format-2-default.db.xz").read_bytes()
    path = disk.folder / "vault" / "notes.db"
    path.parent.mkdir()
    path.write_bytes(lzma.decompress(packed))
    with MemoryStore.open(path, key_file=key) as store:
        texts = sorted(memory.text for memory in store.every())
    needed = used(path.parent)
    choose, refusals = random.Random(2), []
    for _ in range(counted(POINTS)):
        for file in path.parent.iterdir():
            file.unlink()
        path.write_bytes(lzma.decompress(packed))
        room = choose.randrange(2 * needed)
        with disk.only(room), MemoryStore.open(path, key_file=key) as store:
            assert sorted(memory.text for memory in store.every()) == texts
            assert store.search("the", mode="keyword").counts
            refusals += refused(partial(store.add, "More."))
        with MemoryStore.open(path, key_file=key) as store:  # there is room
            assert store.stats()["format"] == FORMAT_VERSION
            assert store.verify()["failures"] == []
            assert set(texts) <= {memory.text for memory in store.every()}
    assert refusals, "the disk was never full"
    assert all(line.startswith("notes.db: ") for line in refusals)
