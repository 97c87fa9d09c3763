"""The tables ``memories``, ``memory_bodies`` and ``memory_topics``: sealed heads and texts by id.

Boundary: sealed values, keyed tags and the clear columns pass. No key, no text, no topic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import astuple

from memory_store.vault.storage.table import LISTED, Table, listed, parts, wanted


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
TopicRow = tuple[str, bytes]
"""A memory and the hash of a topic."""
ORIGINALS_AT_ONCE = 100  # memories whose parts are looked for in one statement
_COLUMNS = ", ".join(MemoryRow.__struct_fields__)
_WITH_BODY = ", ".join(f"m.{column}" for column in MemoryRow.__struct_fields__)
_EARLIER = "rowid > ? and collection || '' = ? and substr({}, 3, 4) != ? order by rowid limit ?"
"""Sealed in another epoch: it stands in the header of a sealed value (``crypto/sealing.py``). Not
by an index of the collection, which would be read and sorted as a whole for each batch."""


class Memories(Table):
    """Rows of memories, and the bodies that they share."""

    keeps = False  # rows of a server on this machine
    mirrors = False  # all of them

    def rows(self, ids: Sequence[str]) -> dict[str, MemoryRow]:
        """The rows of some memories by id; ids that are gone are left out."""
        if not ids:
            return {}
        found = self._all(f"select {_COLUMNS} from memories where id {LISTED}", (listed(ids),))
        return {row[0]: MemoryRow(*row) for row in found}

    def with_bodies(self, ids: Sequence[str]) -> dict[str, tuple[MemoryRow, Body | None]]:
        """The same, each with its body; None where that is missing."""
        found = self._all(
            f"""
            select b.id, b.tag, b.body, {_WITH_BODY} from memories m
            left join memory_bodies b on b.id = m.content where m.id {LISTED}
            """,
            (listed(ids),),
        )
        return {
            row[0]: (MemoryRow(*row), None if content is None else (tag, body))
            for content, tag, body, *row in found
        }

    def kept(self, tags: Mapping[str, bytes]) -> list[tuple[MemoryRow, Body]]:
        """What this machine keeps of rows on a server, with their bodies, under the row tags that
        they have now; some of it may be damaged."""
        return []

    def keep(
        self, rows: Iterable[tuple[MemoryRow, Body | None]], tags: Mapping[str, bytes]
    ) -> None:
        """Keep rows of a server on this machine, with their bodies, under their row tags."""

    def mirror(self, every: Callable[[], Mapping[str, bytes]], keys: int) -> None:
        """Keep all rows of a server on this machine, by their row tags, if the user wants that.

        ``keys`` is another number once those that opened what was kept before are gone.
        """

    def holders(self, contents: Sequence[str]) -> dict[str, str]:
        """Body → one memory that holds it."""
        query = f"select content, min(id) from memories where content {LISTED} group by content"
        return dict(self._all(query, (listed(contents),)))

    def places(self) -> list[tuple[str, str]]:
        """(memory, collection) of all there are, by id."""
        return self._all("select id, collection from memories order by id")

    def place(self, memory: str) -> str | None:
        """The collection of a memory."""
        return self._value("select collection from memories where id = ?", (memory,))

    def beginning(self, prefix: str) -> list[tuple[str, str]]:
        """(memory, collection) of those whose ids begin so, in hexadecimal."""
        return self._all(
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
        query = f"select id from memories where collection {LISTED} order by collection"
        return [memory for (memory,) in self._all(query, (listed(sorted(collections)),))]

    def versions(self, collection: str) -> list[tuple[str, int]]:
        """(memory, version) of a collection's rows."""
        return self._all("select id, version from memories where collection = ?", (collection,))

    def count(self) -> int:
        """How many there are."""
        return self._number("select count(*) from memories")

    def counts(self, collections: Collection[str]) -> dict[str, int]:
        """Collection → how many memories it holds, of those that hold any: 5 ms for 100,000, by an
        index alone."""
        found: dict[str, int] = {}
        for some in parts([*collections]):
            query = f"""
                {wanted("collection", len(some))} select collection, (
                    select count(*) from memories where memories.collection = wanted.collection
                ) from wanted
            """
            found |= self._all(query, tuple(some))
        return {collection: count for collection, count in found.items() if count}

    def insert(self, rows: Sequence[MemoryRow], bodies: Sequence[BodyRow] = ()) -> None:
        """Write new rows, and the bodies that they are the first to hold."""
        self._insert("into memory_bodies (id, collection, tag, body)", *map(astuple, bodies))
        self._insert(f"into memories ({_COLUMNS})", *map(astuple, rows))

    def bodies(self, ids: Sequence[str]) -> dict[str, Body]:
        """Some bodies by their ids; those that are gone are left out."""
        query = f"select id, tag, body from memory_bodies where id {LISTED}"
        return {id_: (tag, body) for id_, tag, body in self._all(query, (listed(ids),))}

    def originals(self, memories: Sequence[str], collections: Collection[str]) -> dict[str, int]:
        """The parts of the originals of some memories in some collections, and how long each is."""
        found: dict[str, int] = {}
        for some in parts(memories, ORIGINALS_AT_ONCE):
            within = " or ".join(["(id > ? and id < ?)"] * len(some))
            # by id alone: by the index on collections each deletion would read every body
            query = f"select id, collection, length(body) from memory_bodies where {within}"
            ends = [end for one in some for end in (f"{one}.", f"{one}/")]
            rows = self._all(query, ends)
            found |= {part: size for part, of, size in rows if of in collections}
        return found

    def remove_bodies(self, ids: Sequence[str]) -> None:
        """Delete bodies that no memory holds."""
        self._run(f"delete from memory_bodies where id {LISTED}", (listed(ids),))

    def remove(self, ids: Sequence[str]) -> None:
        """Delete memories, their topics and origins, and the bodies that none holds any more."""
        these = (listed(ids),)
        contents = self._all(f"select distinct content from memories where id {LISTED}", these)
        self._run(f"delete from memory_topics where memory {LISTED}", these)
        self._run(f"delete from memory_sources where memory {LISTED}", these)
        self._run(f"delete from memories where id {LISTED}", these)
        self._run(
            f"""
            delete from memory_bodies where id {LISTED}
            and not exists (select 1 from memories where content = memory_bodies.id)
            """,
            (listed(content for (content,) in contents),),
        )

    # -- bodies by their tags ------------------------------------------------------------------

    def bodies_tagged(self, collection: str, tags: Sequence[bytes]) -> dict[bytes, str]:
        """Tag → the body of that tag in a collection."""
        found: dict[bytes, str] = {}
        for some in parts(tags):
            query = f"""
                {wanted("tag", len(some))} select tag, (
                    select id from memory_bodies b where b.collection = ? and b.tag = wanted.tag
                ) from wanted
            """
            found |= self._all(query, (*some, collection))
        return {tag: body for tag, body in found.items() if body is not None}

    def body_tag(self, memory: str) -> bytes:
        """The tag of the body that a memory holds."""
        query = "select tag from memory_bodies b join memories m on content = b.id where m.id = ?"
        return bytes(self._all(query, (memory,))[0][0])

    def holding(self, collection: str, tags: Sequence[bytes]) -> list[str]:
        """The memories that hold a body of one of those tags, which are few."""
        bodies = self.bodies_tagged(collection, tags).values()
        query = f"select id from memories where content {LISTED} order by id"
        return [memory for (memory,) in self._all(query, (listed(bodies),))]

    # -- sealing anew --------------------------------------------------------------------------

    def sealed_before(
        self, collection: str, epoch: bytes, after: int, most: int
    ) -> list[tuple[int, str, int, bytes]]:
        """(place, memory, version, head) of some heads of a collection behind a place that are not
        sealed in that epoch, which is given as it stands in a sealed value."""
        query = f"select rowid, id, version, head from memories where {_EARLIER.format('head')}"
        return self._all(query, (after, collection, epoch, most))

    def bodies_sealed_before(
        self, collection: str, epoch: bytes, after: int, most: int
    ) -> list[tuple[int, str, bytes, bytes]]:
        """(place, body, tag, sealed) of some bodies, as :meth:`sealed_before`."""
        query = f"select rowid, id, tag, body from memory_bodies where {_EARLIER.format('body')}"
        return self._all(query, (after, collection, epoch, most))

    def replace_heads(self, heads: Iterable[tuple[bytes, str]]) -> None:
        """Write (head, memory) anew."""
        self._run_all("update memories set head = ? where id = ?", heads)

    def replace_bodies(self, bodies: Iterable[tuple[bytes, bytes, str]]) -> None:
        """Write (tag, sealed, body) anew."""
        self._run_all("update memory_bodies set tag = ?, body = ? where id = ?", bodies)

    def size(self, collection: str) -> int:
        """How many rows a collection has, of memories, bodies and segments."""
        tables = ("memories", "memory_bodies", "vault_segments")
        each = (f"(select count(*) from {table} where collection = :one)" for table in tables)
        return self._number(f"select {' + '.join(each)}", {"one": collection})


