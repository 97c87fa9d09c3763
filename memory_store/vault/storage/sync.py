"""The table ``vault_sync``: what this copy of a vault knows of the versions of its memories.

Boundary: keyed tags and sealed rows pass. The table is made with its first row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memory_store.vault.storage.table import Table, parts, wanted

TABLE = "vault_sync"
SyncRow = tuple[bytes, bytes]
"""The keyed tag of what a row is about, and the row, sealed."""


class SyncTable(Table):
    """Sealed rows by keyed tags."""

    def of(self, tags: Sequence[bytes]) -> list[SyncRow]:
        """Those of some tags that are there."""
        if not self.has(TABLE):
            return []
        found: list[SyncRow] = []
        for some in parts(tags):
            query = f"""
                {wanted("tag", len(some))} select tag, (
                    select sealed from vault_sync s where s.tag = wanted.tag
                ) from wanted
            """
            found += [row for row in self._all(query, tuple(some)) if row[1] is not None]
        return found

    def all(self) -> list[SyncRow]:
        """Every row."""
        return self._all("select tag, sealed from vault_sync") if self.has(TABLE) else []

    def write(self, rows: Iterable[SyncRow]) -> None:
        """Write rows, in the places of those of their tags (in the caller's transaction)."""
        self._engine.make([TABLE])
        self._insert("or replace into vault_sync (tag, sealed)", *rows)
