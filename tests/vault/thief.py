"""A thief with write access to the file, who has no key."""

from __future__ import annotations

from pathlib import Path

from memory_store.sqlite import sqlite3  # two libraries on one file undo each other's locks


def change(path: Path, statement: str, *values: object) -> int:
    """Plain SQL on the file. Returns how many rows it met."""
    with sqlite3.connect(path) as connection:
        changed = connection.execute(statement, values).rowcount
    connection.close()
    return changed
