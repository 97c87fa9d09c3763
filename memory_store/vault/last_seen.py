"""What this machine last saw of a vault, so that an older copy put in its place is noticed.

Boundary: numbers alone (how often each collection was written) in the state folder. The file
itself cannot tell that all of it was rolled back: everything in an old copy is authentic.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from memory_store.errors import MemoryStoreError
from memory_store.paths import state_folder
from memory_store.vault.audit import batches_written
from memory_store.vault.storage import Storage

FOLDER = "last-seen"
AUDIT = "audit"  # no collection has such an id
MARK = "older:"  # nor such a one: a place where an older file was, which nobody accepted yet
WARNING = (
    "this file is older than the one last used on this machine: its latest changes are missing. "
    "After a backup was put back, accept it with memory-store verify DB --accept-older; otherwise "
    "somebody exchanged the file"
)


def counters(storage: Storage) -> dict[str, int]:
    """Collection → how often it was written, as the file says; and audit batches."""
    written, last = storage.accounts.counters(), batches_written(storage)
    return {**written, AUDIT: last} if last else written


def rollback_warning(vault: bytes, path: Path, present: dict[str, int]) -> str | None:
    """A warning when the file is older than the one last locked on this machine, else None.

    From then on it is given at every opening of a file in that place, whatever is written to it,
    until :func:`accept`. Copies elsewhere, such as backups that somebody looks at, do not matter.
    """
    seen, mark = _seen(vault), _mark(path)
    if mark in seen:
        return WARNING
    counted = {name: counter for name, counter in seen.items() if not _is_mark(name)}
    if all((present.get(name) or 0) >= (counter or 0) for name, counter in counted.items()):
        return None
    _keep(vault, {**seen, mark: 1})
    return WARNING


def remember(vault: bytes, path: Path, present: dict[str, int]) -> None:
    """Keep the counters for the next time, unless it is an older file that nobody accepted."""
    if _mark(path) not in _seen(vault):
        accept(vault, path, present)


def accept(vault: bytes, path: Path, present: dict[str, int]) -> None:
    """Take the file as it is for the newest there is."""
    marks = {name: 1 for name in _seen(vault) if _is_mark(name) and name != _mark(path)}
    _keep(vault, {**marks, **present})


def _mark(path: Path) -> str:
    """The name of a place, which the state folder need not tell."""
    return MARK + hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]


def _is_mark(name: str) -> bool:
    return name.startswith(MARK)


def _seen(vault: bytes) -> dict[str, int]:
    """What was kept. Nothing where there is nothing, or nothing that can be read."""
    file = _file(vault)
    try:
        seen = json.loads(file.read_bytes()) if file is not None and file.exists() else {}
    except (OSError, ValueError):
        return {}
    return seen if isinstance(seen, dict) else {}


def _keep(vault: bytes, counted: dict[str, int]) -> None:
    """Write it down. A state folder that cannot be written keeps none."""
    file = _file(vault)
    if file is None:
        return
    fresh = file.with_suffix(f".{os.getpid()}")
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        fresh.write_text(json.dumps(counted))
        fresh.replace(file)
    except OSError:
        with suppress(OSError):  # the next opening cannot compare: doctor tells of that
            fresh.unlink(missing_ok=True)


def _file(vault: bytes) -> Path | None:
    try:
        return state_folder() / FOLDER / f"{vault.hex()}.json"
    except MemoryStoreError:
        return None
