"""The batch an import is filling: written whole, in one transaction, when it is full or late.

Boundary: plain drafts pass through, and are sealed below. A killed import has lost at most the
batch at work; of source code that a second process reads, two of them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memory_store.dates import epoch
from memory_store.errors import BadInputError, ConflictError
from memory_store.importing.drafts import ends_before_it_begins, memory_from_draft
from memory_store.importing.job import Counts, ImportJob
from memory_store.importing.ledger import FileMark, Ledger
from memory_store.records import Memory, MemoryDraft
from memory_store.session.indexer import Indexer
from memory_store.session.writer import write_batch
from memory_store.sqlite import sqlite3
from memory_store.vault.originals import described
from memory_store.vault.rows import Origin, open_head
from memory_store.vault.storage import Storage
from memory_store.vault.trash import BY_IMPORT, Change

BACKWARDS = "valid_to is before valid_from; the note was imported with both as they are"
EDITED = "it was changed in the vault: what the file says was taken"
IN_THE_TRASH = ", and the other is in the trash: {}"
BROUGHT = "another import has just brought it, saying something else: import it again"
BATCH_MEMORIES = 64
BATCH_SECONDS = 2.0  # a batch is written at the latest now: what a killed import loses
BATCH_CHARACTERS = 400_000
UNEMBEDDED_BATCH = 32  # times as large where nothing is embedded: commits and merges of many small
# segments would take half the time


class Pending(Struct, frozen=True):
    """A draft to be written: new, or replacing the memory that has the same origin.

    ``name`` is what messages call it, ``kind`` what it is counted as, ``original`` the file that it
    was read from, where that is to be kept; ``edited`` says that what it replaces was changed in
    the vault.
    """

    draft: MemoryDraft
    origin: Origin
    replaces: str | None
    name: str
    kind: str
    original: bytes | None = None
    edited: bool = False


class _Accepted(Struct, frozen=True):
    """A batch whose drafts are memories now: those that were ``refused`` with the reason, by their
    place; and the files that it completes."""

    pending: Sequence[Pending]
    marks: Sequence[FileMark]
    memories: Sequence[tuple[Memory, Origin]]
    refused: Mapping[int, str]
    originals: Mapping[str, bytes]


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
        self._before: _Accepted | None = None
        self._begin()

    def _begin(self) -> None:
        self._pending: list[Pending] = []
        self.marks: list[FileMark] = []
        self._characters = 0
        before = self._before.pending if self._before is not None else ()
        self.origins: set[bytes | None] = {one.origin.origin for one in before}
        self.ids: set[str] = {one.draft.id.lower() for one in before if one.draft.id}
        self._began = time.monotonic()

    @property
    def embeds(self) -> bool:
        """Whether a model makes vectors of what is written, which takes most of the time."""
        return self._preparer.embeds(self._ledger.collection)

    def __bool__(self) -> bool:
        """Whether a draft waits to be written."""
        return bool(self._pending or self._before)

    def put(self, pending: Pending) -> None:
        """Add a draft, and write the batch if it is full or late now."""
        draft = pending.draft
        self._pending.append(pending)
        self.origins.add(pending.origin.origin)
        if draft.id:
            self.ids.add(draft.id.lower())
        self._characters += len(draft.text) + len(pending.original or b"")
        full = len(self._pending) >= self._size * BATCH_MEMORIES
        late = time.monotonic() - self._began > BATCH_SECONDS
        if full or late or self._characters >= self._size * BATCH_CHARACTERS:
            self._advance()

    def flush(self) -> None:
        """Write what is in it and mark the files it completes, in one transaction."""
        self._advance()
        with self._vault.gate.entered():
            self._write_before()

    def _advance(self) -> None:
        """Write what is in it; where a second process reads it meanwhile, the batch before."""
        with self._vault.gate.entered():
            if self._pending or self.marks:
                ready = self._accepted(self._pending, self.marks)
                ahead = self._preparer.begin([memory for memory, _ in ready.memories])
                self._write_before()
                self._before = ready
                if not ahead:
                    self._write_before()
            self._begin()

    def _write_before(self) -> None:
        if self._before is not None:
            self._job.stopped()
            before, self._before = self._before, None
            self._write(before)

    def _write(self, batch: _Accepted) -> set[bytes | None]:
        """Write and count a batch; of one that holds a taken id, all the others.

        Returns the files of what was not written.
        """
        pending, marks, refused = batch.pending, batch.marks, dict(batch.refused)
        try:
            if not self._job.request.dry_run:
                self._store(batch)
        except (ConflictError, sqlite3.IntegrityError) as error:
            brought = self._brought_meanwhile(pending)
            if brought:
                return self._write_rest(batch, brought)
            if not pending or isinstance(error, sqlite3.IntegrityError):
                raise
            if len(pending) > 1:
                half = len(pending) // 2
                torn = self._write(self._accepted(pending[:half], ()))
                torn |= self._write(self._accepted(pending[half:], ()))
                left = [mark for mark in marks if mark.tag not in torn]
                return torn | self._write(self._accepted((), left))
            refused[0] = "its id is taken, or it was changed by another writer meanwhile"
        for number, item in enumerate(pending):
            if number in refused:
                self._counts.fail(item.name, refused[number])
                continue
            if ends_before_it_begins(item.draft):
                self._counts.warnings.append((item.name, BACKWARDS))
            if item.edited and self._ledger.collection in self._job.readable:
                kept = IN_THE_TRASH.format(item.replaces) if self._vault.settings.trash else ""
                self._counts.warnings.append((item.name, EDITED + kept))
            self._counts.kinds[item.kind] += 1
            if item.replaces is None:
                self._counts.imported += 1
            else:
                self._counts.replaced += 1
        self._job.written(self._counts.report())
        return {pending[number].origin.file for number in refused}

    def _brought_meanwhile(self, pending: Sequence[Pending]) -> dict[int, bool]:
        """Of drafts those whose record another import has brought since they were read, by their
        place: whether it says the same there."""
        keyring, found = self._vault.keyring, dict[int, bool]()
        for number, item in enumerate(pending):
            origin = item.origin.origin
            row = self._vault.reader().origins.memory_of(origin) if origin is not None else None
            if row is None or row[0] == item.replaces:
                continue
            memory, collection, stored = row
            said = None
            if collection in keyring.readable():
                through = item.origin.through or self._ledger.collection
                said = Origin.proven(keyring.of(collection), memory, through, stored)
            found[number] = said is not None and said.draft == item.origin.draft
        return found

    def _write_rest(self, batch: _Accepted, brought: Mapping[int, bool]) -> set[bytes | None]:
        """Write a batch without the drafts that another import ``brought``."""
        torn: set[bytes | None] = set()
        for number, same in brought.items():
            if same:
                self._counts.unchanged += 1
            else:
                self._counts.fail(batch.pending[number].name, BROUGHT)
                torn.add(batch.pending[number].origin.file)
        rest = [one for number, one in enumerate(batch.pending) if number not in brought]
        left = [mark for mark in batch.marks if mark.tag not in torn]
        return torn | self._write(self._accepted(rest, left))

    def _accepted(self, pending: Sequence[Pending], marks: Sequence[FileMark]) -> _Accepted:
        """A batch with its memories; of a dry run, with none."""
        refused: dict[int, str] = {}
        accepted, originals = [], dict[str, bytes]()
        for number, item in enumerate(() if self._job.request.dry_run else pending):
            try:
                through = item.origin.through or self._ledger.collection
                memory = self._memory(item)
                accepted.append((memory, replace(item.origin, through=through)))
                if item.original is not None:
                    originals[memory.id] = item.original
            except BadInputError as error:
                refused[number] = str(error)
        return _Accepted(pending, marks, accepted, refused, originals)

    def _store(self, batch: _Accepted) -> None:
        """Write a batch in one transaction.

        Raises ConflictError, nothing written, where an id is taken or a memory was changed.
        """
        accepted = batch.memories
        prepared = self._preparer.prepare(accepted)
        torn = {batch.pending[number].origin.file for number in batch.refused}

        def mark_files(storage: Storage) -> None:
            self._ledger.mark(storage, [one for one in batch.marks if one.tag not in torn])

        write_batch(
            self._vault,
            prepared,
            self._preparer.model,
            self._change,
            mark_files,
            originals=batch.originals,
        )
        self._replaced.update(memory.id for memory, _ in accepted if memory.version > 1)
        self._ledger.note_sources()
        self._counts.list_ids([memory.id for memory, _ in accepted])

    def _memory(self, item: Pending) -> Memory:
        collection = self._ledger.collection
        if item.draft.collection is not None:
            collection = self._vault.collections.find_or_create(item.draft.collection)
        memory = memory_from_draft(item.draft, collection)
        if item.original is not None:
            original = described(memory.ref or item.name, item.original)
            memory = replace(memory, original=original)
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
