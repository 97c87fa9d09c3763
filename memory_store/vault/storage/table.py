"""What every group of tables has: a connection, and lists of values that fit into statements.

Boundary: no keys; statements and their rows alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from memory_store.sqlite import sqlite3

PART = 500  # rows that are worked on at a time
MOST_VARIABLES = 999  # in one statement: every SQLite allows so many
LISTED = "in (select value from json_each(?))"
"""The condition that a column is one of a list of texts, however long: see :func:`listed`."""
Value = TypeVar("Value")


class Table:
    """A group of tables, through one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _all(self, statement: str, values: Any = ()) -> list[Any]:
        return self._connection.execute(statement, values).fetchall()

    def _first(self, statement: str, values: Any = ()) -> Any | None:
        return self._connection.execute(statement, values).fetchone()

    def _value(self, statement: str, values: Any = ()) -> Any | None:
        """The first column of the first row; None where there is no row."""
        found = self._first(statement, values)
        return None if found is None else found[0]

    def _number(self, statement: str, values: Any = ()) -> int:
        return int(self._value(statement, values) or 0)

    def _run(self, statement: str, values: Any = ()) -> int:
        """Write. Returns how many rows were written."""
        return self._connection.execute(statement, values).rowcount

    def _run_all(self, statement: str, values: Iterable[Any]) -> None:
        self._connection.executemany(statement, values)

    def _insert(self, into: str, *rows: Sequence[Any]) -> None:
        """Insert rows, as many in a statement as fit. ``into`` names the table and its columns."""
        if not rows:
            return
        row = f"({marks(len(rows[0]))})"
        for some in parts(rows, MOST_VARIABLES // len(rows[0])):
            places = ", ".join([row] * len(some))
            self._run(f"insert {into} values {places}", tuple(chain.from_iterable(some)))

    def has(self, table: str) -> bool:
        """Whether the file has a table: a vault made before the table was gets it when needed."""
        query = "select 1 from sqlite_master where type = 'table' and name = ?"
        return self._first(query, (table,)) is not None


def marks(count: int) -> str:
    """So many places for values."""
    return ", ".join("?" * count)


def listed(values: Iterable[str]) -> str:
    """Texts as one value of a statement, for :data:`LISTED`."""
    return json.dumps([*values])


def parts(values: Sequence[Value], size: int = PART) -> Iterator[Sequence[Value]]:
    """The values, so many at a time."""
    for start in range(0, len(values), size):
        yield values[start : start + size]
