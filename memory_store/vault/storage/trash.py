"""The table ``vault_trash``: what was deleted or replaced, sealed, in the order it was.

Boundary: sealed rows and the ids of collections pass. The table is made with its first row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from memory_store.vault.storage.table import LISTED, Table, listed

TABLE = "vault_trash"
TOO_HIGH = 2**62  # for the number of a row that a vault wrote
TrashRow = tuple[int, str, bytes, bytes]
"""A row's number, its collection, what is sealed of it, and its sealed body."""


class TrashTable(Table):
    """Sealed rows by number, each of one collection; a later row has a higher number."""

    def next_number(self) -> int:
        """The number of the next row; makes the table, if it is not there."""
        self._engine.make([TABLE])
        query = "select coalesce(max(sequence), 0) + 1 from vault_trash where sequence < ?"
        return self._number(query, (TOO_HIGH,))

    def insert(self, rows: Sequence[TrashRow]) -> None:
        """Write rows."""
        self._insert("into vault_trash (sequence, collection, sealed, body)", *rows)

    def of(self, collections: Collection[str]) -> list[tuple[int, str, Any]]:
        """(number, collection, sealed) of every row of some collections, oldest first."""
        if not self.has(TABLE):
            return []
        return self._all(
            f"""
            select sequence, collection, sealed from vault_trash
            where collection {LISTED} order by sequence
            """,
            (listed(collections),),
        )

    def places(self) -> list[tuple[int, str]]:
        """(number, collection) of every row."""
        if not self.has(TABLE):
            return []
        return self._all("select sequence, collection from vault_trash order by sequence")

    def oldest(self) -> list[tuple[int, str, Any]]:
        """(number, collection, sealed) of each collection's first row."""
        if not self.has(TABLE):
            return []
        return self._all(
            """
            select sequence, collection, sealed from vault_trash
            where sequence in (select min(sequence) from vault_trash group by collection)
            """
        )

    def body(self, number: int) -> Any | None:
        """A row's sealed body; None where the row is gone."""
        return self._value("select body from vault_trash where sequence = ?", (number,))

    def delete(self, numbers: Iterable[int]) -> int:
        """Delete rows. Returns how many were there."""
        statement = "delete from vault_trash where sequence = ?"
        return sum(self._changed(statement, (number,)) for number in numbers)

    def sealed_before(
        self, collection: str, epoch: bytes, after: int, most: int
    ) -> list[tuple[int, Any, Any]]:
        """(number, sealed, body) of some of a collection's rows that are not sealed in that epoch,
        which is given as it stands in a sealed value."""
        if not self.has(TABLE):
            return []
        return self._all(
            """
            select sequence, sealed, body from vault_trash
            where sequence > ? and collection = ? and substr(sealed, 3, 4) != ?
            order by sequence limit ?
            """,
            (after, collection, epoch, most),
        )

    def replace(self, rows: Sequence[tuple[bytes, bytes, int]]) -> None:
        """Write (sealed, body, number) anew."""
        if rows:
            self._run_all("update vault_trash set sealed = ?, body = ? where sequence = ?", rows)

    def statistics(self, collections: Collection[str]) -> dict[str, int]:
        """How many rows some collections have, and how many bytes."""
        count, size = (0, 0)
        if self.has(TABLE):
            count, size = self._all(
                f"""
                select count(*), coalesce(sum(length(sealed) + length(body)), 0)
                from vault_trash where collection {LISTED}
                """,
                (listed(collections),),
            )[0]
        return {"trash": int(count), "trash_bytes": int(size)}
