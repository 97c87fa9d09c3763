"""The course of an import: find the files, recognise what is known, read and write the rest.

Boundary: plain text of the files passes through, one batch at a time, and is written sealed. A
batch is one transaction: an import that is killed has lost at most the batch at work, and goes on
from there when it is run again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from memory_store.errors import BadInputError, LockedError, ModelUnavailableError
from memory_store.importing.batch import Batch
from memory_store.importing.batch_writer import BatchWriter
from memory_store.importing.counts import Counts
from memory_store.importing.file_importer import FileImporter
from memory_store.importing.job import ADD, ImportJob, ImportRequest
from memory_store.importing.ledger import Ledger, known_sources
from memory_store.importing.removals import remove_gone
from memory_store.importing.source_file import Failure, Found, Skip, SourceFile, shown
from memory_store.importing.walker import reason, walk
from memory_store.paths import home_path
from memory_store.records import LISTED_IDS, ImportReport
from memory_store.session.opened_vault import OpenVault
from memory_store.session.preparation import Preparer
from memory_store.vault.sources import UPLOADED

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder

STDIN = "-"


def run_import(
    vault: OpenVault,
    job: ImportJob,
    embedders: Callable[[str], Embedder | None],
    failed: Callable[[str, ModelUnavailableError], None],
) -> ImportReport:
    """Import the files at hand, the paths of the request, or else every known source again.

    ``embedders`` gives the model of a collection (by id), or None to leave it without vectors.
    ``failed`` is called with a collection whose model failed on a text; that text alone is left
    without vectors. Enters the vault itself: a lock waits for one batch, not for the import.
    """
    with vault.gate.entered():
        requests, left = _requests(vault, job)
        preparer = Preparer(vault, embedders, failed)
    preparer.embedded = job.embedded
    try:
        reports = [_report(vault, preparer, replace(job, request=one)) for one in requests]
    finally:
        preparer.close()
    return replace(_sum(reports), degraded=tuple(left))


def _requests(vault: OpenVault, job: ImportJob) -> tuple[Sequence[ImportRequest], Sequence[str]]:
    """One request for each source, and a sentence for each known source that is not read again."""
    if job.files is not None or job.request.paths:
        return [job.request], ()
    known, left = known_sources(vault)
    if not known:
        why = f" on this machine: {'; '.join(left)}" if left else ""
        raise BadInputError(f"nothing was imported yet{why}: name a file or folder", "path")
    return [job.request.again(path, options) for path, options in known], left


def _report(vault: OpenVault, preparer: Preparer, job: ImportJob) -> ImportReport:
    with vault.gate.entered():
        collection = vault.collections.find_or_create(job.request.collection)
        writer = BatchWriter(Ledger(vault, collection, job.request), preparer)
    if job.files is not None:
        return _import_files(writer, job, job.files)
    return _import_paths(writer, job, preparer)


def _import_paths(writer: BatchWriter, job: ImportJob, preparer: Preparer) -> ImportReport:
    """Import files, folders or standard input (``-``) into the ledger's collection.

    Each path is remembered with the options from its first batch on.
    """
    request, ledger, counts = job.request, writer.ledger, Counts()
    batch = Batch(writer, job, counts)
    importer = FileImporter(ledger, counts, batch, differing=ADD)
    files = list(_found_files(request, counts))
    steps = _Steps(writer, batch, len(files), job)
    preparer.embedded = steps.while_embedding
    for done, (source, file) in enumerate(files):
        steps.at(file.ref, done)
        importer.take(source, file)
    steps.at("", len(files))
    batch.flush()
    named = [source for source in map(_source_path, request.paths) if source != STDIN]
    sources = [source for source in named if os.path.exists(source)]  # takes any name
    with ledger.vault.gate.entered():
        if request.prune:
            _prune(ledger, _with_files(sources, files, counts), importer, counts)
        if not request.dry_run:
            ledger.remember(sources)
    job.progress("", len(files), len(files))
    return counts.report()


def _import_files(writer: BatchWriter, job: ImportJob, files: Sequence[Found]) -> ImportReport:
    """Import files that are at hand rather than on this disk.

    A stop or a lock (LockedError) ends it with the report so far; what was read since the last
    batch is written at a stop, and lost at a lock. The same files again go on from there. Outside
    of ``readable`` collections no note is compared: that it is there already would confirm what it
    says.
    """
    counts, ledger = Counts(), writer.ledger
    batch = Batch(writer, job, counts)
    differing = job.request.differing if ledger.collection in job.readable else ADD
    importer = FileImporter(ledger, counts, batch, differing=differing)
    try:
        for done, found in enumerate(files):
            if job.stopped():
                counts.fail(found.name, f"stopped here: {done} of {len(files)} files were read")
                break
            if isinstance(found, Skip | Failure):
                counts.leave_out(found)
            else:
                job.progress(found.name, done, len(files))
                importer.take(UPLOADED, found)
        batch.flush()
    except LockedError:
        counts.fail("", "the vault was locked: unlock it and upload the same again")
    return counts.report()


def _with_files(
    sources: Sequence[str], files: Sequence[tuple[str, SourceFile]], counts: Counts
) -> list[str]:
    """The sources that gave a file: an empty folder is more likely a disk that is not there."""
    filled = {source for source, _ in files}
    for source in sources:
        if source not in filled:
            counts.fail(source, "nothing to import is left in it, so nothing of it was forgotten")
    return [source for source in sources if source in filled]


def _prune(ledger: Ledger, sources: Sequence[str], importer: FileImporter, counts: Counts) -> None:
    """Forget what left its source. Of a source that cannot be listed today, nothing is."""
    for source in sources:
        try:
            counts.forgotten += remove_gone(
                ledger, source, importer.seen_files, importer.seen_records
            )
        except OSError as error:
            name = shown(error.filename or source)
            counts.fail(name, f"{reason(error)}, so nothing of {shown(source)} was forgotten")


def _source_path(path: str) -> str:
    """How a source is remembered: the absolute path as given, links resolved."""
    if path == STDIN:
        return STDIN
    try:
        return str(home_path(path).resolve())
    except (OSError, ValueError):  # no system has such a name, as the walk will say
        return path


def _found_files(request: ImportRequest, counts: Counts) -> Iterator[tuple[str, SourceFile]]:
    seen: set[Path] = set()
    for path in request.paths:
        source = _source_path(path)
        for found in walk([path], request.glob, request.exclude):
            if isinstance(found, Skip | Failure):
                counts.leave_out(found)
            elif found.path not in seen:
                seen.add(found.path)
                yield source, found


def _sum(reports: Sequence[ImportReport]) -> ImportReport:
    """Several reports as one: numbers added, lists joined."""
    totals: dict[str, Any] = {}
    for name in ImportReport.__struct_fields__:
        values = [getattr(report, name) for report in reports]
        if isinstance(values[0], int):
            totals[name] = sum(values)
        else:
            totals[name] = tuple(item for value in values for item in value)
    totals["ids"] = totals["ids"][:LISTED_IDS]
    return ImportReport(**totals)


class _Steps:
    """How far an import from this disk is: files are done when what they hold is written.

    Reading takes little of the time. While a batch is embedded, its files are done by and by.
    """

    def __init__(self, writer: BatchWriter, batch: Batch, total: int, job: ImportJob) -> None:
        self._writer, self._batch, self._total, self._job = writer, batch, total, job
        self._name, self._read, self._written = "", 0, 0

    def at(self, name: str, read: int) -> None:
        """So many files were read, and the next one is named."""
        self._name, self._read = name, read
        if not self._batch or not self._writer.embeds:
            self._written = read
        self._job.progress(self._name, self._written, self._total)

    def while_embedding(self, done: int, total: int) -> None:
        """So many windows of the batch at work have vectors."""
        self._job.embedded(done, total)
        written = self._written + (self._read - self._written) * done // total
        self._job.progress(self._name, written, self._total)