class Topics(Table):
    """The table ``memory_topics``: which memory has which topics, by keyed hashes."""

    def count(self) -> int:
        """How many rows there are."""
        return self._number("select count(*) from memory_topics")

    def insert(self, rows: Sequence[TopicRow]) -> None:
        """Write rows, those that are not there yet."""
        self._insert("or ignore into memory_topics (memory, topic)", *rows)

    def delete(self, rows: Iterable[TopicRow]) -> None:
        """Delete rows."""
        self._run_all("delete from memory_topics where memory = ? and topic = ?", rows)

    def of(self, memories: Collection[str]) -> set[TopicRow]:
        """Every hash of some memories."""
        query = f"select memory, topic from memory_topics where memory {LISTED}"
        return set(self._all(query, (listed(memories),)))

    def before(self, place: int, most: int, collection: str) -> tuple[int | None, list[TopicRow]]:
        """The next rows towards the beginning of the table: the last one's place, and the
        collection's among them. So many are looked at, of any collection, that the time is
        bounded."""
        found = self._all(
            """
            with part as (
                select rowid as place, memory, topic from memory_topics
                where rowid < :below order by rowid desc limit :most
            )
            select place, memory, topic, coalesce(collection = :collection, false)
            from part left join memories on id = memory
            """,
            {"below": place, "most": most, "collection": collection},
        )
        rows = [(memory, topic) for _, memory, topic, mine in found if mine]
        return min((row[0] for row in found), default=None), rows

    def clear(self, most: int) -> int:
        """Delete some rows, from the end of the table to its beginning; returns how many.

        A page that lost its rows is overwritten as it becomes free. What stays of the table and its
        indexes are their first pages, which SQLite overwrites when everything is deleted without a
        condition, as it is here once nothing is left.
        """
        gone = self._changed(
            """
            delete from memory_topics where rowid in
                (select rowid from memory_topics order by rowid desc limit ?)
            """,
            (most,),
        )
        if not gone:
            self._run("delete from memory_topics")
        return gone
