"""Killed (SIGKILL) at any moment, a vault loses nothing that was committed, and goes on.

Each operation is killed at ``SOAK_KILLS`` different moments (20): up to a third of them between
writing and committing, no commit twice; half of the others right before some other SQL statement,
none twice; and the rest anywhere in its time. Every kill has a copy of the vault to itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # killing

from killing import CANARY, Scene, die, in_clear, kills
from tiny_embedder import build as build_tiny_embedder

from memory_store.importing.batch import BATCH_MEMORIES, UNEMBEDDED_BATCH
from memory_store.records import Memory, MemoryDraft
from memory_store.session.reindex import BATCH as REINDEX_BATCH
from memory_store.sqlite import connect
from memory_store.store import MemoryStore
from memory_store.vault.resealing import BATCH as ROTATION_BATCH

pytestmark = pytest.mark.soak

Make = Callable[..., MemoryStore]
NOTES = 220  # four batches
KNOWN = 90  # of them, imported before in an earlier generation
DOOMED = 16  # memories that one worker has to delete
ROTATED = 600  # memories that get new keys: heads and bodies in three batches each
TOPICS = ["mill", "weir", "race"]  # of each of them: hashes in four batches
LEFT_KEYS = "select collection, count(*) from vault_collection_keys group by collection"
ENTRIES = 24  # that one worker adds; every third is edited


@pytest.fixture
def scene(make_store: Make, key_file: Path, tiny_model: Path) -> Scene:
    """An empty vault that no process has open."""
    store = make_store()
    store.lock()
    return Scene(store.path, key_file, tiny_model)


def text_of(number: int, generation: int) -> str:
    return f"Note {number}, generation {generation}, on {CANARY} and the mill race."


def write_notes(folder: Path, generation: int, count: int = NOTES) -> Path:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        (folder / f"n{number:04}.md").write_text(text_of(number, generation), "utf-8")
    return folder


def fill(scene: Scene, folder: Path, count: int, *, embed: bool = True) -> None:
    with scene.reopened() as store:
        assert store.import_paths([write_notes(folder, 1, count)], embed=embed).imported == count


def test_the_scan_for_plain_text_finds_it_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "leaky.db").write_bytes(b"\x00" + CANARY.encode() + b"\x00")
    (tmp_path / "leaky.db-wal").write_bytes(CANARY.encode("utf-16-le"))
    (tmp_path / "tight.db").write_bytes(b"nothing")
    assert in_clear(tmp_path / "leaky.db") == ["leaky.db", "leaky.db-wal"]
    assert in_clear(tmp_path / "tight.db") == []


def check_note(memory: Memory | None, number: int) -> None:
    """Either generation to the letter, and none missing that was there before."""
    assert memory is not None or number >= KNOWN
    if memory is not None:
        generation = 1 if number < KNOWN and memory.version == 1 else 2
        assert memory.text == text_of(number, generation)


@pytest.mark.parametrize(
    ("embed", "count", "batch"),
    [
        pytest.param(True, NOTES, BATCH_MEMORIES, id="embedding"),
        pytest.param(False, 4_500, BATCH_MEMORIES * UNEMBEDDED_BATCH, id="words-only"),
    ],
)
def test_an_import_that_is_killed_keeps_its_batches_and_goes_on(
    scene: Scene, tmp_path: Path, embed: bool, count: int, batch: int
) -> None:
    fill(scene, tmp_path / "notes", KNOWN, embed=embed)
    folder = write_notes(tmp_path / "notes", 2, count)
    for copy, death in kills(1, "import_folder", scene, folder=folder, embed=embed):
        read = max(death.numbers("read"), default=0)
        written = max(death.numbers("written"), default=KNOWN)
        with copy.reopened() as store:
            kept = {memory.ref: memory for memory in store.list(limit=2 * count)}
            assert sum(memory.version for memory in kept.values()) >= written
            for number in range(count):
                check_note(kept.get(f"n{number:04}.md"), number)
            again = store.import_paths([folder], embed=embed)
            assert read - again.unchanged <= batch  # what is read once more
            assert again.unchanged + again.replaced + again.imported == count
        with copy.reopened() as store:
            texts = {memory.text for memory in store.list(limit=2 * count)}
            assert texts == {text_of(number, 2) for number in range(count)}
            assert len(store.search("mill race", mode="keyword", limit=32).rows) == 32


def test_a_reindex_that_is_killed_goes_on_where_it_stopped(scene: Scene, tmp_path: Path) -> None:
    fill(scene, tmp_path / "notes", NOTES)
    other = replace(scene, model=build_tiny_embedder(tmp_path / "other-model", words=["weir"]))
    for copy, death in kills(2, "reindex", other):
        done = max(death.numbers("done"), default=0)
        with copy.reopened() as store:
            texts = {memory.text for memory in store.list(limit=2 * NOTES)}
            assert texts == {text_of(number, 1) for number in range(NOTES)}
            assert len(store.search("mill race", mode="keyword", limit=32).rows) == 32
            again = store.reindex()
            assert NOTES - again in (done, min(done + REINDEX_BATCH, NOTES))
            assert store.reindex() == 0
        with copy.reopened() as store:
            assert len(store.search("the mill race", mode="vector", limit=32).rows) == 32


def test_deletions_that_are_killed_are_done_or_not_begun(scene: Scene, tmp_path: Path) -> None:
    fill(scene, tmp_path / "notes", NOTES)
    with scene.reopened() as store:
        before = {memory.id: memory.text for memory in store.list(limit=NOTES)}
    doomed = sorted(before)[:: NOTES // DOOMED][:DOOMED]
    sealed = sealed_heads(scene, doomed)
    assert holding(scene, [*sealed.values()])
    for copy, death in kills(3, "delete", scene, ids=doomed):
        reported = [line for line in death.said if line.startswith("gone ")]
        gone = {line.removeprefix("gone ") for line in reported}
        assert entries(copy) == rows(copy)  # nothing of an erased memory is left in the index
        with copy.reopened() as store:
            there = {memory.id: memory.text for memory in store.list(limit=NOTES)}
            found = {row.id for row in store.search("generation", mode="keyword", limit=32).rows}
            assert there.items() <= before.items()
            assert found <= set(there)
            missing = set(before) - set(there)
            assert gone <= missing <= set(doomed)
            assert len(missing) <= len(gone) + 1  # the one that was under way
        assert not holding(copy, [sealed[memory] for memory in missing])
        with copy.reopened() as store:
            assert store.delete_many(set(doomed) - missing) == DOOMED - len(missing)
            assert {memory.id for memory in store.list(limit=NOTES)} == set(before) - set(doomed)
        assert not holding(copy, [*sealed.values()])


def sealed_heads(scene: Scene, ids: list[str]) -> dict[str, bytes]:
    """Id → the sealed title and topics of a memory, as they stand in the file."""
    found = asked(
        scene, f"select id, head from memories where id in ({', '.join('?' * len(ids))})", *ids
    )
    return {memory: bytes(head) for memory, head in found}


def entries(scene: Scene) -> int:
    """How many memories the segments of the index hold entries of, dead ones included."""
    return int(asked(scene, "select sum(documents) from vault_segments")[0][0])


def rows(scene: Scene) -> int:
    return int(asked(scene, "select count(*) from memories")[0][0])


def asked(scene: Scene, statement: str, *values: str) -> list[tuple[Any, ...]]:
    connection = connect(scene.path)
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def filed(scene: Scene, store: MemoryStore, topic: str) -> int:
    """How many memories are found by the topic's hash in the file."""
    found = "select count(*) from memory_topics where lower(hex(topic)) = ?"
    return int(asked(scene, found, store.topic_hash(topic))[0][0])


