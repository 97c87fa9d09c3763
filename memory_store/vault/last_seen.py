"""What this machine last saw of a vault, so that an older copy put in its place is noticed.

Boundary: numbers alone (how often each collection was written) in the state folder. The file
itself cannot tell that all of it was rolled back: everything in an old copy is authentic.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from memory_store.errors import MemoryStoreError
from memory_store.paths import state_folder
from memory_store.sqlite import sqlite3
from memory_store.vault.audit import batches_written

FOLDER = "last-seen"
AUDIT = "audit"  # no collection has such an id


def counters(connection: sqlite3.Connection) -> dict[str, int]:
    """Collection → how often it was written, as the file says; and audit batches."""
    rows = connection.execute("select collection, counter from vault_manifests")
    written = {
        collection: counter
        for collection, counter in rows
        if isinstance(collection, str) and isinstance(counter, int)  # a damaged file has others
    }
    last = batches_written(connection)
    return {**written, AUDIT: last} if last else written


def rollback_warning(vault: bytes, present: dict[str, int]) -> str | None:
    """A warning when the file is older than the one last locked on this machine, else None."""
    file = _file(vault)
    try:
        seen = json.loads(file.read_bytes()) if file is not None and file.exists() else {}
    except (OSError, ValueError):
        return None
    older = [name for name, counter in seen.items() if (present.get(name) or 0) < (counter or 0)]
    if not older:
        return None
    return (
        "this file is older than the one last used on this machine: its latest changes are "
        "missing. Expected after a backup was put back; otherwise somebody exchanged the file"
    )


def remember(vault: bytes, present: dict[str, int]) -> None:
    """Keep the counters for the next time. A state folder that cannot be written keeps none."""
    file = _file(vault)
    if file is None:
        return
    fresh = file.with_suffix(f".{os.getpid()}")
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        fresh.write_text(json.dumps(present))
        fresh.replace(file)
    except OSError:
        fresh.unlink(missing_ok=True)  # the next opening cannot compare: doctor tells of that


def _file(vault: bytes) -> Path | None:
    try:
        return state_folder() / FOLDER / f"{vault.hex()}.json"
    except MemoryStoreError:
        return None
