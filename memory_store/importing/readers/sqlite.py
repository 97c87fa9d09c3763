"""SQLite: one memory a row of one table, named by its primary key.

Boundary: the file may come from a stranger. It is opened read-only with an untrusted schema; only
ordinary tables are read, never views or virtual tables, whose definitions are code of the file's
author; values are bounded, and names reach SQL only as quoted identifiers found in the schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from memory_store.importing.readers.rows import Row, items_of, no_text_column, text_column
from memory_store.importing.source_file import (
    Broken,
    Failure,
    Item,
    LeftOutError,
    Limits,
    Reader,
    SourceFile,
    UnreadableError,
)
from memory_store.sqlite import connect, sqlite3
from memory_store.vault.storage.file_access import file_access, says_vault

STORED_COLUMN = 0  # `hidden` of pragma table_xinfo; generated columns are 2 and 3
ROW_NUMBER_NAMES = ("rowid", "_rowid_", "oid")  # https://sqlite.org/rowidtable.html
_UNDECODED = re.compile("[\udc80-\udcff]")
LIMIT_LENGTH = 0  # SQLITE_LIMIT_LENGTH, sqlite3.h


def read(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The memories of the table that was named, or of the only one there is."""
    if not sniff(file.head()):
        if file.path.stat().st_size == 0:
            raise LeftOutError("empty")
        raise UnreadableError("not a SQLite database")
    if says_vault(file.path):
        raise UnreadableError("a vault: import what memory-store export writes of it")
    try:
        with closing(_open(file.path, limits)) as connection:
            yield from items_of(file, _rows(connection, file.table, file.text_columns))
    except sqlite3.Error as error:
        yield Failure(file.name, f"SQLite: {error}")


def sniff(head: bytes) -> bool:
    """Whether the file begins as every SQLite database does (SQLite file format, section 1.3)."""
    return head.startswith(b"SQLite format 3\0")


def _open(path: Path, limits: Limits) -> sqlite3.Connection:
    connection = connect(path, read_only=True, access=file_access(path))
    connection.execute("pragma query_only = on")
    connection.execute("pragma cell_size_check = on")  # damaged pages are an error, not a guess
    # Invalid UTF-8 becomes lone surrogates, so that it costs its row and not the table.
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    if hasattr(connection, "setlimit"):
        connection.setlimit(LIMIT_LENGTH, limits.bytes)
    return connection


def _rows(
    connection: sqlite3.Connection, table: str | None, text_columns: tuple[str, ...]
) -> Iterator[Row | Broken]:
    tables = _tables(connection)
    if table is None and len(tables) == 1:
        table = tables[0]
    if table is None or table not in tables:
        wrong = "name the table to import" if table is None else f"no table {table!r}"
        yield Broken(None, f"{wrong}; the file has: {', '.join(tables[:50]) or 'none'}")
        return
    columns, keys = _columns(connection, table)
    column = text_column(columns, text_columns)
    if column is None:
        yield Broken(None, f"table {table!r}: {no_text_column(columns, text_columns)}")
        return
    if not keys:  # SQLite's own row number, by a name that no column has taken
        taken = {name.lower() for name in columns}
        free = (name for name in ROW_NUMBER_NAMES if name not in taken)
        keys = [next(free, ROW_NUMBER_NAMES[0])]
        columns = [*keys, *columns]
    selected = ", ".join(_quoted(name) for name in columns)
    rows = connection.execute(f"select {selected} from {_quoted(table)}")
    for number, cells in enumerate(rows, 1):
        yield _row(table, number, dict(zip(columns, cells, strict=True)), column, keys)


def _tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(
        """
        select name from pragma_table_list
        where schema = 'main' and type = 'table' and name not like 'sqlite\\_%' escape '\\'
        order by name
        """
    )
    return [str(name) for (name,) in rows]


def _columns(connection: sqlite3.Connection, table: str) -> tuple[list[str], list[str]]:
    """The stored columns, and those of the primary key in its order."""
    rows = connection.execute(
        "select name, pk, hidden from pragma_table_xinfo(:table)", {"table": table}
    ).fetchall()
    columns = [name for name, _, hidden in rows if hidden == STORED_COLUMN]
    keys = [name for name, pk, _ in sorted(rows, key=lambda row: row[1]) if pk]
    return columns, keys


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _row(
    table: str, number: int, cells: dict[str, Any], column: str, keys: list[str]
) -> Row | Broken:
    """One row: its text and the other columns, but neither BLOBs nor NULLs."""
    values = ("" if cells[key] is None else cells[key] for key in keys)
    ref = ",".join(key.hex() if isinstance(key, bytes) else str(key) for key in values)
    text = cells.get(column)
    if isinstance(text, bytes):
        return Broken(ref, f"the column {column!r} holds binary data")
    for name, value in cells.items():
        if isinstance(value, str) and _UNDECODED.search(value):
            return Broken(ref, f"the column {name!r} is not valid UTF-8")
    left = {
        name: value
        for name, value in cells.items()
        if name not in (column, *keys) and not isinstance(value, bytes) and value is not None
    }
    return Row(ref, number, {column: text, **left}, ref, table)


READER = Reader(
    "sqlite",
    (".db", ".sqlite", ".sqlite3"),
    read,
    sniff,
    rows=True,
    streamed=True,
    binary=True,
    on_disk=True,
    label="SQLite",
)
