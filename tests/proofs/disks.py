"""A disk with so much room and no more, and a vault on it, for the proofs of full disks.

The disk is a real one of a few megabytes (a ``tmpfs``, where the tests may mount one), filled up
to some last bytes; or, everywhere, a limit on how large a file may grow, past which every write
fails (``RLIMIT_FSIZE``).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tiny_embedder import build as build_tiny_embedder

from memory_store.errors import StorageError
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

POINTS = 100  # for each operation and each kind of disk
DISK = 16_000_000  # bytes
NOTES = 40
FULL, FAILING = "the disk is full", "the disk does not read or write as it should"
EARLIER = "Earlier memory number {}, on the sluice and its keeper."


@dataclass(frozen=True)
class Disk:
    """A folder whose files have so much room and no more, while :meth:`only` says so."""

    folder: Path
    real: bool

    def only(self, room: int) -> contextlib.AbstractContextManager[None]:
        """``room`` bytes are left on the whole disk, or for each file from its beginning."""
        return ballast(self.folder, room) if self.real else file_limit(room)


@contextlib.contextmanager
def ballast(folder: Path, room: int) -> Iterator[None]:
    """Fill the file system up to its last ``room`` bytes."""
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    try:
        with (folder / "ballast").open("wb") as file:
            if free > room:
                os.posix_fallocate(file.fileno(), 0, free - room)
        yield
    finally:
        (folder / "ballast").unlink()


@contextlib.contextmanager
def file_limit(size: int) -> Iterator[None]:
    """No file may grow beyond that many bytes. Python ignores the signal that would say so."""
    resource = pytest.importorskip("resource", reason="limits of files are POSIX")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(params=["full", "failing"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if request.param == "failing":
        yield Disk(folder, real=False)
        return
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=0700", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system of a few megabytes can be mounted here")
    yield Disk(folder, real=True)
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@dataclass(frozen=True)
class Scene:
    """A vault that is copied onto the disk for each try, and what belongs to it."""

    original: Path
    key_file: Path
    model: Path
    other_model: Path
    notes: Path
    disk: Disk

    @property
    def path(self) -> Path:
        return self.disk.folder / "vault" / "notes.db"

    def place(self) -> None:
        """The vault as it was, on the disk."""
        shutil.rmtree(self.path.parent, ignore_errors=True)
        self.path.parent.mkdir()
        shutil.copy(self.original, self.path)

    def open(self, *, renewed: bool = False) -> MemoryStore:
        model = self.other_model if renewed else self.model
        return MemoryStore.open(self.path, key_file=self.key_file, embedder=str(model))


@pytest.fixture
def scene(
    make_store: Callable[..., MemoryStore],
    disk: Disk,
    key_file: Path,
    tiny_model: Path,
    tmp_path: Path,
) -> Scene:
    with make_store() as store:
        store.add_many([MemoryDraft(EARLIER.format(number)) for number in range(40)])
    notes = tmp_path / "notes"
    notes.mkdir()
    for number in range(NOTES):
        (notes / f"{number:02}.md").write_text(f"Note {number}. " + f"mill{number} race " * 150)
    other = build_tiny_embedder(tmp_path / "other-model", words=["weir"])
    return Scene(store.path, key_file, tiny_model, other, notes, disk)


def unharmed(store: MemoryStore) -> dict[str, str]:
    """Every memory whole, the earlier ones as they were or as an operation leaves them."""
    assert store.verify()["failures"] == []
    texts = {memory.id: memory.text for memory in store.list(limit=1_000)}
    for text in texts.values():
        assert text.startswith(("Earlier memory number ", "Note "))
        assert text.endswith((" keeper.", " Edited." + " wheel" * 300, " race"))
    return texts


def used(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def refused(work: Callable[[], object]) -> list[str]:
    """The refusal, if it was one. Anything else is a defect, and raised."""
    try:
        work()
    except StorageError as error:
        return [str(error)]
    return []
