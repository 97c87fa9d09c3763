"""The table ``memory_topics``: which memory has which topics, by keyed hashes.

Boundary: keyed hashes pass; no topic.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from memory_store.vault.storage.table import Table, marks, parts

TopicRow = tuple[str, bytes]
"""A memory and a hash."""


class Topics(Table):
    """The hashes of topics as they stand in the file."""

    __slots__ = ()

    def count(self) -> int:
        """How many rows there are."""
        return self._number("select count(*) from memory_topics")

    def insert(self, rows: Sequence[TopicRow]) -> None:
        """Write rows, those that are not there yet."""
        self._insert("insert or ignore into memory_topics (memory, topic) values", rows)

    def delete(self, rows: Iterable[TopicRow]) -> None:
        """Delete rows."""
        self._run_all("delete from memory_topics where memory = ? and topic = ?", rows)

    def of(self, memories: Collection[str]) -> set[TopicRow]:
        """Every hash of some memories."""
        found: set[TopicRow] = set()
        for some in parts([*memories]):
            select = f"select memory, topic from memory_topics where memory in ({marks(len(some))})"
            found |= set(self._all(select, some))
        return found

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
            select place, memory, topic, collection is :collection
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
        gone = self._run(
            """
            delete from memory_topics where rowid in
                (select rowid from memory_topics order by rowid desc limit ?)
            """,
            (most,),
        )
        if not gone:
            self._run("delete from memory_topics")
        return gone
