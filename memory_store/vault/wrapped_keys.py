"""The rows that hold wrapped collection keys, and the number of the root key that wraps them.

Boundary: wrapped keys alone, and a number in clear.
"""

from __future__ import annotations

from memory_store.errors import TamperedError
from memory_store.sqlite import sqlite3

ROOT_SETTING = "root"  # in clear: how often the owner's root key was replaced


def insert_key(
    connection: sqlite3.Connection, collection: str, epoch: int, principal: int, wrapped: bytes
) -> None:
    """Store a collection's wrapped key for a principal (inside the caller's transaction)."""
    connection.execute(
        """
        insert or replace into vault_collection_keys (collection, epoch, principal, wrapped)
        values (?, ?, ?, ?)
        """,
        (collection, epoch, principal, wrapped),
    )


def root_generation(connection: sqlite3.Connection) -> int:
    """How often the owner's root key was replaced. In clear: it only says whom to ask again."""
    row = connection.execute(
        "select value from vault_settings where name = ?", (ROOT_SETTING,)
    ).fetchone()
    try:
        return int(row[0]) if row else 0
    except (TypeError, ValueError):
        raise TamperedError("vault_settings.value of root: not a number") from None


def next_root(connection: sqlite3.Connection) -> int:
    """Note that the owner's root key is another now (inside the caller's transaction)."""
    generation = root_generation(connection) + 1
    connection.execute(
        """
        insert into vault_settings (name, value) values (?, ?)
        on conflict (name) do update set value = excluded.value
        """,
        (ROOT_SETTING, str(generation)),
    )
    return generation
