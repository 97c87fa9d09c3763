"""Lists the tables of a vault for the page about its format, from the code that makes them."""

from __future__ import annotations

from memory_store.sqlite import connect, sqlite3
from memory_store.vault.storage.schema import LATER_TABLES, create_schema


def tables() -> str:
    """A table of the tables: their columns, those of the primary key in bold, with their types."""
    connection = connect(":memory:")
    create_schema(connection)
    names = [
        name
        for (name,) in connection.execute("select name from sqlite_master where type = 'table'")
        if not name.startswith(("_", "sqlite_"))
    ]
    lines = ["| table (all `strict`) | columns |", "|---|---|"]
    for name in sorted(names, key=lambda name: (name in LATER_TABLES, name)):
        rows = connection.execute(f"pragma table_info({name})").fetchall()
        columns = ", ".join(_column(row[1], row[2], row[5]) for row in rows)
        wanted = ", if any" if name in LATER_TABLES else ""
        lines.append(f"| `{name}`{wanted} | {columns}{_unique(connection, name)} |")
    connection.close()
    return "\n".join(lines)


def _unique(connection: sqlite3.Connection, table: str) -> str:
    """What is unique in a table beside its primary key."""
    for _, index, unique, origin, _ in connection.execute(f"pragma index_list({table})"):
        if unique and origin != "pk":
            columns = [f"`{row[2]}`" for row in connection.execute(f"pragma index_info({index})")]
            together = "together are" if columns[1:] else "is"
            return f"; {' and '.join(columns)} {together} unique"
    return ""


def _column(name: str, kind: str, key: int) -> str:
    called = f"**`{name}`**" if key else f"`{name}`"
    return called if kind == "TEXT" else f"{called} {kind.lower()}"
