"""The table ``vault_manifests``: the sealed account of each collection.

Boundary: sealed accounts and their counters pass.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from memory_store.vault.storage.table import Table


class Accounts(Table):
    """Collection → how often it was written, and its sealed account."""

    __slots__ = ()

    def of(self, collections: Collection[str]) -> dict[str, tuple[int, bytes]]:
        """Collection → counter and sealed account, of those that have one."""
        found = self._all(
            """
            select collection, counter, sealed from vault_manifests
            where collection in (select value from json_each(?))
            """,
            (json.dumps([*collections]),),
        )
        return {collection: (counter, sealed) for collection, counter, sealed in found}

    def write(self, collection: str, counter: int, sealed: bytes) -> None:
        """Replace a collection's account."""
        self._run(
            """
            insert into vault_manifests (collection, counter, sealed) values (?, ?, ?)
            on conflict (collection) do update set
                counter = excluded.counter, sealed = excluded.sealed
            """,
            (collection, counter, sealed),
        )

    def counters(self) -> dict[str, int]:
        """Collection → how often it was written, as the file says; a damaged one's is left out."""
        rows = self._all("select collection, counter from vault_manifests")
        return {
            collection: counter
            for collection, counter in rows
            if isinstance(collection, str) and isinstance(counter, int)
        }
