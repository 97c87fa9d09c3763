"""The tables ``vault_settings``, ``vault_manifests`` and ``collections``, and what is about all
rows of some collections.

Boundary: sealed settings and accounts pass as they are, ids, times, counts and sizes, and the
sealed names of earlier formats. Nothing that stands in clear is believed by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from memory_store.vault.storage.segments import EXTRA_TABLE
from memory_store.vault.storage.table import LISTED, Table, listed

ID_LENGTH = 36  # of a body that is a text; a part of an original has a longer id
_COUNTS = {
    "collections": f"select count(*) from collections where id {LISTED}",
    "contents": f"""
        select count(*) from memory_bodies where collection {LISTED} and length(id) <= {ID_LENGTH}
    """,
    "original_bytes": f"""
        select sum(length(body)) from memory_bodies
        where collection {LISTED} and length(id) > {ID_LENGTH}
    """,
    "sources": f"select count(*) from vault_sources where collection {LISTED}",
    "segments": f"select count(*) from vault_segments where collection {LISTED}",
    "text_bytes": f"""
        select sum(length(body)) from memory_bodies
        where collection {LISTED} and length(id) <= {ID_LENGTH}
    """,
    "index_bytes": f"""
        select sum(length(main) + length(vectors) + length(pairs))
        from vault_segments where collection {LISTED}
    """,
}
_EXTRA_BYTES = f"""
    select sum(length(sealed)) from vault_segment_parts
    where segment in (select id from vault_segments where collection {LISTED})
"""
_KEYLESS = "collection not in (select collection from vault_collection_keys where principal = 0)"
_SWEEP = (
    f"delete from memory_topics where memory in (select id from memories where {_KEYLESS})",
    f"delete from memory_sources where memory in (select id from memories where {_KEYLESS})",
    f"""
    delete from vault_source_files where source in
        (select id from vault_sources where {_KEYLESS})
       or (source not in (select id from vault_sources) and not exists
            (select 1 from memory_sources where file = vault_source_files.tag))
    """,
    f"delete from memories where {_KEYLESS}",
    f"delete from memory_bodies where {_KEYLESS}",
    f"delete from vault_sources where {_KEYLESS}",
    f"delete from vault_segments where {_KEYLESS}",
    f"delete from vault_manifests where {_KEYLESS}",
)
_SWEEP_EXTRAS = """
    delete from vault_segment_parts where segment not in (select id from vault_segments)
"""
_SWEEP_TRASH = f"delete from vault_trash where {_KEYLESS}"


class SettingsTable(Table):
    """Settings by name: a value in clear, a sealed one, or both."""

    def clear(self, name: str) -> Any:
        """A value in clear; None where there is none."""
        return self._value("select value from vault_settings where name = ?", (name,))

    def number(self, name: str) -> int | None:
        """A number in clear; None where there is no such setting."""
        return number(self.clear(name))

    def revision(self) -> int:
        """The revision of the sealed settings, as it stands in clear; 0 where there are none."""
        return self.number("settings") or 0

    def write_clear(self, values: Mapping[str, str]) -> None:
        """Replace values in clear, of settings that are not sealed."""
        self._insert("or replace into vault_settings (name, value)", *values.items())

    def delete(self, name: str) -> None:
        """Take a setting away."""
        self._run("delete from vault_settings where name = ?", (name,))

    def sealed(self) -> tuple[int, bytes] | None:
        """The sealed settings, and their revision as it stands in clear."""
        row = self._first("select value, sealed from vault_settings where name = 'settings'")
        return None if row is None else (number(row[0]) or 0, row[1])

    def write_sealed(self, revision: int, sealed: bytes) -> None:
        """Replace the sealed settings."""
        row = ("settings", str(revision), sealed)
        self._insert("or replace into vault_settings (name, value, sealed)", row)


def number(value: str | None) -> int | None:
    """A setting in clear as a number, whatever stands there: 0 for what is none, as SQLite casts
    it."""
    if value is None:
        return None
    return int(value) if value.isdecimal() and len(value) < 20 else 0


class Accounts(Table):
    """Collection → how often it was written, and its sealed account."""

    def of(self, collections: Collection[str]) -> dict[str, tuple[int, bytes]]:
        """Collection → counter and sealed account, of those that have one."""
        query = f"""
            select collection, counter, sealed from vault_manifests where collection {LISTED}
        """
        rows = self._all(query, (listed(collections),))
        return {collection: (counter, sealed) for collection, counter, sealed in rows}

    def write(self, collection: str, counter: int, sealed: bytes) -> None:
        """Replace a collection's account."""
        row = (collection, counter, sealed)
        self._insert("or replace into vault_manifests (collection, counter, sealed)", row)

    def counters(self) -> dict[str, int]:
        """Collection → how often it was written, as the file says; a damaged one is left out."""
        rows = self._all("select collection, counter from vault_manifests")
        return {
            collection: counter
            for collection, counter in rows
            if isinstance(collection, str) and isinstance(counter, int)
        }


class CollectionsTable(Table):
    """Collections by their random ids."""

    def created(self) -> dict[str, str]:
        """Collection → when it was made."""
        return dict(self._all("select id, created from collections order by rowid"))

    def insert(self, collection: str, created: str) -> None:
        """Write a new collection's row. Its name stands in the settings."""
        self._insert("into collections (id, name, created)", (collection, b"", created))

    def delete(self, collection: str) -> None:
        """Delete a collection's row."""
        self._run("delete from collections where id = ?", (collection,))

    def sweep(self) -> None:
        """Delete every row that no key of the owner opens any more."""
        extras = (_SWEEP_EXTRAS,) if self.has(EXTRA_TABLE) else ()
        for statement in (*_SWEEP, *extras):
            self._run(statement)
        if self.has("vault_trash"):
            self._run(_SWEEP_TRASH)

    def statistics(self, collections: Collection[str]) -> dict[str, int]:
        """Counts of rows, and bytes of what is sealed, in some collections."""
        mine = (listed(sorted(collections)),)
        counted = {name: self._number(query, mine) for name, query in _COUNTS.items()}
        if self.has(EXTRA_TABLE):
            counted["index_bytes"] += self._number(_EXTRA_BYTES, mine)
        return counted

    def earlier_names(self) -> dict[str, bytes]:
        """Collection → its sealed name, as formats before the third have it."""
        return dict(self._all("select id, name from collections order by rowid"))

    def empty_names(self) -> None:
        """Take the names of earlier formats away."""
        self._run("update collections set name = x''")
