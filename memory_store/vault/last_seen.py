"""What this machine last saw of a vault, so that an older copy put in its place is noticed.

Boundary: numbers alone (how often each collection and the audit trail were written) in the state
folder. The file
itself cannot show that all of it was rolled back: everything in an old copy is authentic.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from memory_store.vault import audit
from memory_store.vault.keyring import WholeKeyring
from memory_store.vault.machine import read_numbers, write_numbers
from memory_store.vault.storage import Storage

AUDIT, TRAIL = "audit", "trail"  # its batches, and how often it was written: no collections' ids
MARK = "older:"  # nor such a one: a place where an older file was, which was not accepted yet
BEHIND = (
    "this standby is behind what was last used on this machine: the latest changes are missing "
    "until it has caught up. If it never does, the vault was exchanged for an older one"
)
WARNING = (
    "this file is older than the one last used on this machine: its latest changes are missing. "
    "After a backup was put back, accept it with memory-store verify DB --accept-older; otherwise "
    "the file was exchanged"
)


def counters(storage: Storage, keyring: WholeKeyring, seen: Mapping[str, int]) -> dict[str, int]:
    """Collection → how often it was written, as the file says; and the audit trail, where its head
    can be read. Else that is as often as was ``seen``."""
    found, (batches, writes) = storage.accounts.counters(), audit.written(storage, keyring)
    own = {AUDIT: batches, TRAIL: seen.get(TRAIL) if writes is None else writes}
    return {**found, **{name: number for name, number in own.items() if number}}


def rollback_warning(
    vault: bytes, path: Path, storage: Storage, keyring: WholeKeyring
) -> str | None:
    """A warning when the file is older than the one last locked on this machine, else None.

    From then on it is given at every opening of a file in that place, whatever is written to it,
    until :func:`accept`. Copies elsewhere, such as backups, do not matter. Of a standby nothing is
    noted: it may only be behind.
    """
    seen, mark = read_numbers(_file(vault)), _mark(path)
    if mark in seen:
        return WARNING
    if not _behind(seen, counters(storage, keyring, seen)):
        return None
    if storage.standby:
        return BEHIND
    write_numbers(_file(vault), {**seen, mark: 1})
    return WARNING


def remember(
    vault: bytes, path: Path, storage: Storage, keyring: WholeKeyring, writes: int
) -> None:
    """Keep the counters for the next time, unless it is an older file that was not accepted, or a
    standby that is behind. ``writes``: how often the trail was, when this process last wrote it."""
    seen = read_numbers(_file(vault))
    present = counters(storage, keyring, seen)
    if writes > present.get(TRAIL, 0):
        present[TRAIL] = writes
    if _mark(path) not in seen and not (storage.standby and _behind(seen, present)):
        _keep(vault, path, present, seen)


def accept(vault: bytes, path: Path, storage: Storage, keyring: WholeKeyring) -> None:
    """Take the file as it is for the newest there is."""
    _keep(vault, path, counters(storage, keyring, {}), read_numbers(_file(vault)))


def _behind(seen: dict[str, int], present: dict[str, int]) -> bool:
    counted = ((name, counter or 0) for name, counter in seen.items() if not _is_mark(name))
    return any((present.get(name) or 0) < counter for name, counter in counted)


def _keep(vault: bytes, path: Path, present: dict[str, int], seen: dict[str, int]) -> None:
    marks = {name: 1 for name in seen if _is_mark(name) and name != _mark(path)}
    if seen != {**marks, **present}:
        write_numbers(_file(vault), {**marks, **present})


def _file(vault: bytes) -> str:
    return f"last-seen/{vault.hex()}.json"


def _mark(path: Path) -> str:
    """The name of a place, which the state folder need not say."""
    return MARK + hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]


def _is_mark(name: str) -> bool:
    return name.startswith(MARK)
