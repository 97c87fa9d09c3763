"""What the index knows of the rows at one moment: each row that is opened is held against it.

Boundary: keyed tags, ids and versions. The index is held against the accounts when it is loaded
(``session/live_index.py``), so it is the one that was written last; and so is a row that has the
tag of its living entry.
"""

from __future__ import annotations

from collections.abc import Iterable

from memory_store.errors import TamperedError
from memory_store.index.snapshot import Snapshot
from memory_store.vault.storage.memories import MemoryRow


class KnownRows:
    """See the module, and :class:`memory_store.vault.rows.Known`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def check(self, row: MemoryRow, tag: bytes | None) -> None:
        """Raise TamperedError unless the row is the one that was written last."""
        ordinal = self.snapshot.ordinal_of(row.id)
        if ordinal is None or self.snapshot.collection(ordinal) != row.collection:
            raise TamperedError(
                f"memories of {row.id}: a row was added that the vault's index does not know; "
                "memory-store verify shows all of them"
            )
        known = self.snapshot.row_tag(ordinal)
        same = self.snapshot.versions.item(ordinal) == row.version
        if same and tag is not None and known is not None:
            same = tag == known
        if not same:
            raise TamperedError(
                f"memories of {row.id}: not the row that was written last, but another one that "
                "was put back; memory-store verify shows all of them"
            )

    def check_absent(self, memory: str) -> None:
        """Raise TamperedError where there should be a row of that id."""
        if self.snapshot.ordinal_of(memory) is not None:
            raise TamperedError(
                f"memories of {memory}: the row was taken away; memory-store verify shows all"
            )

    def tags(self, ids: Iterable[str]) -> dict[str, bytes]:
        """The row tags of those memories that are known."""
        found = {}
        for memory in ids:
            ordinal = self.snapshot.ordinal_of(memory)
            tag = self.snapshot.row_tag(ordinal) if ordinal is not None else None
            if tag is not None:
                found[memory] = tag
        return found