def holding(scene: Scene, sealed: list[bytes]) -> list[str]:
    """The files of a closed vault in which one of those values still stands."""
    return [
        file.name
        for file in scene.path.parent.iterdir()
        if any(value in file.read_bytes() for value in sealed)
    ]


def test_segments_that_are_merged_while_killed_hold_what_they_held(scene: Scene) -> None:
    with scene.reopened() as store:  # segments of eight entries and of one: merges of both kinds
        for number in range(5 * 8 + 5):
            store.add(f"Earlier {number} on {CANARY}.")
        before = {memory.id: memory.text for memory in store.list(limit=1_000)}
    for copy, death in kills(4, "add_and_edit", scene, count=ENTRIES, canary=CANARY):
        added = [line.split()[1] for line in death.said if line.startswith("added")]
        edited = {line.split()[1] for line in death.said if line.startswith("edited")}
        with copy.reopened() as store:
            there = {memory.id: memory for memory in store.list(limit=1_000)}
            assert before.items() <= {id: memory.text for id, memory in there.items()}.items()
            assert set(added) <= set(there)
            assert len(there) <= len(before) + len(added) + 1  # the one that was under way
            assert all(there[memory].version == 2 for memory in edited)
            assert all(CANARY in memory.text for memory in there.values())
            assert len(store.search("earlier", mode="keyword", limit=32).rows) == 32
            assert store.stats()["segments"] < 16
            store.add_many([MemoryDraft(f"Later on {CANARY}.")])
        with copy.reopened() as store:
            assert store.search("later", mode="keyword").rows


def test_a_change_of_keys_that_is_killed_goes_on_and_seals_nothing_twice(
    scene: Scene, tmp_path: Path
) -> None:
    folder = write_notes(tmp_path / "notes", 1, ROTATED)
    for note in folder.iterdir():
        note.write_text(f"---\ntopics: {TOPICS}\n---\n{note.read_text('utf-8')}", "utf-8")
    with scene.reopened() as store:
        assert store.import_paths([folder]).imported == ROTATED
    with scene.copied(0) as copy:
        whole = max(die("rotate", copy.arguments()).numbers("personal"))
    with scene.reopened() as store:
        before = {memory.id: memory.text for memory in store.list(limit=ROTATED)}
    for copy, death in kills(5, "rotate", scene):
        done = max(death.numbers("personal"), default=0)
        again: list[tuple[str, int]] = []
        with copy.reopened() as store:  # some rows under the old keys, some under the new ones
            assert {memory.id: memory.text for memory in store.list(limit=ROTATED)} == before
            assert len(store.search("mill race", mode="keyword", limit=32).rows) == 32
            assert all(filed(copy, store, topic) == ROTATED for topic in TOPICS)
            unfinished = store.keys.unfinished()
            store.keys.rotate(
                *(name for name in unfinished if name != "settings"),
                progress=lambda name, count, _: again.append((name, count)),  # noqa: B023
            )
            assert store.keys.unfinished() == []
            assert all(filed(copy, store, topic) == ROTATED for topic in TOPICS)
        assert asked(copy, "select count(*) from memory_topics") == [(len(TOPICS) * ROTATED,)]
        if "personal" in unfinished:
            rest = max(count for name, count in [*again, ("personal", 0)] if name == "personal")
            assert done + rest <= whole  # what was sealed anew is not sealed once more
            assert done + rest >= whole - ROTATION_BATCH  # committed, and not yet said
        for collection, epochs in asked(copy, LEFT_KEYS):
            assert epochs == 1, f"an old key of {collection} is left"
        with copy.reopened() as store:
            assert {memory.id: memory.text for memory in store.list(limit=ROTATED)} == before
