"""Writes the batches of one import, each in one transaction.

Boundary: plain text passes through, and is sealed below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from memory_store.dates import epoch
from memory_store.errors import BadInputError
from memory_store.importing.drafts import memory_from_draft
from memory_store.importing.ledger import FileMark, Ledger
from memory_store.records import Memory, MemoryDraft
from memory_store.session.preparation import Preparer
from memory_store.session.writer import write_batch
from memory_store.sqlite import sqlite3
from memory_store.vault.rows import Origin, open_head, read_rows


class Pending(Struct, frozen=True):
    """A draft to be written: new, or replacing the memory that has the same origin.

    ``name`` is what messages call it.
    """

    draft: MemoryDraft
    origin: Origin
    replaces: str | None
    name: str


class Written(Struct, frozen=True):
    """What came of a batch: the ids of its memories, and which drafts were refused, and why."""

    ids: Sequence[str] = ()
    refused: Mapping[int, str] = field(default_factory=dict)


class BatchWriter:
    """Writes drafts and the marks of their files."""

    def __init__(self, ledger: Ledger, preparer: Preparer) -> None:
        self.ledger = ledger
        self._vault = ledger.vault
        self._preparer = preparer

    @property
    def embeds(self) -> bool:
        """Whether a model makes vectors of what is written, which takes most of the time."""
        return self._preparer.embeds(self.ledger.collection)

    def write(self, pending: Sequence[Pending], marks: Sequence[FileMark]) -> Written:
        """Write a batch in one transaction.

        Raises ConflictError, nothing written, where an id is taken or a memory was changed.
        """
        refused: dict[int, str] = {}
        refused_files: set[bytes | None] = set()
        accepted = []
        for number, item in enumerate(pending):
            try:
                through = item.origin.through or self.ledger.collection
                accepted.append((self._memory(item), replace(item.origin, through=through)))
            except BadInputError as error:
                refused[number] = str(error)
                refused_files.add(item.origin.file)
        prepared = self._preparer.prepare(accepted)

        def mark_files(connection: sqlite3.Connection) -> None:
            for mark in marks:
                if mark.tag not in refused_files:
                    self.ledger.mark(connection, mark)

        write_batch(self._vault, prepared, self._preparer.model, mark_files)
        self.ledger.note_sources()
        return Written([memory.id for memory, _ in accepted], refused)

    def _memory(self, item: Pending) -> Memory:
        collection = self.ledger.collection
        if item.draft.collection is not None:
            collection = self._vault.collections.find_or_create(item.draft.collection)
        memory = memory_from_draft(item.draft, collection)
        if item.replaces is None:
            return memory
        with self._vault.moment() as (connection, known):
            row = read_rows(connection, [item.replaces]).get(item.replaces)
            if row is None:  # deleted meanwhile
                return memory
            created = memory.created
            if item.draft.created is None:  # an older copy put back is no younger than itself
                kept = open_head(self._vault.keyring, row, known)["created"]
                created = min(kept, memory.updated, key=epoch)
        return replace(memory, id=row.id, version=row.version + 1, created=created)
