"""New keys on a disk that is full, or fails: a clear error, nothing lost, and it goes on later."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from counts import counted
from disks import FAILING, FULL, POINTS, Scene, refused, unharmed, used

from memory_store.sqlite import connect
from memory_store.store import MemoryStore


def epochs(path: Path) -> list[tuple[str, int]]:
    """Which epochs of which collections' keys the file holds for the owner."""
    with closing(connect(path, read_only=True)) as connection:
        rows = connection.execute(
            "select collection, epoch from vault_collection_keys where principal = 0 order by 1, 2"
        )
        return rows.fetchall()


def test_new_keys_that_meet_the_end_of_the_disk_lose_nothing_and_are_finished_later(
    scene: Scene,
) -> None:
    choose, refusals = random.Random(5), []
    most = room_for_new_keys(scene)
    for number in range(counted(POINTS)):
        scene.place()
        with scene.open() as store:
            before = unharmed(store)
            with scene.disk.only(choose.randrange(most)):
                refusals += refused(store.keys.rotate)
                assert unharmed(store) == before  # whichever key each memory is sealed under now
            if number % 2:
                finish(store, before)
        with scene.open() as store:
            if not number % 2:
                finish(store, before)
            assert unharmed(store) == before
    assert refusals, "the disk was never full"
    assert all(line.startswith("notes.db: ") for line in refusals)
    assert any((FULL if scene.disk.real else FAILING) in line for line in refusals), refusals


def room_for_new_keys(scene: Scene) -> int:
    """Bytes by which the files grow meanwhile, or for one file from its beginning."""
    scene.place()
    folder, seen = scene.path.parent, []
    with scene.open() as store:
        before = used(folder) if scene.disk.real else 0
        store.keys.rotate(progress=lambda *_: seen.append(used(folder)))
    return max(seen) - before


def finish(store: MemoryStore, before: dict[str, str]) -> None:
    """There is room again: every key is replaced, once, and the old ones are gone."""
    done = store.keys.rotate()
    assert {one.epoch for one in done} <= {1, 2}
    assert store.keys.unfinished() == []
    assert epochs(store.path) == sorted((one.collection or "vault", one.epoch) for one in done)
    assert unharmed(store) == before
    assert len(store.search("sluice", mode="keyword", limit=20).rows) == 20


Change = Callable[[MemoryStore, Path], object]
CHANGES: dict[str, Change] = {
    "a key file": lambda store, folder: store.keys.add(key_file=folder / "another.key"),
    "a recovery code": lambda store, folder: store.keys.add_recovery_code(),
    "a key less": lambda store, folder: store.keys.remove(
        next(slot.id for slot in store.keys.list() if slot.kind == "recovery")
    ),
    "a new root key": lambda store, folder: store.keys.rotate_root(),
    "the owner's identity": lambda store, folder: store.keys.identity(),
    "a collection shared": lambda store, folder: store.keys.share(
        "mill", MemoryStore.introduce(store.path, "Ada", key_file=folder / "ada.key")[0]
    ),
    "a collection shared no longer": lambda store, folder: store.keys.revoke("Grace"),
    "a collection deleted": lambda store, folder: store.collections.delete("mill"),
    "a collection made": lambda store, folder: store.collections.create("lock"),
    "a collection renamed": lambda store, folder: store.collections.rename("mill", "meal"),
    "a collection closed": lambda store, folder: store.collections.change_members(
        "mill", {"ada": "owner"}
    ),
}
Known = tuple[object, ...]


def known(store: MemoryStore) -> Known:
    """What is known of keys and collections."""
    slots = [(slot.id, slot.kind) for slot in store.keys.list()]
    members = {name: dict(roles) for name, roles in store.collections.membership().items()}
    return slots, members, store.collections.list(), store.keys.holders()


@pytest.mark.sampled(1)
def test_a_change_of_keys_or_collections_is_made_or_not(scene: Scene, tmp_path: Path) -> None:
    """And who has the vault open knows which: what it says then is what the file says."""
    choose, refusals = random.Random(6), []
    share_one(scene, tmp_path)
    for name, change in CHANGES.items():
        for number in range(counted(POINTS)):
            folder = tmp_path / f"{name} {number}"
            folder.mkdir()
            scene.place()
            with scene.open() as store:
                with scene.disk.only(choose.randrange(100_000)):
                    failed = refused(lambda: change(store, folder))  # noqa: B023
                there = known(store)
                texts = unharmed(store)
                store.add("Note written when there was room again, on the mill race")
                assert known(store)[:2] == there[:2]
                assert len(store.search("sluice", mode="keyword", limit=20).rows) == 20
                reported = known(store)
            with scene.open() as store:
                assert as_reported(known(store)) == as_reported(reported), name
                assert texts.items() < unharmed(store).items()
            refusals += failed
    assert refusals, "the disk was never full"
    assert all(line.startswith("notes.db: ") for line in refusals)


def share_one(scene: Scene, folder: Path) -> None:
    """Let the vault have a second collection, which is shared."""
    model = str(scene.model)
    with MemoryStore.open(scene.original, key_file=scene.key_file, embedder=model) as store:
        store.collections.create("mill")
        store.add("Note what the mill is for, and its race", collection="mill")
        store.keys.identity()
        greeting, _, _ = MemoryStore.introduce(
            scene.original, "Grace", key_file=folder / "grace.key"
        )
        store.keys.share("mill", greeting)


def as_reported(known: Known) -> str:
    return repr(known)
