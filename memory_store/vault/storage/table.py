"""What every group of tables has: a connection, and lists of values that fit into statements.

Boundary: no keys; statements and their rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from memory_store.sqlite import sqlite3

VARIABLES = 500  # values per `in (…)`; every SQLite allows 999
MOST_VARIABLES = 999
Value = TypeVar("Value")


class Table:
    """A group of tables, through one connection."""

    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _all(self, statement: str, values: Any = ()) -> list[Any]:
        return self._connection.execute(statement, values).fetchall()

    def _first(self, statement: str, values: Any = ()) -> Any:
        return self._connection.execute(statement, values).fetchone()

    def _number(self, statement: str, values: Any = ()) -> int:
        return int(self._connection.execute(statement, values).fetchone()[0])

    def _run(self, statement: str, values: Any = ()) -> int:
        """Write. Returns how many rows were."""
        return self._connection.execute(statement, values).rowcount

    def _run_all(self, statement: str, values: Iterable[Any]) -> None:
        self._connection.executemany(statement, values)

    def _insert(self, statement: str, rows: Sequence[Sequence[Any]], after: str = "") -> None:
        """Insert rows, as many in a statement as fit. ``statement`` ends with ``values``."""
        if not rows:
            return
        row = f"({marks(len(rows[0]))})"
        for some in parts(rows, MOST_VARIABLES // len(rows[0])):
            places = ", ".join([row] * len(some))
            self._run(f"{statement} {places} {after}", tuple(chain.from_iterable(some)))

    def has(self, table: str) -> bool:
        """Whether the file has a table: those made before there was one get it when needed."""
        found = self._first(
            "select 1 from sqlite_master where type = 'table' and name = ?", (table,)
        )
        return found is not None


def marks(count: int) -> str:
    """So many places for values."""
    return ", ".join("?" * count)


def parts(values: Sequence[Value], size: int = VARIABLES) -> Iterator[Sequence[Value]]:
    """The values, so many at a time."""
    for start in range(0, len(values), size):
        yield values[start : start + size]
