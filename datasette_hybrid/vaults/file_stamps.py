"""Which file lies at a path, and when it was last changed: whether a vault's was exchanged."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from memory_store import host


class FileStamp(NamedTuple):
    """What the system says of a file: its device and number, when it changed, its size."""

    file: tuple[int, int]
    changed: int
    size: int


def stamp(path: Path) -> FileStamp | None:
    """The stamp of the file that lies there; ``None`` where there is none.

    Always the same on a server, which is asked by the clock alone: :meth:`.Vault.follow_server`.
    """
    if isinstance(path, host.Address):
        return FileStamp((0, 0), 0, 0)
    try:
        status = path.stat()
    except OSError:
        return None
    return FileStamp((status.st_dev, status.st_ino), status.st_mtime_ns, status.st_size)


def same_file(before: FileStamp | None, now: FileStamp | None) -> bool:
    """Whether both are of one file, also where it was written to between."""
    return before is not None and now is not None and before.file == now.file
