"""What every group of tables has: an engine that runs statements, and lists that fit into them.

Boundary: no keys; statements and their rows alone. They are SQLite's; another engine takes them as
they are, so what only SQLite understands stands in :class:`SqliteEngine`, or in its own modules.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from memory_store.errors import TamperedError
from memory_store.vault.storage.schema import create_later_tables

if TYPE_CHECKING:
    from memory_store.sqlite import sqlite3

PART = 500  # rows that are worked on at a time
MOST_VARIABLES = 999  # in one statement: every SQLite allows so many
LISTED = "in (select value from json_each(?))"
"""The condition that a column is one of a list of texts, however long: see :func:`listed`."""
Value = TypeVar("Value")


class Engine(Protocol):
    """What runs the statements of the tables on one connection."""

    @property
    def execute(self) -> Callable[..., Any]:
        """Run a statement with its values; a cursor, as of Python's database modules."""

    @property
    def executemany(self) -> Callable[..., Any]:
        """Run a statement once for each of the values."""

    def changed(self, statement: str, values: Any = ()) -> int:
        """Run a statement that writes. Returns how many rows it wrote."""

    def later(self, statement: str) -> Callable[[], list[Any]]:
        """Ask something at the end of a transaction that writes; what is returned gives the rows,
        once it is committed."""

    def insert(self, into: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows: ``[or ignore|or replace] into TABLE (COLUMNS)``."""

    def has(self, table: str) -> bool:
        """Whether there is a table: a vault made before the table was gets it when needed."""

    def make(self, tables: Iterable[str]) -> None:
        """Make those of the later tables that are not there."""


def each_once(table: str, keys: Sequence[Any]) -> None:
    """Raise TamperedError where two rows have one key: in a table of another's making they can."""
    if len(set(keys)) < len(keys):
        raise TamperedError(f"{table}: a row stands there twice")


class SqliteEngine:
    """An :class:`Engine` on a connection to a file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.execute = connection.execute
        self.executemany = connection.executemany
        self.tables: set[str] = set()  # that were seen: none is ever taken away

    def changed(self, statement: str, values: Any = ()) -> int:
        return int(self.execute(statement, values).rowcount)

    def later(self, statement: str) -> Callable[[], list[Any]]:
        rows = self.execute(statement).fetchall()
        return lambda: rows

    def insert(self, into: str, rows: Sequence[Sequence[Any]]) -> None:
        """As many rows in a statement as fit."""
        row = f"({marks(len(rows[0]))})"
        for some in parts(rows, MOST_VARIABLES // len(rows[0])):
            places = ", ".join([row] * len(some))
            self.execute(f"insert {into} values {places}", tuple(chain.from_iterable(some)))

    def has(self, table: str) -> bool:
        if table not in self.tables:
            found = self.execute("select name from sqlite_master where type = 'table'")
            self.tables.update(name for (name,) in found)
        return table in self.tables

    def make(self, tables: Iterable[str]) -> None:
        create_later_tables(self._connection, [one for one in tables if one not in self.tables])


class Table:
    """A group of tables, through one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.has = engine.has
        self._changed = engine.changed

    def _all(self, statement: str, values: Any = ()) -> list[Any]:
        found: list[Any] = self._engine.execute(statement, values).fetchall()
        return found

    def _first(self, statement: str, values: Any = ()) -> Any | None:
        return self._engine.execute(statement, values).fetchone()

    def _value(self, statement: str, values: Any = ()) -> Any | None:
        """The first column of the first row; None where there is no row."""
        found = self._first(statement, values)
        return None if found is None else found[0]

    def _number(self, statement: str, values: Any = ()) -> int:
        return int(self._value(statement, values) or 0)

    def _run(self, statement: str, values: Any = ()) -> None:
        """Write. Where how many rows were written matters: ``_changed``."""
        self._engine.execute(statement, values)

    def _run_all(self, statement: str, values: Iterable[Any]) -> None:
        self._engine.executemany(statement, values)

    def _insert(self, into: str, *rows: Sequence[Any]) -> None:
        """Insert rows. ``into`` names the table and its columns."""
        if rows:
            self._engine.insert(into, rows)


def marks(count: int) -> str:
    """So many places for values."""
    return ", ".join("?" * count)


def wanted(column: str, count: int) -> str:
    """Begins a statement about so many values, as rows of ``wanted``.

    A scalar query for each of them finds its row by an index on every engine: PostgreSQL, which
    does not know how many rows a vault has, would go through all of them for a list.
    """
    return f"with wanted({column}) as (values {', '.join(['(?)'] * count)})"


def listed(values: Iterable[str]) -> str:
    """Texts as one value of a statement, for :data:`LISTED`."""
    return json.dumps([*values])


def parts(values: Sequence[Value], size: int = PART) -> Iterator[Sequence[Value]]:
    """The values, so many at a time."""
    for start in range(0, len(values), size):
        yield values[start : start + size]
