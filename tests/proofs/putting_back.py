"""A thief who can write the file and has no key: he keeps rows, and puts them back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

from memory_store.sqlite import connect

Rows = Mapping[str, list[tuple[object, ...]]]

MEMORY = {
    "memories": "id = :id",
    "memory_bodies": "id in (select content from memories where id = :id)",
    "memory_topics": "memory = :id",
    "memory_sources": "memory = :id",
}
"""The tables in which a memory lies, and which of their rows are its own."""
INDEX = ("vault_segments", "vault_changes")
ACCOUNT = ("vault_manifests",)


def kept(path: Path, memory: str) -> Rows:
    """The rows of a memory, and all of the index and of the accounts, as they stand there."""
    wholes = dict.fromkeys((*INDEX, *ACCOUNT), "1")
    with closing(connect(path, read_only=True)) as connection:
        return {
            table: connection.execute(
                f"select * from {table} where {where}", {"id": memory}
            ).fetchall()
            for table, where in {**MEMORY, **wholes}.items()
        }


def put_back(path: Path, memory: str, rows: Rows, tables: Iterable[str] = MEMORY) -> None:
    """Write kept rows in the place of those that are there now."""
    chosen = [table for table in tables if rows.get(table) is not None]
    with closing(connect(path)) as connection:
        connection.execute("begin immediate")
        for table in reversed(chosen):  # bodies are found by their memory, which goes last
            connection.execute(
                f"delete from {table} where {MEMORY.get(table, '1')}", {"id": memory}
            )
        for table in chosen:
            for row in rows[table]:
                marks = ", ".join("?" * len(row))
                connection.execute(f"insert or replace into {table} values ({marks})", row)
        connection.execute("commit")
