"""Killed (SIGKILL) at random moments, a vault loses nothing that was committed, and goes on.

``SOAK_KILLS`` sets how many moments each operation is killed at (20).
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # killing

from killing import CANARY, Scene, die, in_clear, kills
from tiny_embedder import build as build_tiny_embedder

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

pytestmark = pytest.mark.soak

Make = Callable[..., MemoryStore]
NOTES = 300
PORTION = 12  # memories that one worker is told to delete


@pytest.fixture
def new_scene(make_store: Make, key_file: Path, tiny_model: Path) -> Callable[[str], Scene]:
    """Makes an empty vault that no process has open."""

    def new(name: str) -> Scene:
        store = make_store(name)
        store.lock()
        return Scene(store.path, key_file, tiny_model)

    return new


def text_of(number: int, generation: int) -> str:
    return f"Note {number}, generation {generation}, on {CANARY} and the mill race."


def write_notes(folder: Path, generation: int) -> None:
    folder.mkdir(exist_ok=True)
    for number in range(NOTES):
        (folder / f"n{number:03}.md").write_text(text_of(number, generation), "utf-8")


def fill(scene: Scene, folder: Path, *, embed: bool) -> None:
    write_notes(folder, 1)
    with scene.reopened() as store:
        assert store.import_paths([folder], embed=embed).imported == NOTES


def test_the_scan_for_plain_text_finds_it_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "leaky.db").write_bytes(b"\x00" + CANARY.encode() + b"\x00")
    (tmp_path / "leaky.db-wal").write_bytes(CANARY.encode("utf-16-le"))
    (tmp_path / "tight.db").write_bytes(b"nothing")
    assert in_clear(tmp_path / "leaky.db") == ["leaky.db", "leaky.db-wal"]
    assert in_clear(tmp_path / "tight.db") == []


@pytest.mark.parametrize("embed", [True, False], ids=["embedding", "words-only"])
def test_an_import_that_is_killed_keeps_its_batches_and_goes_on(
    new_scene: Callable[[str], Scene], tmp_path: Path, embed: bool
) -> None:
    folder, generation = tmp_path / "notes", 1
    write_notes(folder, generation)
    more = {"folder": folder, "embed": embed}
    whole = die("import_folder", new_scene("rehearsal.db").arguments(**more), None).seconds
    scene, before, done = new_scene("notes.db"), 0, 0
    for death in kills(whole, 1, "import_folder", lambda: scene.arguments(**more)):
        with scene.reopened() as store:
            kept = {memory.ref: memory.text for memory in store.list(limit=2 * NOTES)}
            assert len(kept) >= max([before, *map(int, death.said)])
            for number in range(NOTES):
                text = kept.get(f"n{number:03}.md")
                assert text in (None, text_of(number, generation), text_of(number, generation - 1))
            report = store.import_paths([folder], embed=embed, dry_run=True)
            assert report.failed == 0
            assert report.unchanged + report.replaced + report.imported == NOTES
            assert report.unchanged >= done
        before, done = len(kept), report.unchanged
        if done == NOTES:  # change every file, and go on
            generation, done = generation + 1, 0
            write_notes(folder, generation)
    with scene.reopened() as store:
        store.import_paths([folder], embed=embed)
        texts = {memory.text for memory in store.list(limit=2 * NOTES)}
        assert texts == {text_of(number, generation) for number in range(NOTES)}
        assert len(store.search("mill race", mode="keyword", limit=32).rows) == 32


def test_a_reindex_that_is_killed_goes_on_where_it_stopped(
    new_scene: Callable[[str], Scene], tmp_path: Path
) -> None:
    scene = new_scene("notes.db")
    fill(scene, tmp_path / "notes", embed=True)
    models = [build_tiny_embedder(tmp_path / f"model-{n}", words=[f"word{n}"]) for n in (0, 1)]
    turns = itertools.cycle(models)
    scene = replace(scene, model=next(turns))
    whole = die("reindex", scene.arguments(), None).seconds

    def with_the_other_model() -> dict[str, Any]:
        nonlocal scene
        scene = replace(scene, model=next(turns))
        return scene.arguments()

    for _ in kills(whole, 2, "reindex", with_the_other_model):
        with scene.reopened() as store:
            texts = {memory.text for memory in store.list(limit=2 * NOTES)}
            assert texts == {text_of(number, 1) for number in range(NOTES)}
            assert len(store.search("mill race", mode="keyword", limit=32).rows) == 32
            assert store.reindex() <= NOTES
            assert store.reindex() == 0
            assert store.search("the mill race", mode="vector").rows


def test_deletions_that_are_killed_are_done_or_not_begun(
    new_scene: Callable[[str], Scene], tmp_path: Path
) -> None:
    scene = new_scene("notes.db")
    fill(scene, tmp_path / "notes", embed=True)
    with scene.reopened() as store:
        alive = {memory.id for memory in store.list(limit=NOTES)}
    doomed: list[str] = []

    def some_more() -> dict[str, Any]:
        nonlocal doomed
        doomed = sorted(alive)[:PORTION]
        return scene.arguments(ids=doomed)

    whole = die("delete", some_more(), None).seconds
    alive -= set(doomed)
    for death in kills(whole, 3, "delete", some_more):
        with scene.reopened() as store:
            there = {memory.id for memory in store.list(limit=2 * NOTES)}
            found = {row.id for row in store.search("generation", mode="keyword", limit=32).rows}
            assert not there & set(death.said)
            assert alive - set(doomed) <= there <= alive
            assert found <= there
            if len(there) < 2 * PORTION:
                drafts = [MemoryDraft(text_of(n, 2)) for n in range(NOTES)]
                there |= {memory.id for memory in store.add_many(drafts)}
        alive = there


def test_segments_that_are_merged_while_killed_hold_what_they_held(
    new_scene: Callable[[str], Scene],
) -> None:
    more = {"count": 60, "canary": CANARY}
    whole = die("add_and_edit", new_scene("rehearsal.db").arguments(**more), None).seconds
    scene, hits = new_scene("notes.db"), 0
    committed: list[str] = []
    for death in kills(whole, 4, "add_and_edit", lambda: scene.arguments(**more)):
        hits += death.killed
        committed += death.said
        with scene.reopened() as store:
            there = {memory.id for memory in store.list(limit=10_000)}
            assert set(committed) <= there
            assert len(there) <= len(committed) + hits  # one write at most was under way
            assert store.stats()["segments"] < 40
            for memory in death.said[-1:]:
                assert CANARY in store.get(memory).text
