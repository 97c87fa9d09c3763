"""The tables ``vault_audit`` and ``vault_expansions``: numbered sealed rows, which may be missing.

Boundary: sealed rows pass. Each table is made with its first row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from memory_store.vault.storage.table import Table, each_once


class AuditTable(Table):
    """The sealed batches of the audit trail by number; 0 is the head, which names the others."""

    @property
    def exists(self) -> bool:
        """Whether the file has the table."""
        return self.has("vault_audit")

    def create(self) -> None:
        """Make the table, if it is not there."""
        self._engine.make(["vault_audit"])

    def row(self, number: int) -> tuple[Any] | None:
        """A sealed row, whatever stands there; None where there is none."""
        return self._first("select sealed from vault_audit where sequence = ?", (number,))

    def batches(self) -> list[tuple[int, bytes]]:
        """(number, sealed) of every batch, in order. Raises TamperedError where one is twice."""
        found = self._all(
            "select sequence, sealed from vault_audit where sequence != 0 order by sequence"
        )
        each_once("vault_audit", [number for number, _ in found])
        return found

    def newest(self, ranges: Sequence[tuple[int, int]], one: int) -> tuple[list[int], bytes | None]:
        """For each range of numbers (first, end) the newest number in it; the first for none. And
        what is sealed in the row of ``one`` number."""
        if not self.exists:
            return [first for first, _ in ranges], None
        found = (
            f"coalesce((select max(sequence) from vault_audit where sequence >= {first:d} "
            f"and sequence < {end:d}), {first:d})"
            for first, end in ranges
        )
        row = f"(select sealed from vault_audit where sequence = {one:d} limit 1)"
        *numbers, sealed = self._all(f"select {', '.join(found)}, {row}")[0]
        return [int(number) for number in numbers], sealed

    def write(self, number: int, sealed: bytes) -> None:
        """Write a row in place of the one of that number."""
        self._insert("or replace into vault_audit (sequence, sealed)", (number, sealed))

    def delete(self, number: int) -> None:
        """Delete a row."""
        self._run("delete from vault_audit where sequence = ?", (number,))


class ExpansionsTable(Table):
    """The sealed answers of language models by their tags, oldest first."""

    def all(self) -> list[tuple[int, Any, Any]]:
        """(number, tag, sealed) of all there are."""
        if not self.has("vault_expansions"):
            return []
        return self._all("select sequence, tag, sealed from vault_expansions order by sequence")

    def of(self, tag: bytes) -> tuple[Any] | None:
        """What is kept for a tag, whatever stands there; None where nothing is."""
        if not self.has("vault_expansions"):
            return None
        return self._first("select sealed from vault_expansions where tag = ?", (tag,))

    def write(self, tag: bytes, sealed: bytes, most: int) -> None:
        """Put an entry in as the newest, and the oldest out, so that so many are left at most."""
        self._engine.make(["vault_expansions"])
        self._run("delete from vault_expansions where tag = ?", (tag,))
        newest = self._number("select coalesce(max(sequence), 0) + 1 from vault_expansions")
        self._insert("into vault_expansions (sequence, tag, sealed)", (newest, tag, sealed))
        self._run("delete from vault_expansions where sequence <= ?", (newest - most,))

    def replace(self, rows: Iterable[tuple[bytes, bytes, int]]) -> None:
        """Write (tag, sealed, number) anew."""
        self._run_all("update vault_expansions set tag = ?, sealed = ? where sequence = ?", rows)

    def delete(self, numbers: Iterable[int]) -> None:
        """Delete entries."""
        statement = "delete from vault_expansions where sequence = ?"
        self._run_all(statement, [(one,) for one in numbers])
