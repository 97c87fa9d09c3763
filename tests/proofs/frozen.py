"""Vaults in places where nothing can be written, as different as places are, for the proofs.

Each is a folder of its own: a disk without room, one that is mounted read-only, a file or a folder
that may not be written, a process whose files may not grow. What is read there is read by another
process, without the right of root to write wherever it likes.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from disks import ballast
from own_process import ended

DISK = 24_000_000  # bytes
AS_ANYBODY = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
"""Before a command of root's: without the right to write wherever root likes."""
WITHOUT_GROWTH = ("prlimit", "--fsize=0:0")
FULL, NO_GROWTH = "full disk", "files that may not grow"
DISK_ONLY, FILE_ONLY, FOLDER_ONLY = "read-only disk", "read-only file", "read-only folder"
PLACES = (FULL, NO_GROWTH, DISK_ONLY, FILE_ONLY, FOLDER_ONLY)
CLOSED, LOG, LOG_ALONE, JOURNAL = "closed", "log", "log without index", "journal"
LEFT = (CLOSED, LOG, LOG_ALONE, JOURNAL)
"""How a vault was left: closed; by a writer that was killed, with the shared index beside its log
or without; killed while writing in SQLite's older way, with a journal."""
NEWEST = "The newest memory, on the sluice, committed before the end."

WRITER = """
import os, signal, sqlite3, sys
from memory_store import MemoryStore
path, key_file, newest, mode = sys.argv[1:]
store = MemoryStore.open(path, key_file=key_file)
connection = sqlite3.connect(path, isolation_level=None)
connection.execute("pragma wal_autocheckpoint = 0")
store.add(newest)
if mode == "delete":
    store.close()
    connection.execute("pragma journal_mode = delete")
if mode != "closed":
    connection.execute("pragma cache_size = 1")
    connection.execute("pragma cache_spill = 1")
    connection.execute("begin immediate")
    connection.execute("create table half (value)")
    connection.execute("update memories set collection = 'nowhere'")
    connection.execute("insert into half select zeroblob(20000) from memories, memories limit 50")
    os.kill(os.getpid(), signal.SIGKILL)
connection.close()
store.close()
"""
"""Another program that adds a memory, and is killed half way through what it does next."""


@dataclass(frozen=True)
class Frozen:
    """A vault where nothing can be written, and what goes before a command that is to read it."""

    path: Path
    before: list[str] = field(default_factory=list)

    def run(self, *command: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        return ended(*self.before, sys.executable, *command, timeout=timeout)


def left_as(path: Path, key_file: Path, left: str) -> None:
    """Let a writer add the newest memory, and leave the vault in that state."""
    mode = {CLOSED: "closed", JOURNAL: "delete"}.get(left, "wal")
    command = [sys.executable, "-c", WRITER, str(path), str(key_file), NEWEST, mode]
    done = subprocess.run(command, check=False)
    assert done.returncode == (0 if left == CLOSED else -signal.SIGKILL)
    if left != CLOSED:
        beside = path.with_name(f"{path.name}-{'journal' if left == JOURNAL else 'wal'}")
        assert beside.stat().st_size > 0
    if left == LOG_ALONE:
        path.with_name(f"{path.name}-shm").unlink()


@contextmanager
def frozen(path: Path, place: str, folder: Path) -> Iterator[Frozen]:
    """A copy of the vault, with all that lies beside it, in such a place."""
    folder.mkdir()
    mounted = place in (FULL, DISK_ONLY)
    if mounted:
        _mount("-t", "tmpfs", "-o", f"size={DISK},mode=0700", "tmpfs", str(folder))
    home = folder / "vault"
    try:
        home.mkdir()
        for file in path.parent.glob(f"{path.name}*"):
            shutil.copyfile(file, home / file.name)
        with ballast(folder, 0) if place == FULL else contextmanager(_nothing)():
            _freeze(home / path.name, place)
            limits = WITHOUT_GROWTH if place == NO_GROWTH else ()
            yield Frozen(home / path.name, [*limits, *as_anybody()])
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        else:
            home.chmod(0o755)


def _nothing() -> Iterator[None]:
    yield


def _freeze(path: Path, place: str) -> None:
    if place == DISK_ONLY:
        _mount("-o", "remount,ro", str(path.parent.parent))
    elif place == FILE_ONLY:
        for file in path.parent.iterdir():
            file.chmod(0o444)
    elif place == FOLDER_ONLY:
        path.parent.chmod(0o555)


def _mount(*options: str) -> None:
    try:
        subprocess.run(["mount", *options], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system of a few megabytes can be mounted here")


def as_anybody() -> list[str]:
    """What goes before a command that is to have no more rights than anybody."""
    if os.geteuid() != 0:
        return []
    if not shutil.which("setpriv"):
        pytest.skip("root writes wherever it likes, and setpriv is not there to prevent it")
    return [*AS_ANYBODY]
