"""The batch an import is filling: written whole, in one transaction, when it is full or late.

Boundary: plain drafts pass through, and are written sealed. A killed import has lost
at most the batch at work.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from memory_store.errors import ConflictError
from memory_store.importing.batch_writer import BatchWriter, Pending, Written
from memory_store.importing.counts import Counts
from memory_store.importing.job import ImportJob
from memory_store.importing.ledger import FileMark

BATCH_MEMORIES = 64
BATCH_SECONDS = 2.0  # a batch is written at the latest now: what a killed import loses
BATCH_CHARACTERS = 400_000
UNEMBEDDED_BATCH = 8  # times as large where nothing is embedded: commits would take half the time


class Batch:
    """Drafts that were read and are not written yet, and the files that are read to their end.

    The job's ``stopped`` is called before each batch is written, where an error it raises ends the
    import, and its ``written`` with the report so far after each.
    """

    def __init__(
        self,
        writer: BatchWriter,
        job: ImportJob,
        counts: Counts,
    ) -> None:
        self._writer = writer
        self._job = job
        self._counts = counts
        self._size = 1 if writer.embeds else UNEMBEDDED_BATCH
        self._begin()

    def _begin(self) -> None:
        self._pending: list[Pending] = []
        self._marks: list[FileMark] = []
        self._characters = 0
        self._origins: set[bytes | None] = set()
        self._ids: set[str] = set()
        self._began = time.monotonic()

    def __bool__(self) -> bool:
        """Whether a draft waits to be written."""
        return bool(self._pending)

    def holds_origin(self, origin: bytes) -> bool:
        """Whether a draft of that origin tag is in it."""
        return origin in self._origins

    def holds_id(self, memory: str) -> bool:
        """Whether a draft that carries this id is in it."""
        return memory.lower() in self._ids

    def put(self, pending: Pending) -> None:
        """Add a draft, and write the batch if it is full or late now."""
        draft = pending.draft
        self._pending.append(pending)
        self._origins.add(pending.origin.origin)
        if draft.id:
            self._ids.add(draft.id.lower())
        self._characters += len(draft.text)
        full = len(self._pending) >= self._size * BATCH_MEMORIES
        late = time.monotonic() - self._began > BATCH_SECONDS
        if full or late or self._characters >= self._size * BATCH_CHARACTERS:
            self.flush()

    def mark(self, file: FileMark) -> None:
        """Remember with this batch that a file was read to its end."""
        self._marks.append(file)

    def flush(self) -> None:
        """Write what is in it and mark the files it completes, in one transaction."""
        with self._writer.ledger.vault.gate.entered():
            if self._pending or self._marks:
                self._job.stopped()
                self._write(self._pending, self._marks)
            self._begin()

    def _write(self, pending: Sequence[Pending], marks: Sequence[FileMark]) -> set[bytes | None]:
        """Write and count a batch; of one that holds a taken id, all the others.

        Returns the files of what was not written.
        """
        try:
            written = Written() if self._job.request.dry_run else self._writer.write(pending, marks)
        except ConflictError:
            if not pending:
                raise
            if len(pending) > 1:
                half = len(pending) // 2
                torn = self._write(pending[:half], ()) | self._write(pending[half:], ())
                return torn | self._write((), [mark for mark in marks if mark.tag not in torn])
            written = Written(
                refused={0: "its id is taken, or it was changed by another writer meanwhile"}
            )
        self._count(pending, written)
        return {pending[number].origin.file for number in written.refused}

    def _count(self, pending: Sequence[Pending], written: Written) -> None:
        self._counts.list_ids(written.ids)
        for number, item in enumerate(pending):
            if number in written.refused:
                self._counts.fail(item.name, written.refused[number])
            elif item.replaces is None:
                self._counts.imported += 1
            else:
                self._counts.replaced += 1
        self._job.written(self._counts.report())
