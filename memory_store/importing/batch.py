"""The batch an import is filling: written whole, in one transaction, when it is full or late.

Boundary: plain drafts pass through, and are sealed below. A killed import has lost at most the
batch at work.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from memory_store.dates import epoch
from memory_store.errors import BadInputError, ConflictError
from memory_store.importing.drafts import memory_from_draft
from memory_store.importing.job import Counts, ImportJob
from memory_store.importing.ledger import FileMark, Ledger
from memory_store.records import Memory, MemoryDraft
from memory_store.session.indexer import Indexer
from memory_store.session.writer import write_batch
from memory_store.vault.rows import Origin, open_head
from memory_store.vault.storage import Storage
from memory_store.vault.trash import BY_IMPORT, Change

BATCH_MEMORIES = 64
BATCH_SECONDS = 2.0  # a batch is written at the latest now: what a killed import loses
BATCH_CHARACTERS = 400_000
UNEMBEDDED_BATCH = 8  # times as large where nothing is embedded: commits would take half the time


class Pending(Struct, frozen=True):
    """A draft to be written: new, or replacing the memory that has the same origin.

    ``name`` is what messages call it, ``kind`` what it is counted as.
    """

    draft: MemoryDraft
    origin: Origin
    replaces: str | None
    name: str
    kind: str


class Batch:
    """Drafts that were read and are not written yet, and the files that are read to their end.

    ``marks`` are those files. ``origins`` are the origin tags of its drafts, ``ids`` the ids that
    some of them carry.

    The job's ``stopped`` is called before each batch is written, where an error it raises ends the
    import, and its ``written`` with the report so far after each.
    """

    def __init__(self, ledger: Ledger, preparer: Indexer, job: ImportJob, counts: Counts) -> None:
        self._ledger = ledger
        self._vault = ledger.vault
        self._preparer = preparer
        self._job = job
        self._counts = counts
        self._size = 1 if self.embeds else UNEMBEDDED_BATCH
        self._replaced: set[str] = set()
        self._change = Change(BY_IMPORT, skipped=self._replaced)
        self._begin()

    def _begin(self) -> None:
        self._pending: list[Pending] = []
        self.marks: list[FileMark] = []
        self._characters = 0
        self.origins: set[bytes | None] = set()
        self.ids: set[str] = set()
        self._began = time.monotonic()

    @property
    def embeds(self) -> bool:
        """Whether a model makes vectors of what is written, which takes most of the time."""
        return self._preparer.embeds(self._ledger.collection)

    def __bool__(self) -> bool:
        """Whether a draft waits to be written."""
        return bool(self._pending)

    def put(self, pending: Pending) -> None:
        """Add a draft, and write the batch if it is full or late now."""
        draft = pending.draft
        self._pending.append(pending)
        self.origins.add(pending.origin.origin)
        if draft.id:
            self.ids.add(draft.id.lower())
        self._characters += len(draft.text)
        full = len(self._pending) >= self._size * BATCH_MEMORIES
        late = time.monotonic() - self._began > BATCH_SECONDS
        if full or late or self._characters >= self._size * BATCH_CHARACTERS:
            self.flush()

    def flush(self) -> None:
        """Write what is in it and mark the files it completes, in one transaction."""
        with self._vault.gate.entered():
            if self._pending or self.marks:
                self._job.stopped()
                self._write(self._pending, self.marks)
            self._begin()

    def _write(self, pending: Sequence[Pending], marks: Sequence[FileMark]) -> set[bytes | None]:
        """Write and count a batch; of one that holds a taken id, all the others.

        Returns the files of what was not written.
        """
        refused: dict[int, str] = {}
        try:
            if not self._job.request.dry_run:
                refused = self._store(pending, marks)
        except ConflictError:
            if not pending:
                raise
            if len(pending) > 1:
                half = len(pending) // 2
                torn = self._write(pending[:half], ()) | self._write(pending[half:], ())
                return torn | self._write((), [mark for mark in marks if mark.tag not in torn])
            refused[0] = "its id is taken, or it was changed by another writer meanwhile"
        for number, item in enumerate(pending):
            if number in refused:
                self._counts.fail(item.name, refused[number])
                continue
            self._counts.kinds[item.kind] += 1
            if item.replaces is None:
                self._counts.imported += 1
            else:
                self._counts.replaced += 1
        self._job.written(self._counts.report())
        return {pending[number].origin.file for number in refused}

    def _store(self, pending: Sequence[Pending], marks: Sequence[FileMark]) -> dict[int, str]:
        """Write a batch in one transaction. Returns which drafts were refused, and why.

        Raises ConflictError, nothing written, where an id is taken or a memory was changed.
        """
        refused: dict[int, str] = {}
        accepted = []
        for number, item in enumerate(pending):
            try:
                through = item.origin.through or self._ledger.collection
                accepted.append((self._memory(item), replace(item.origin, through=through)))
            except BadInputError as error:
                refused[number] = str(error)
        prepared = self._preparer.prepare(accepted)
        torn = {pending[number].origin.file for number in refused}

        def mark_files(storage: Storage) -> None:
            self._ledger.mark(storage, [one for one in marks if one.tag not in torn])

        write_batch(self._vault, prepared, self._preparer.model, self._change, mark_files)
        self._replaced.update(memory.id for memory, _ in accepted if memory.version > 1)
        self._ledger.note_sources()
        self._counts.list_ids([memory.id for memory, _ in accepted])
        return refused

    def _memory(self, item: Pending) -> Memory:
        collection = self._ledger.collection
        if item.draft.collection is not None:
            collection = self._vault.collections.find_or_create(item.draft.collection)
        memory = memory_from_draft(item.draft, collection)
        if item.replaces is None:
            return memory
        with self._vault.moment() as (storage, known):
            row = storage.memories.rows([item.replaces]).get(item.replaces)
            if row is None:  # deleted meanwhile
                return memory
            created = memory.created
            if item.draft.created is None:  # an older copy put back is no younger than itself
                kept = open_head(self._vault.keyring, row, known)["created"]
                created = min(kept, memory.updated, key=epoch)
        return replace(memory, id=row.id, version=row.version + 1, created=created)
