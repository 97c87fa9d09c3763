"""The tables ``vault_segments``, ``vault_segment_parts`` and ``vault_changes``: the sealed index,
its extra parts, and what is dead in it.

Boundary: sealed parts and ids pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from memory_store.vault.storage.table import LISTED, Table, each_once, listed

EXTRA_TABLE = "vault_segment_parts"
PARTS = ("main", "vectors", "pairs")


class SegmentRow(Struct, frozen=True):
    """One row of ``vault_segments`` without its blobs; ``model`` is the vectors' fingerprint."""

    id: str
    collection: str
    epoch: int
    documents: int
    sequence: int
    model: str


class Change(Struct, frozen=True):
    """One row of ``vault_changes``."""

    sequence: int
    collection: str
    memory: str
    operation: str


_COLUMNS = ", ".join(SegmentRow.__struct_fields__)
_ROWS = f"select {_COLUMNS} from vault_segments order by sequence, rowid"


def _segments(rows: list[Any]) -> list[SegmentRow]:
    each_once("vault_segments", [row[0] for row in rows])
    return [SegmentRow(*row) for row in rows]


class Segments(Table):
    """Segments of the search index, and the log of what changed since they were written."""

    def rows(self) -> list[SegmentRow]:
        """Every segment, oldest first (by sequence, then by insertion). Raises TamperedError where
        one is twice."""
        return _segments(self._all(_ROWS))

    def rows_later(self) -> Callable[[], list[SegmentRow]]:
        """The same at the end of a transaction that writes, once it is committed."""
        rows = self._engine.later(_ROWS)
        return lambda: _segments(rows())

    def parts(
        self, ids: Sequence[str], names: Sequence[str] = PARTS, *, kept: bool = False
    ) -> Iterator[tuple[str, dict[str, bytes]]]:
        """Segments by id with some of their sealed parts, one after the other; those that are gone
        are left out. ``kept``: they may come from what this machine keeps of a server's."""
        query = f"select id, {', '.join(names)} from vault_segments where id {LISTED}"
        for segment, *sealed in self._engine.execute(query, (listed(ids),)):
            yield segment, dict(zip(names, sealed, strict=True))

    def insert(
        self, row: SegmentRow, sealed: Mapping[str, bytes], extras: Mapping[str, bytes]
    ) -> None:
        """Write a segment with its sealed parts, and the extra ones by kind."""
        into = f"into vault_segments ({_COLUMNS}, {', '.join(PARTS)})"
        self._insert(into, (*astuple(row), *(sealed[part] for part in PARTS)))
        if extras:
            self._engine.make([EXTRA_TABLE])
            rows = [(row.id, kind, content) for kind, content in extras.items()]
            self._insert("into vault_segment_parts (segment, kind, sealed)", *rows)

    def replace(self, segment: str, epoch: int, sealed: Mapping[str, bytes]) -> None:
        """Write some parts of a segment anew, sealed in that epoch."""
        columns = ", ".join(f"{part} = :{part}" for part in sealed)
        self._run(
            f"update vault_segments set epoch = :epoch, {columns} where id = :id",
            {**sealed, "epoch": epoch, "id": segment},
        )

    def delete(self, ids: Iterable[str]) -> None:
        """Delete segments."""
        gone = (listed(ids),)
        self._run(f"delete from vault_segments where id {LISTED}", gone)
        if self.has(EXTRA_TABLE):
            self._run(f"delete from vault_segment_parts where segment {LISTED}", gone)

    # -- extra parts ---------------------------------------------------------------------------

    def is_there(self, segment: str) -> bool:
        """Whether there is a segment of that id."""
        return self._first("select 1 from vault_segments where id = ?", (segment,)) is not None

    def extra_kinds(self) -> set[tuple[str, str]]:
        """The (segment, kind) of every extra part."""
        if not self.has(EXTRA_TABLE):
            return set()
        return set(self._all("select segment, kind from vault_segment_parts"))

    def extra(self, segment: str, kind: str, *, kept: bool = False) -> bytes | None:
        """A segment's sealed extra part of a kind; ``None`` where there is none. ``kept``: as of
        :meth:`parts`."""
        if not self.has(EXTRA_TABLE):
            return None
        query = "select sealed from vault_segment_parts where segment = ? and kind = ?"
        return self._value(query, (segment, kind))

    def extras(self, segment: str) -> dict[str, bytes]:
        """Kind → sealed extra part of a segment."""
        if not self.has(EXTRA_TABLE):
            return {}
        query = "select kind, sealed from vault_segment_parts where segment = ?"
        return dict(self._all(query, (segment,)))

    def replace_extras(self, segment: str, sealed: Mapping[str, bytes]) -> None:
        """Write extra parts of a segment anew."""
        self._run_all(
            "update vault_segment_parts set sealed = ? where segment = ? and kind = ?",
            [(content, segment, kind) for kind, content in sealed.items()],
        )

    # -- the log of changes --------------------------------------------------------------------

    def newest_change(self) -> int:
        """The newest change's number; 0 before the first. Numbers never come back."""
        return self._number("select coalesce(max(sequence), 0) from vault_changes")

    def log(self, collection: str, memories: Iterable[str], operation: str) -> None:
        """Say that these memories' entries in earlier segments are dead."""
        rows = [(collection, memory, operation) for memory in memories]
        self._insert("into vault_changes (collection, memory, operation)", *rows)

    def changes_since(self, sequence: int) -> list[Change]:
        """The changes after a number, oldest first."""
        query = """
            select sequence, collection, memory, operation from vault_changes
            where sequence > ? order by sequence
        """
        return [Change(*row) for row in self._all(query, (sequence,))]

    def trim_changes(self) -> None:
        """Forget the changes that every segment was written after, or all where no entry is dead:
        there are as many as memories. The newest stays, for its number."""
        self._run(
            """
            delete from vault_changes
            where sequence < (select max(sequence) from vault_changes)
              and (
                sequence <= (select coalesce(min(sequence), 0) from vault_segments)
                or (select sum(documents) from vault_segments) = (select count(*) from memories)
              )
            """
        )
