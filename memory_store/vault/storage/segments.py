"""The tables ``vault_segments`` and ``vault_changes``: the sealed index, and what is dead in it.

Boundary: sealed parts and ids pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import astuple

from memory_store.vault.storage.table import LISTED, Table, listed

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


class Segments(Table):
    """Segments of the search index, and the log of what changed since they were written."""

    def rows(self) -> list[SegmentRow]:
        """Every segment, oldest first (by sequence, then by insertion)."""
        query = f"select {_COLUMNS} from vault_segments order by sequence, rowid"
        return [SegmentRow(*row) for row in self._all(query)]

    def parts(
        self, ids: Sequence[str], names: Sequence[str] = PARTS
    ) -> Iterator[tuple[str, dict[str, bytes]]]:
        """Segments by id with some of their sealed parts, one after the other; those that are gone
        are left out."""
        query = f"select id, {', '.join(names)} from vault_segments where id {LISTED}"
        for segment, *sealed in self._connection.execute(query, (listed(ids),)):
            yield segment, dict(zip(names, sealed, strict=True))

    def insert(self, row: SegmentRow, sealed: Mapping[str, bytes]) -> None:
        """Write a segment with its sealed parts."""
        into = f"into vault_segments ({_COLUMNS}, {', '.join(PARTS)})"
        self._insert(into, (*astuple(row), *(sealed[part] for part in PARTS)))

    def replace(self, segment: str, epoch: int, sealed: Mapping[str, bytes]) -> None:
        """Write some parts of a segment anew, sealed in that epoch."""
        columns = ", ".join(f"{part} = :{part}" for part in sealed)
        self._run(
            f"update vault_segments set epoch = :epoch, {columns} where id = :id",
            {**sealed, "epoch": epoch, "id": segment},
        )

    def delete(self, ids: Iterable[str]) -> None:
        """Delete segments."""
        self._run(f"delete from vault_segments where id {LISTED}", (listed(ids),))

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
        """Forget the changes that every segment was written after; the newest stays, for its
        number."""
        self._run(
            """
            delete from vault_changes
            where sequence < (select max(sequence) from vault_changes)
              and sequence <= (select coalesce(min(sequence), 0) from vault_segments)
            """
        )
