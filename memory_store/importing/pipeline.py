"""Importing: recognise what is known, read what is new, write it in batches.

Boundary: plain text of the files passes through, one batch at a time, and is written sealed. File
names and contents are recognised by keyed tags alone. A batch is one transaction: an import that
is killed has lost at most the batch at work, and goes on from there when it is run again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from memory_store.errors import ConflictError, LockedError, MemoryStoreError
from memory_store.importing.readers import opened_file, read_file
from memory_store.importing.session import (
    UPLOADED,
    FileMark,
    ImportOptions,
    ImportSession,
    Pending,
    Written,
)
from memory_store.importing.twins import ADD, REPLACE, Twin, Twins
from memory_store.importing.walk import MAX_FILE_BYTES, Failure, Found, Skip, SourceFile, walk
from memory_store.paths import home_path
from memory_store.records import LISTED_IDS, ImportReport, MemoryDraft
from memory_store.vault.rows import Origin

BATCH_MEMORIES = 64
BATCH_SECONDS = 2.0  # a batch is written at the latest now: what a killed import loses
BATCH_CHARACTERS = 400_000
UNEMBEDDED_BATCH = 8  # times as large where nothing is embedded: commits would take half the time
STDIN = "-"
DIFFERS = (
    "a note of the same path was imported from a folder before and says something else: nothing "
    "was changed. Import it once more, saying whether to replace that note or to add this one"
)

Progress = Callable[[str, int, "int | None"], None]
Embedded = Callable[[int, int], None]

_DRAFT_FIELDS = tuple(f.name for f in fields(MemoryDraft))


@dataclass(slots=True)
class _Tally:
    imported: int = 0
    unchanged: int = 0
    replaced: int = 0
    pruned: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)
    skips: list[tuple[str, str]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    def report(self) -> ImportReport:
        return ImportReport(
            imported=self.imported,
            unchanged=self.unchanged,
            replaced=self.replaced,
            skipped=len(self.skips),
            failed=len(self.failures),
            pruned=self.pruned,
            failures=tuple(self.failures),
            skips=tuple(self.skips),
            ids=tuple(self.ids),
        )


def import_paths(
    session: ImportSession,
    paths: Sequence[str | Path],
    options: ImportOptions,
    *,
    dry_run: bool = False,
    prune: bool = False,
    progress: Progress | None = None,
    embedded: Embedded | None = None,
) -> ImportReport:
    """Import files, folders or standard input (``-``) into the session's collection.

    ``progress`` is called with a name, how many files are done, and how many there are;
    ``embedded`` with how many windows of a batch are embedded, and how many it has.
    """
    tally = _Tally()
    run = _Run(session, options, tally, dry_run=dry_run)
    files = list(_found_files(paths, options, tally))
    steps = _Steps(run, len(files), progress, embedded)
    for done, (source, file) in enumerate(files):
        steps.at(file.ref, done)
        run.take(source, file)
    steps.at("", len(files))
    run.flush()
    named = [source for source in map(_source_path, paths) if source != STDIN]
    sources = [source for source in named if os.path.exists(source)]  # takes any name
    with session.vault.gate.entered():
        if prune:
            filled = _with_files(sources, files, tally)
            tally.pruned = session.prune(filled, run.seen_files, run.seen_records, dry_run=dry_run)
        if not dry_run:
            session.remember(sources, options)
    if progress is not None:
        progress("", len(files), len(files))
    return tally.report()


def import_files(
    session: ImportSession,
    files: Sequence[Found],
    options: ImportOptions,
    *,
    dry_run: bool = False,
    differing: str = ADD,
    stopped: Callable[[], bool] = lambda: False,
    progress: Progress | None = None,
    embedded: Embedded | None = None,
    written: Callable[[ImportReport], None] = lambda _: None,
) -> ImportReport:
    """Import files that are at hand rather than on this disk.

    ``differing``: what becomes of a file that was imported from a folder here before and says
    something else (one of :data:`memory_store.importing.twins.DIFFERING`); unless it is ``add``,
    one that says the same is unchanged.
    ``written`` is told after each batch what came of the files so far, whatever ends the import.
    ``stopped`` is asked between files, and before each batch, where what it raises ends the import.
    A stop or a lock (LockedError) ends it with the report so far; what was read since the last
    batch is written at a stop, and lost at a lock. The same files again go on from there.
    """
    tally = _Tally()
    run = _Run(
        *(session, options, tally),
        dry_run=dry_run,
        differing=differing,
        before=stopped,
        written=written,
    )
    if embedded is not None:
        session.tell_embedded(embedded)
    try:
        for done, found in enumerate(files):
            if stopped():
                left = f"stopped here: {done} of {len(files)} files were read"
                tally.failures.append((found.name, left))
                break
            if isinstance(found, Skip):
                tally.skips.append((found.name, found.reason))
            elif isinstance(found, Failure):
                tally.failures.append((found.name, found.reason))
            else:
                if progress is not None:
                    progress(found.name, done, len(files))
                run.take(UPLOADED, found)
        run.flush()
    except LockedError:
        tally.failures.append(("", "the vault was locked: unlock it and upload the same again"))
    return tally.report()


def _with_files(
    sources: Sequence[str], files: Sequence[tuple[str, SourceFile]], tally: _Tally
) -> list[str]:
    """The sources that gave a file: an empty folder is more likely a disk that is not there."""
    filled = {source for source, _ in files}
    for source in sources:
        if source not in filled:
            reason = "nothing to import is left in it, so nothing of it was forgotten"
            tally.failures.append((source, reason))
    return [source for source in sources if source in filled]


def _source_path(path: str | Path) -> str:
    """How a source is remembered: the absolute path as given, links resolved."""
    if str(path) == STDIN:
        return STDIN
    try:
        return str(home_path(path).resolve())
    except (OSError, ValueError):  # no system has such a name, as the walk will say
        return str(path)


def _found_files(
    paths: Sequence[str | Path], options: ImportOptions, tally: _Tally
) -> Iterator[tuple[str, SourceFile]]:
    seen: set[Path] = set()
    for path in paths:
        source = _source_path(path)
        for found in walk([path], options.glob, options.exclude):
            if isinstance(found, Skip):
                tally.skips.append((found.name, found.reason))
            elif isinstance(found, Failure):
                tally.failures.append((found.name, found.reason))
            elif found.path not in seen:
                seen.add(found.path)
                yield source, found


def _large(file: SourceFile) -> tuple[int, int] | None:
    """Size and time stamp of a large file on disk, by which a change shows; else ``None``."""
    try:
        status = file.path.stat() if file.content is None else None
    except OSError:
        return None
    large = status is not None and status.st_size > MAX_FILE_BYTES
    return (status.st_size, status.st_mtime_ns) if status is not None and large else None


class _Run:
    """One import at work: what it has seen, and the batch it is filling."""

    def __init__(
        self,
        session: ImportSession,
        options: ImportOptions,
        tally: _Tally,
        *,
        dry_run: bool,
        differing: str = ADD,
        before: Callable[[], object] = lambda: None,
        written: Callable[[ImportReport], None] = lambda _: None,
    ) -> None:
        self.session = session
        self.options = options
        self.tally = tally
        self.dry_run = dry_run
        self.differing = differing
        self.before = before
        self.written = written
        self.tagger = session.keys.source
        self.seen_files: set[bytes] = set()
        self.seen_records: dict[bytes, set[bytes]] = {}
        self.pending: list[Pending] = []
        self.flushed = time.monotonic()
        self.marks: list[FileMark] = []
        self.characters = 0
        self.batch = 1 if session.embeds else UNEMBEDDED_BATCH
        self._origins_in_batch: set[bytes] = set()
        self._ids_in_batch: set[str] = set()
        self._twins: Twins | None = None

    def take(self, source: str, file: SourceFile) -> None:
        """Import one file: skip it when unchanged, else read its records into the batch."""
        with self.session.vault.gate.entered():  # between files a lock may come
            self._take(source, file)

    def _take(self, source: str, file: SourceFile) -> None:
        root = str(file.root)
        tag = self.tagger.tag(b"file", _encoded(root), _encoded(file.ref))
        self.seen_files.add(tag)
        known = self.session.known_file(tag)
        there = known.memories if known is not None else 0
        before = _large(file) if not there else None  # refused at its first line, for all we know
        content = self._content_tag(file) if before is None else None
        if known is not None and there and known.content == content:
            self.tally.unchanged += there
            return
        records: set[bytes] = set()
        whole = readable = True
        for item in self._read(file):
            if isinstance(item, Skip):
                readable = False
                self.tally.skips.append((item.name, item.reason))
            elif isinstance(item, Failure):
                whole = readable = False
                self.tally.failures.append((item.name, item.reason))
            else:
                self._take_record(file, tag, item, records)
        if readable:  # what cannot be read today may be mended tomorrow: it is not forgotten
            self.seen_records[tag] = records
        if whole and before is not None:
            content = self._content_tag(file) if before == _large(file) else None
            content = content if before == _large(file) else None
        if whole and content is not None:
            self.marks.append(FileMark(source, tag, content))

    def _content_tag(self, file: SourceFile) -> bytes | None:
        """The keyed tag of the file's bytes; None for what cannot be recognised by them."""
        if file.kind in ("sqlite", "stdin"):
            return None
        try:
            with opened_file(file) as stream:
                return self.tagger.tag_stream(stream, b"content", self.options.shaping())
        except (OSError, MemoryStoreError):
            return None  # reading it again for its records reports the error

    def _read(self, file: SourceFile) -> Iterator[MemoryDraft | Skip | Failure]:
        try:
            yield from read_file(
                file, table=self.options.table, text_column=self.options.text_column
            )
        except MemoryStoreError as error:
            yield Failure(file.ref, str(error))
        except OSError as error:
            yield Failure(file.ref, error.strerror or str(error))

    def _take_record(
        self, file: SourceFile, file_tag: bytes, draft: MemoryDraft, records: set[bytes]
    ) -> None:
        draft = self._shaped(draft, file)
        name = f"{file.name}: {draft.ref or draft.id}"
        identity = draft.id if draft.ref is None else draft.ref
        origin_tag, known = self.session.known_record(
            (_encoded(draft.source), _encoded(identity)), draft
        )
        if origin_tag in records or origin_tag in self._origins_in_batch:
            self.tally.failures.append((name, "the same ref occurs twice; the first is kept"))
            return
        records.add(origin_tag)
        draft_tag = self.tagger.tag(b"draft", _canonical(draft), self.options.shaping())
        if known is not None and known.draft == draft_tag:
            self.tally.unchanged += 1
            return
        if known is not None and draft.id and known.memory != draft.id.lower():
            self.tally.failures.append((name, "its ref is that of a memory with another id"))
            return
        twin = self._twin(file, draft) if known is None else None
        if twin is not None:
            self._take_twin(twin, draft, name)
            return
        foreign = known is not None and known.origin not in (None, origin_tag)
        if foreign or (draft.id and draft.id.lower() in self._ids_in_batch):
            self.tally.failures.append((name, "its id is that of a memory from another source"))
            return
        self._origins_in_batch.add(origin_tag)
        origin = Origin(origin_tag, draft_tag, file_tag)
        self._put(Pending(draft, origin, known.memory if known else None, name))

    def _twin(self, file: SourceFile, draft: MemoryDraft) -> Twin | None:
        """The memory that the same file became by another way, where that is asked about."""
        if self.differing == ADD or draft.id or draft.collection is not None:
            return None
        if self._twins is None:
            self._twins = Twins(self.session.vault, self.session.collection)
        return self._twins.find(file, draft)

    def _take_twin(self, twin: Twin, draft: MemoryDraft, name: str) -> None:
        if twin.same:
            self.tally.unchanged += 1
        elif self.differing == REPLACE:  # it goes on being a memory of its own source
            draft = replace(draft, source=twin.source, ref=twin.ref)
            self._put(Pending(draft, twin.origin, twin.memory, name))
        else:
            self.tally.failures.append((name, DIFFERS))

    def _put(self, pending: Pending) -> None:
        """Into the batch, which is written when it is full or late."""
        draft = pending.draft
        self.pending.append(pending)
        if draft.id:
            self._ids_in_batch.add(draft.id.lower())
        self.characters += len(draft.text)
        full = len(self.pending) >= self.batch * BATCH_MEMORIES
        late = time.monotonic() - self.flushed > BATCH_SECONDS
        if full or late or self.characters >= self.batch * BATCH_CHARACTERS:
            self.flush()

    def _shaped(self, draft: MemoryDraft, file: SourceFile) -> MemoryDraft:
        """The draft with the caller's type and topics, and with its origin spelled out.

        Readers leave ``ref`` out only for an exported memory that never had a source.
        """
        return replace(
            draft,
            type=draft.type or self.options.type,
            topics=tuple(dict.fromkeys((*draft.topics, *self.options.topics))),
            source=draft.source if draft.ref is None else draft.source or str(file.root),
        )

    def flush(self) -> None:
        """Write the batch and mark the files it completes, in one transaction."""
        with self.session.vault.gate.entered():
            self._flush()

    def _flush(self) -> None:
        if self.pending or self.marks:
            self.before()
            self._write(self.pending, self.marks)
        self.pending, self.marks, self.characters = [], [], 0
        self.flushed = time.monotonic()
        self._origins_in_batch.clear()
        self._ids_in_batch.clear()

    def _write(self, pending: Sequence[Pending], marks: Sequence[FileMark]) -> set[bytes | None]:
        """Write and count a batch; of one that holds a taken id, all the others.

        Returns the files of what was not written.
        """
        try:
            written = Written() if self.dry_run else self.session.write(pending, marks)
        except ConflictError:
            if not pending:
                raise
            if len(pending) > 1:
                half = len(pending) // 2
                torn = self._write(pending[:half], ()) | self._write(pending[half:], ())
                return torn | self._write((), [mark for mark in marks if mark.tag not in torn])
            written = Written(
                refused={0: "its id is taken, or it was changed by somebody else meanwhile"}
            )
        self._count(pending, written)
        return {pending[number].origin.file for number in written.refused}

    def _count(self, pending: Sequence[Pending], written: Written) -> None:
        self.tally.ids += written.ids[: LISTED_IDS - len(self.tally.ids)]
        for number, item in enumerate(pending):
            if number in written.refused:
                self.tally.failures.append((item.name, written.refused[number]))
            elif item.replaces is None:
                self.tally.imported += 1
            else:
                self.tally.replaced += 1
        self.written(self.tally.report())


