"""The tables ``memories`` and ``memory_bodies``: sealed heads and texts by id.

Boundary: sealed values, keyed tags and the clear columns pass. No key, no text.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from memory_store.vault.storage.table import Table, marks, parts


class MemoryRow(Struct, frozen=True):
    """One row of ``memories`` as stored."""

    id: str
    collection: str
    type: str | None
    created: str | None
    updated: str | None
    version: int
    content: str
    head: bytes


class BodyRow(Struct, frozen=True):
    """One row of ``memory_bodies`` as stored."""

    id: str
    collection: str
    tag: bytes
    body: bytes


Body = tuple[bytes, bytes]
"""The tag of a body, and the sealed body."""
_COLUMNS = "id, collection, type, created, updated, version, content, head"
_WITH_BODY = ", ".join(f"m.{column}" for column in _COLUMNS.split(", "))
_EARLIER = "collection = ? and substr({}, 3, 4) != ?"
"""Sealed in another epoch: it stands in the header of a sealed value (``crypto/sealing.py``)."""


class Memories(Table):
    """Rows of memories, and the bodies that they share."""

    __slots__ = ()

    def rows(self, ids: Sequence[str]) -> dict[str, MemoryRow]:
        """The rows of some memories by id; ids that are gone are left out."""
        rows: dict[str, MemoryRow] = {}
        for some in parts(ids):
            select = f"select {_COLUMNS} from memories where id in ({marks(len(some))})"
            rows.update((row[0], MemoryRow(*row)) for row in self._all(select, some))
        return rows

    def with_bodies(self, ids: Sequence[str]) -> dict[str, tuple[MemoryRow, Body | None]]:
        """The same, each with its body; None where that is missing."""
        rows: dict[str, tuple[MemoryRow, Body | None]] = {}
        for some in parts(ids):
            found = self._all(
                f"""
                select b.id, b.tag, b.body, {_WITH_BODY} from memories m
                left join memory_bodies b on b.id = m.content where m.id in ({marks(len(some))})
                """,
                some,
            )
            for content, tag, body, *row in found:
                rows[row[0]] = MemoryRow(*row), None if content is None else (tag, body)
        return rows

    def holders(self, contents: Sequence[str]) -> dict[str, str]:
        """Body → one memory that holds it."""
        found: dict[str, str] = {}
        for some in parts(contents):
            found |= self._all(
                f"""
                select content, min(id) from memories
                where content in ({marks(len(some))}) group by content
                """,
                some,
            )
        return found

    def places(self) -> list[tuple[str, str]]:
        """(memory, collection) of all there are, by id."""
        return self._all("select id, collection from memories order by id")

    def place(self, memory: str) -> str | None:
        """The collection of a memory."""
        found = self._first("select collection from memories where id = ?", (memory,))
        return None if found is None else found[0]

    def beginning(self, prefix: str) -> Iterator[tuple[str, str]]:
        """(memory, collection) of those whose ids begin so, in hexadecimal."""
        yield from self._connection.execute(
            "select id, collection from memories where id >= ? and id < ?", (prefix, prefix + "g")
        )

    def before(self, place: int, most: int) -> tuple[int | None, list[str]]:
        """The memories in some rows before a place, towards the beginning, and the last place."""
        found = self._all(
            "select rowid, id from memories where rowid < ? order by rowid desc limit ?",
            (place, most),
        )
        return (found[-1][0] if found else None), [memory for _, memory in found]

    def ids(self, collections: Collection[str]) -> list[str]:
        """The ids of all memories of some collections, by collection."""
        found = self._all(
            """
            select id from memories
            where collection in (select value from json_each(?)) order by collection
            """,
            (json.dumps(sorted(collections)),),
        )
        return [memory for (memory,) in found]

    def versions(self, collection: str) -> list[tuple[str, int]]:
        """(memory, version) of a collection's rows."""
        return self._all("select id, version from memories where collection = ?", (collection,))

    def count(self) -> int:
        """How many there are."""
        return self._number("select count(*) from memories")

    def counts(self, collections: Collection[str]) -> dict[str, int]:
        """Collection → how many memories it holds, of those that hold any: 5 ms for 100,000, by an
        index alone."""
        found = self._all(
            """
            select collection, count(*) from memories
            where collection in (select value from json_each(?)) group by collection
            """,
            (json.dumps([*collections]),),
        )
        return dict(found)

    def insert(self, rows: Sequence[MemoryRow], bodies: Sequence[BodyRow] = ()) -> None:
        """Write new rows, and the bodies that they are the first to hold."""
        columns = BodyRow.__struct_fields__
        statement = f"insert into memory_bodies ({', '.join(columns)}) values"
        self._insert(statement, [tuple(getattr(one, name) for name in columns) for one in bodies])
        columns = MemoryRow.__struct_fields__
        statement = f"insert into memories ({', '.join(columns)}) values"
        self._insert(statement, [tuple(getattr(one, name) for name in columns) for one in rows])

    def remove(self, ids: Sequence[str]) -> None:
        """Delete memories, their topics and origins, and the bodies that none holds any more."""
        for some in parts(ids):
            these = f"in ({marks(len(some))})"
            select = f"select distinct content from memories where id {these}"
            contents = [content for (content,) in self._all(select, some)]
            self._run(f"delete from memory_topics where memory {these}", some)
            self._run(f"delete from memory_sources where memory {these}", some)
            self._run(f"delete from memories where id {these}", some)
            self._run(
                f"""
                delete from memory_bodies where id in ({marks(len(contents))})
                and not exists (select 1 from memories where content = memory_bodies.id)
                """,
                contents,
            )

    # -- bodies by their tags ------------------------------------------------------------------

    def bodies_tagged(self, collection: str, tags: Sequence[bytes]) -> dict[bytes, str]:
        """Tag → the body of that tag in a collection."""
        found: dict[bytes, str] = {}
        for some in parts(tags):
            found |= self._all(
                f"""
                select tag, id from memory_bodies
                where collection = ? and tag in ({marks(len(some))})
                """,
                (collection, *some),
            )
        return found

    def body_tag(self, memory: str) -> bytes:
        """The tag of the body that a memory holds."""
        found = self._first(
            """
            select b.tag from memory_bodies b join memories m on m.content = b.id where m.id = ?
            """,
            (memory,),
        )
        return bytes(found[0])

    def holding(self, collection: str, tags: Sequence[bytes]) -> list[str]:
        """The memories that hold a body of one of those tags, which are few."""
        found = self._all(
            f"""
            select memories.id from memory_bodies join memories on content = memory_bodies.id
            where memory_bodies.collection = ? and tag in ({marks(len(tags))})
            order by memories.id
            """,
            (collection, *tags),
        )
        return [memory for (memory,) in found]

    # -- sealing anew --------------------------------------------------------------------------

    def sealed_before(
        self, collection: str, epoch: bytes, after: int, most: int
    ) -> list[tuple[int, str, int, bytes]]:
        """(place, memory, version, head) of some heads of a collection behind a place that are not
        sealed in that epoch, which is given as it stands in a sealed value."""
        return self._all(
            f"""
            select rowid, id, version, head from memories
            where rowid > ? and {_EARLIER.format("head")} order by rowid limit ?
            """,
            (after, collection, epoch, most),
        )

    def bodies_sealed_before(
        self, collection: str, epoch: bytes, after: int, most: int
    ) -> list[tuple[int, str, bytes, bytes]]:
        """(place, body, tag, sealed) of some bodies, as :meth:`sealed_before`."""
        return self._all(
            f"""
            select rowid, id, tag, body from memory_bodies
            where rowid > ? and {_EARLIER.format("body")} order by rowid limit ?
            """,
            (after, collection, epoch, most),
        )

    def replace_heads(self, heads: Iterable[tuple[str, bytes]]) -> None:
        """Write the heads of some memories anew."""
        self._run_all(
            "update memories set head = ? where id = ?", [(head, row) for row, head in heads]
        )

    def replace_bodies(self, bodies: Iterable[tuple[str, bytes, bytes]]) -> None:
        """Write (body, tag, sealed) anew."""
        self._run_all(
            "update memory_bodies set tag = ?, body = ? where id = ?",
            [(tag, sealed, body) for body, tag, sealed in bodies],
        )

    def size(self, collection: str) -> int:
        """How many rows a collection has, of memories, bodies and segments."""
        tables = ("memories", "memory_bodies", "vault_segments")
        each = (f"(select count(*) from {table} where collection = :one)" for table in tables)
        return self._number(f"select {' + '.join(each)}", {"one": collection})
