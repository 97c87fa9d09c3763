"""The statements of a vault's tables, as PostgreSQL takes them.

Boundary: no keys; statements and their rows alone.

A vault's tables are views there, of the rows that are its own (``postgres_schema.py``), so the
statements of the other modules are run as they are, but for the marks of their values and lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from memory_store.vault.storage.postgres_link import Link
from memory_store.vault.storage.postgres_schema import COLUMNS, KEYS
from memory_store.vault.storage.table import LISTED

_LISTED = "= any (array(select jsonb_array_elements_text(?::jsonb)))"
_MARKS = re.compile(r"\?|(?<!:):(\w+)")
_INSERT = re.compile(r"(or \w+ )?into (\w+) \(([^)]*)\)")
if TYPE_CHECKING:
    from psycopg import Connection

READS = ("select", "with")


class PostgresEngine:
    """See :class:`memory_store.vault.storage.table.Engine`."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def execute(self, statement: str, values: Any = ()) -> Any:
        """Run a statement; its rows are all there when it returns. What writes is not waited for:
        what is asked next in its transaction says that it failed, or the commit."""
        said, writes = _translated(statement)
        self._check(writes)
        run = partial(_run, said, values or None)
        return self._link.run(run) if writes else self._link.answer(run)

    def changed(self, statement: str, values: Any = ()) -> int:
        said, _ = _translated(statement)
        self._check(writes=True)
        return int(self._link.answer(partial(_run, said, values or None)).rowcount)

    def later(self, statement: str) -> Callable[[], list[Any]]:
        asked = self._link.run(partial(_run, _translated(statement)[0], None))
        return lambda: list(asked.fetchall())

    def executemany(self, statement: str, values: Iterable[Any]) -> None:
        """Run a statement for each of the values, without waiting for the answer to each."""
        said, writes = _translated(statement)
        self._check(writes)
        rows = list(values)
        self._link.run(lambda one: one.cursor().executemany(said, rows))

    def insert(self, into: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows in one statement, which is the same for any number of them."""
        way, table, columns = _parsed(into)
        if way == "or replace ":
            self._make_room(table, columns, rows)
        values = ", ".join(f"%b::{COLUMNS[table][name]}[]" for name in columns)
        ignored = " on conflict do nothing" if way == "or ignore " else ""
        self._check(writes=True)
        statement = (
            f"insert into {table} ({', '.join(columns)}) select * from unnest({values}){ignored}"
        )
        given = [list(column) for column in zip(*rows, strict=True)]
        self._link.run(partial(_run, statement, given))

    def _make_room(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Delete what stands in the way of rows: of the same id, or the same unique tag."""
        self._check(writes=True)
        for key in KEYS[table]:
            if not set(key) <= set(columns):
                continue
            places = [columns.index(name) for name in key]
            marks = ", ".join(f"%b::{COLUMNS[table][name]}[]" for name in key)
            statement = (
                f"delete from {table} where ({', '.join(key)}) in (select * from unnest({marks}))"
            )
            given = [[row[place] for row in rows] for place in places]
            self._link.run(partial(_run, statement, given))

    def has(self, table: str) -> bool:
        """Every table is there from the beginning."""
        return True

    def make(self, tables: Iterable[str]) -> None:
        """They are there: a role for daily use makes no tables."""

    def _check(self, writes: bool) -> None:
        """A writing statement without a transaction would be seen by no counter."""
        if writes and not self._link.in_transaction:
            raise AssertionError("a statement that writes was run outside of a transaction")


def _run(statement: str, values: Any, connection: Connection[Any]) -> Any:
    return connection.execute(statement, values, binary=True)


@lru_cache(maxsize=512)
def _translated(statement: str) -> tuple[str, bool]:
    """A statement with this library's marks, and whether it writes."""
    said = statement.replace(LISTED, _LISTED)
    said = _MARKS.sub(lambda mark: f"%({mark[1]})s" if mark[1] else "%s", said)
    return said, not statement.lstrip().startswith(READS)


@lru_cache(maxsize=64)
def _parsed(into: str) -> tuple[str, str, list[str]]:
    found = _INSERT.fullmatch(" ".join(into.split()))
    if found is None:
        raise AssertionError(f"not the beginning of an insert: {into}")
    return found[1] or "", found[2], found[3].split(", ")