class _Steps:
    """How far an import from this disk is: files are done when what they hold is written.

    Reading takes little of the time. While a batch is embedded, its files are done by and by.
    """

    def __init__(
        self, run: _Run, total: int, progress: Progress | None, embedded: Embedded | None
    ) -> None:
        self._run, self._total = run, total
        self._progress, self._embedded = progress, embedded
        self._name, self._read, self._written = "", 0, 0
        run.session.tell_embedded(self._while_embedding)

    def at(self, name: str, read: int) -> None:
        """So many files were read, and now it is that one's turn."""
        self._name, self._read = name, read
        if not self._run.pending or not self._run.session.embeds:
            self._written = read
        self._tell(self._written)

    def _while_embedding(self, done: int, total: int) -> None:
        if self._embedded is not None:
            self._embedded(done, total)
        self._tell(self._written + (self._read - self._written) * done // total)

    def _tell(self, done: int) -> None:
        if self._progress is not None:
            self._progress(self._name, done, self._total)


def _canonical(draft: MemoryDraft) -> bytes:
    values = {name: getattr(draft, name) for name in _DRAFT_FIELDS}  # asdict copies every text
    values["metadata"] = dict(draft.metadata)
    return json.dumps(values, sort_keys=True, default=str).encode("utf-8", "surrogatepass")


def _encoded(name: str | None) -> bytes:
    return (name or "").encode("utf-8", "surrogateescape")
