"""Three devices that are seldom together, by a drive that is seldom whole, end with the same."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from devices import held
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from memory_store.cli.backup import copy_vault
from memory_store.store import MemoryStore

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "edit", "edit", "delete", "move", "restore", "sync", "sync"]),
        st.integers(0, 2),
        st.integers(0, 1_000),
    ),
    min_size=4,
    max_size=14,
)
NAMES = ("personal", "work", "home")


class Fleet:
    """Three vaults, each with its own view of the drive."""

    def __init__(self, folder: Path, base: Path, key_file: Path) -> None:
        self.stores, self.drives = list[MemoryStore](), list[Path]()
        self.own: list[set[str]] = [set(), set(), set()]
        for number in range(3):
            drive, path = folder / f"drive {number}", folder / str(number) / "notes.db"
            drive.mkdir()
            path.parent.mkdir()
            copy_vault(base, path)
            self.drives.append(drive)
            self.stores.append(MemoryStore.open(path, key_file=key_file))

    def do(self, what: str, device: int, which: int) -> None:
        """One thing that a person or a drive does."""
        store, draw = self.stores[device], random.Random(which)
        present = sorted(memory.id for memory in store.every())
        chosen = present[which % len(present)] if present else ""
        if what == "add":
            store.add(f"Said {which}.", collection=NAMES[which % 3], topics=[f"t{which % 4}"])
        elif what == "edit" and chosen:
            store.edit(chosen, text=f"Changed to {which}.")
        elif what == "delete" and chosen:
            store.delete(chosen)
        elif what == "move" and chosen:
            store.edit(chosen, collection=NAMES[which % 3])
        elif what == "restore" and (gone := store.trash.list()):
            store.trash.restore(gone[which % len(gone)].id)
        elif what == "sync":
            self.bring(device, draw)
            self.sync(device)

    def sync(self, device: int) -> None:
        """A device exchanges with its view of the drive."""
        drive = self.drives[device]
        before = {file.name for file in drive.iterdir()}
        self.stores[device].sync_with_folder(drive, embed=False)
        self.own[device] |= {file.name for file in drive.iterdir()} - before

    def written(self, device: int) -> list[Path]:
        """What other devices have written, whole, where they wrote it."""
        files = [
            self.drives[other] / name
            for other in range(3)
            if other != device
            for name in sorted(self.own[other])
        ]
        return [file for file in files if file.exists()]

    def bring(self, device: int, draw: random.Random) -> None:
        """The drive brings some files, some of them cut, doubled or under another name."""
        for file in self.written(device):
            fate, target = draw.random(), self.drives[device] / file.name
            if fate < 0.4:
                shutil.copy(file, target)
            elif fate < 0.5 and not target.exists():
                content = file.read_bytes()
                target.write_bytes(content[: draw.randrange(len(content))])
            elif fate < 0.6:
                shutil.copy(file, target.with_name(f"{file.stem} (conflicted).sealed"))

    def meet(self) -> None:
        """Everything arrives, until there is no news."""
        for _ in range(3):
            for device in range(3):
                for file in self.written(device):
                    shutil.copy(file, self.drives[device] / file.name)
                self.sync(device)

    def agree(self) -> None:
        """Raise AssertionError unless all hold the same, and each is whole."""
        first, *others = (held(store) for store in self.stores)
        assert all(one == first for one in others)
        names = [{*store.collections.names().items()} for store in self.stores]
        assert names[0] == names[1] == names[2]
        for store in self.stores:
            assert store.verify()["failures"] == []


@contextmanager
def fleet(base: Path, key_file: Path) -> Iterator[Fleet]:
    with TemporaryDirectory() as folder:
        made = Fleet(Path(folder), base, key_file)
        try:
            yield made
        finally:
            for store in made.stores:
                store.lock()


@pytest.fixture
def base(store: MemoryStore) -> Path:
    for number in range(3):
        store.add(f"There from the beginning: {number}.")
    return store.path


@settings(
    max_examples=6,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],  # to shrink takes minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    print_blob=True,
)
@given(STEPS)
def test_they_end_with_the_same_memories(
    base: Path, key_file: Path, steps: list[tuple[str, int, int]]
) -> None:
    with fleet(base, key_file) as three:
        for step in steps:
            three.do(*step)
        three.meet()
        three.agree()


@pytest.mark.soak
def test_a_year_with_three_devices(base: Path, key_file: Path) -> None:
    """Every two months they meet, and one of them then replaces the keys, while the others go on
    writing under those that they have."""
    draw = random.Random(2026)
    chances = {"add": 4, "edit": 6, "delete": 2, "move": 1, "restore": 1, "sync": 5}
    with fleet(base, key_file) as three:
        for day in range(365):
            for _ in range(draw.randrange(4)):
                what = draw.choices([*chances], [*chances.values()])[0]
                three.do(what, draw.randrange(3), draw.randrange(100_000))
            if day % 60 == 59:
                three.meet()
                three.agree()
                three.stores[day // 60 % 3].keys.rotate()
        three.meet()
        three.agree()
        assert all(store.keys.unfinished() == [] for store in three.stores)
