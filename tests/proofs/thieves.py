"""Thieves of a vault's file: what they have, and what an independent reader makes of it."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "kit"))  # nothing of memory_store is used there

from independent_reader import open_vault
from independent_sealing import Refused, Slot

from memory_store.sqlite import sqlite3  # the one of this process: two lose each other's locks


def read(path: Path, kind: str, secret: str, device: str | None = None) -> list[str]:
    """The texts that an independent reader opens. Raises Refused."""
    with closing(sqlite3.connect(path)) as connection:
        return sorted(note.text for note in open_vault(connection, kind, secret, device).notes())


def refusal(path: Path, kind: str, secret: str, device: str | None = None) -> str:
    """Why it opens nothing, in the words of the test kit."""
    try:
        read(path, kind, secret, device)
    except Refused as refused:
        return refused.outcome
    return "opens"


def slots(path: Path, principal: int = 0) -> list[Slot]:
    """The rows of ``vault_slots`` of a principal, as they stand in the file."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "select id, principal, kind, parameters, salt, commitment, wrapped from vault_slots"
        ).fetchall()
    return [slot for slot in (Slot(*row) for row in rows) if slot.principal == principal]


def vault_id(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        (found,) = connection.execute(
            "select value from vault_settings where name = 'vault'"
        ).fetchone()
    return bytes.fromhex(found)


def change(path: Path, statement: str, *values: object) -> None:
    """What a thief who can write to the file does to it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)
