"""The table ``collections``, and what is about all rows of some collections.

Boundary: ids, times, counts and sizes pass, and the sealed names of earlier formats.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from memory_store.vault.storage.table import Table

_MINE = "in (select value from json_each(:collections))"
_COUNTS = {
    "collections": f"select count(*) from collections where id {_MINE}",
    "contents": f"select count(*) from memory_bodies where collection {_MINE}",
    "sources": f"select count(*) from vault_sources where collection {_MINE}",
    "segments": f"select count(*) from vault_segments where collection {_MINE}",
    "text_bytes": f"""
        select coalesce(sum(length(body)), 0) from memory_bodies where collection {_MINE}
        """,
    "index_bytes": f"""
        select coalesce(sum(length(main) + length(vectors) + length(pairs)), 0)
        from vault_segments where collection {_MINE}
        """,
}
_KEYLESS = "collection not in (select collection from vault_collection_keys where principal = 0)"
_SWEEP = (
    f"""
    delete from memory_topics where memory in (select id from memories where {_KEYLESS})
    """,
    f"""
    delete from memory_sources where memory in (select id from memories where {_KEYLESS})
    """,
    f"""
    delete from vault_source_files where source in
        (select id from vault_sources where {_KEYLESS})
       or (source not in (select id from vault_sources) and not exists
            (select 1 from memory_sources where file = vault_source_files.tag))
    """,
    *(
        f"delete from {table} where {_KEYLESS}"
        for table in (
            "memories",
            "memory_bodies",
            "vault_sources",
            "vault_segments",
            "vault_manifests",
        )
    ),
)


class CollectionsTable(Table):
    """Collections by their random ids."""

    __slots__ = ()

    def created(self) -> dict[str, str]:
        """Collection → when it was made."""
        return dict(self._all("select id, created from collections order by rowid"))

    def insert(self, collection: str, created: str) -> None:
        """Write a new collection's row. Its name stands in the settings."""
        self._run(
            "insert into collections (id, name, created) values (?, x'', ?)", (collection, created)
        )

    def delete(self, collection: str) -> None:
        """Delete a collection's row."""
        self._run("delete from collections where id = ?", (collection,))

    def sweep(self) -> None:
        """Delete every row that no key of the owner opens any more."""
        for statement in _SWEEP:
            self._run(statement)

    def statistics(self, collections: Collection[str]) -> dict[str, int]:
        """Counts of rows, and bytes of what is sealed, in some collections."""
        mine = {"collections": json.dumps(sorted(collections))}
        return {name: self._number(query, mine) for name, query in _COUNTS.items()}

    def earlier_names(self) -> dict[str, bytes]:
        """Collection → its sealed name, as formats before the third have it."""
        return dict(self._all("select id, name from collections order by rowid"))

    def empty_names(self) -> None:
        """Take the names of earlier formats away."""
        self._run("update collections set name = x''")
