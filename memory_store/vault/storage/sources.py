"""The tables of imports: imported paths, their files, and which record each memory came from.

Boundary: keyed tags and sealed paths pass; no path.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from memory_store.vault.storage.table import LISTED, Table, listed

Stored = tuple[Any, ...]
"""The columns origin, draft and file of a memory, which anyone with the file may have written."""


class Sources(Table):
    """The table ``vault_sources``: imported paths, sealed, each of one principal."""

    def tagged(self, tag: bytes, principal: int) -> tuple[str, str, bytes] | None:
        """(source, collection, head) of the source of that tag."""
        query = "select id, collection, head from vault_sources where tag = ? and principal = ?"
        return self._first(query, (tag, principal))

    def of(self, principal: int) -> list[tuple[str, str, bytes]]:
        """(source, collection, head) of all of a principal's, in the order they were named."""
        query = "select id, collection, head from vault_sources where principal = ? order by rowid"
        return self._all(query, (principal,))

    def write(self, source: str, collection: str, tag: bytes, head: bytes, principal: int) -> None:
        """Write a source in place of what had its tag or its id. It keeps its place in the list."""
        changed = self._changed(
            "update vault_sources set head = ?, principal = ? "
            "where id = ? and collection = ? and tag = ?",
            (head, principal, source, collection, tag),
        )
        if changed:
            return
        self._insert(
            "or replace into vault_sources (id, collection, tag, head, principal)",
            (source, collection, tag, head, principal),
        )

    def replace_heads(self, heads: Iterable[tuple[bytes, str]]) -> None:
        """Write (head, source) anew."""
        self._run_all("update vault_sources set head = ? where id = ?", heads)

    def forget(self, principal: int, collection: str | None = None) -> None:
        """Take a principal's sources away, of one collection or all."""
        self._run(
            """
            delete from vault_sources
            where principal = ? and collection = coalesce(?, collection)
            """,
            (principal, collection),
        )

    # -- of earlier formats --------------------------------------------------------------------

    def earlier(self) -> list[tuple[str, str, bytes]]:
        """(source, collection, head) of all, as formats before the third have them."""
        return self._all("select id, collection, head from vault_sources order by rowid")

    def delete(self, source: str) -> None:
        """Delete a source."""
        self._run("delete from vault_sources where id = ?", (source,))


class SourceFiles(Table):
    """The table ``vault_source_files``: which files were read, by keyed tags."""

    def known(self, tag: bytes, collections: Collection[str]) -> tuple[bytes, str, int] | None:
        """(content, source, memories): what is remembered of a file, and how many memories of
        those collections it stands for."""
        return self._first(
            f"""
            select content, source, (
                select count(*) from memory_sources join memories on memories.id = memory
                where file = tag and collection {LISTED}
            ) from vault_source_files where tag = ?
            """,
            (listed(collections), tag),
        )

    def known_of(
        self, source: str, collections: Collection[str]
    ) -> dict[bytes, tuple[bytes, str, int]]:
        """The same of all files of a source, by their tags."""
        rows = self._all(
            f"""
            select tag, content, source, (
                select count(*) from memory_sources join memories on memories.id = memory
                where file = tag and collection {LISTED}
            ) from vault_source_files where source = ?
            """,
            (listed(collections), source),
        )
        return {tag: (content, source, memories) for tag, content, source, memories in rows}

    def contents(self, source: str) -> list[tuple[bytes, bytes]]:
        """(content, tag) of the files of a source that some memory came from."""
        return self._all(
            """
            select content, tag from vault_source_files where source = ?
            and exists (select 1 from memory_sources where file = tag)
            """,
            (source,),
        )

    def write(self, files: Sequence[tuple[bytes, str, bytes]]) -> None:
        """Write (tag, source, content) of some files, in place of what was remembered of them."""
        self._insert("or replace into vault_source_files (tag, source, content)", *files)

    def rename_source(self, source: str, name: str) -> None:
        """Give all files of a source to another one."""
        self._run("update vault_source_files set source = ? where source = ?", (name, source))

    def forget_empty(self) -> None:
        """Forget the files that stand for no memory any more."""
        self._run(
            """
            delete from vault_source_files where not exists
                (select 1 from memory_sources where file = vault_source_files.tag)
            """
        )


class Origins(Table):
    """The table ``memory_sources``: which record each imported memory came from, by keyed tags."""

    def of(self, memories: Sequence[str]) -> dict[str, Stored]:
        """Memory → origin, draft and file, of those that have any."""
        query = f"select memory, origin, draft, file from memory_sources where memory {LISTED}"
        rows = self._all(query, (listed(memories),)) if memories else []
        return {memory: tuple(stored) for memory, *stored in rows}

    def all(self) -> list[tuple[str, Any, Any, Any]]:
        """(memory, origin, draft, file) of all there are."""
        return self._all("select memory, origin, draft, file from memory_sources")

    def places(self) -> list[tuple[str, str]]:
        """(memory, collection) of all memories that have any."""
        return self._all(
            "select id, collection from memories where id in (select memory from memory_sources)"
        )

    def memory_of(self, origin: bytes) -> tuple[str, str, Stored] | None:
        """(memory, collection, stored) of the memory that came from a record."""
        found = self._first(
            """
            select s.memory, m.collection, s.origin, s.draft, s.file
            from memory_sources s join memories m on m.id = s.memory where s.origin = ?
            """,
            (origin,),
        )
        return None if found is None else (found[0], found[1], found[2:])

    def of_file(
        self, file: bytes, collections: Collection[str]
    ) -> list[tuple[str, str, Any, Any, Any]]:
        """(memory, collection, origin, draft, file) of what came from a file."""
        return self._all(
            f"""
            select m.memory, h.collection, m.origin, m.draft, m.file from memory_sources m
            join memories h on h.id = m.memory where m.file = ? and h.collection {LISTED}
            """,
            (file, listed(collections)),
        )

    def of_source(
        self, source: str, collections: Collection[str]
    ) -> list[tuple[str, str, Any, Any, Any]]:
        """(memory, collection, origin, draft, file) of what came from the files of a source."""
        return self._all(
            f"""
            select m.memory, h.collection, m.origin, m.draft, m.file from memory_sources m
            join vault_source_files f on f.tag = m.file
            join memories h on h.id = m.memory
            where f.source = ? and h.collection {LISTED}
            """,
            (source, listed(collections)),
        )

    def insert(self, rows: Sequence[tuple[str, Any, Any, Any]]) -> None:
        """Write (memory, origin, draft, file)."""
        self._insert("into memory_sources (memory, origin, draft, file)", *rows)

    def replace_drafts(self, drafts: Iterable[tuple[bytes, str]]) -> None:
        """Write (draft, memory) anew."""
        self._run_all("update memory_sources set draft = ? where memory = ?", drafts)

    def move(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write (file, draft) of (memory, draft) that are still as they were read."""
        self._run_all(
            "update memory_sources set file = ?, draft = ? where memory = ? and draft = ?", rows
        )

    def delete(self, memories: Iterable[str]) -> None:
        """Forget where some memories came from."""
        self._run(f"delete from memory_sources where memory {LISTED}", (listed(memories),))
