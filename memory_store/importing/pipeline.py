"""The course of an import: find the files, recognise what is known, read and write the rest.

Boundary: plain text of the files passes through, one batch at a time, and is written sealed. A
batch is one transaction: an import that is killed has lost at most the batch at work (of source
code that a second process reads, two of them), and goes on from there when it is run again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memory_store.code import grammars
from memory_store.errors import BadInputError, LockedError, ModelUnavailableError
from memory_store.importing.batch import Batch
from memory_store.importing.converters import process as converting
from memory_store.importing.file_importer import FileImporter
from memory_store.importing.git import commit_of, left
from memory_store.importing.job import ADD, Counts, ImportJob, ImportRequest
from memory_store.importing.ledger import Ledger, collections_of, keeps_originals, known_sources
from memory_store.importing.source_file import Failure, Found, Skip, SourceFile, refusal, shown
from memory_store.importing.walker import AsBefore, walk
from memory_store.paths import real_path
from memory_store.records import ImportReport
from memory_store.session.indexer import Indexer
from memory_store.session.opened_vault import OpenVault
from memory_store.text.identifiers import CODE
from memory_store.vault.sources import UPLOADED

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder

STDIN = "-"
NO_GRAMMARS = (
    "no grammars, source code is cut by lines and outlined by the look of them. "
    f"Try: {grammars.EXTRA}"
)


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
    counts = Counts()
    with vault.gate.entered():
        requests, left = _requests(vault, job, counts)
        preparer = Indexer(vault, embedders, failed)
    preparer.embedded = job.embedded
    try:
        for request in requests:
            _Import(vault, preparer, replace(job, request=request), counts).run()
    finally:
        preparer.close()
        converting.close()
    return counts.report(left)


def _requests(
    vault: OpenVault, job: ImportJob, counts: Counts
) -> tuple[Sequence[ImportRequest], Sequence[str]]:
    """One request for each source, and a sentence for each known source that is not read again."""
    if job.files is not None:
        return [job.request], ()
    if job.request.paths:
        return _as_kept(vault, _where_they_are(vault, job.request, counts)), ()
    known, left = known_sources(vault)
    if not known:
        why = f" on this machine: {'; '.join(left)}" if left else ""
        raise BadInputError(f"nothing was imported yet{why}: name a file or folder", "path")
    return [job.request.again(path, options) for path, options in known], left


def _where_they_are(
    vault: OpenVault, request: ImportRequest, counts: Counts
) -> Sequence[ImportRequest]:
    """A request that names no collection, parted: a path that was imported into another one than
    new paths are goes on there. Raises BadInputError where it is in several others."""
    if request.collection is not None:
        return [request]
    names, parted = vault.collections.names(), dict[str | None, list[str]]()
    for path in request.paths:
        there = [] if path == STDIN else collections_of(vault, _source_path(path))
        elsewhere = None
        if there and vault.settings.personal not in there:
            elsewhere = there[0]
            said = ", ".join(names[one] for one in there)
            if len(there) > 1:
                raise BadInputError(
                    f"collection: {shown(path)} was imported into several: {said}. "
                    f"Name one: --collection {names[elsewhere]}",
                    "collection",
                )
            goes_on = f"goes on in the collection {said}, where it was imported before"
            counts.warnings.append((shown(path), goes_on))
        parted.setdefault(elsewhere, []).append(path)
    return [
        replace(request, collection=collection, paths=tuple(paths))
        for collection, paths in parted.items()
    ]


def _as_kept(vault: OpenVault, requests: Sequence[ImportRequest]) -> Sequence[ImportRequest]:
    """The requests, parted once more: a path whose originals were kept goes on to keep them. A word
    that was left out erases nothing; ``sources edit`` says that none are to be kept."""
    found = []
    for request in requests:
        paths = [one for one in request.paths if one != STDIN]
        kept = [one for one in paths if keeps_originals(vault, _source_path(one))]
        others = [one for one in request.paths if one not in kept]
        parted = ((kept, True), (others, request.keep_originals))
        found += [replace(request, paths=tuple(p), keep_originals=keep) for p, keep in parted if p]
    return found


class _Import:
    """One request at work."""

    def __init__(self, vault: OpenVault, preparer: Indexer, job: ImportJob, counts: Counts) -> None:
        with vault.gate.entered():
            collection = vault.collections.find_or_create(job.request.collection)
            self.ledger = Ledger(vault, collection, job.request)
        self.job, self.request, self.counts = job, job.request, counts
        self.batch = Batch(self.ledger, preparer, job, counts)
        self.preparer = preparer

    def run(self) -> None:
        """Import the files at hand, or the paths of the request."""
        if self.job.files is not None:
            self._import_files(self.job.files)
        else:
            self._import_paths()

    def _import_paths(self) -> None:
        """Import files, folders or standard input (``-``) into the ledger's collection.

        Each path is remembered with the options from its first batch on.
        """
        importer = FileImporter(self.ledger, self.counts, self.batch, ADD)
        before = self.counts.report().failed
        given = {_source_path(path): path for path in reversed(self.request.paths) if path != STDIN}
        every = list(reversed(given))
        commits = {source: commit_of(Path(source)) for source in every}  # before files are read
        with self.ledger.vault.gate.entered():
            for source in every:
                self.ledger.expect(source)
            imported = {source: self.ledger.commit(source) for source in every if commits[source]}
        files = list(_found_files(self.job, self.request, self.counts, importer.as_before))
        if any(file.kind == CODE for _, file in files) and not grammars.installed():
            self.counts.hints.append(NO_GRAMMARS)
        steps = _Steps(self.batch, len(files), self.job)
        self.preparer.embedded = steps.while_embedding
        for done, (source, file) in enumerate(files):
            steps.at(file.ref, done)
            if self.job.changed(file):
                importer.take(source, file)
            elif self.job.gone:
                importer.pass_over(file)
        steps.at("", len(files))
        self.batch.flush()
        sources = [source for source in every if os.path.exists(source)]  # takes any name
        with self.ledger.vault.gate.entered():
            if self.job.gone:
                filled = {source for source, _ in files}
                self._look_for_gone(sources, filled, importer, imported)
            if not self.request.dry_run:
                named = {source: given[source] for source in sources}
                self.ledger.remember(named, self.counts.report().failures[before:], commits)
        self.job.progress("", len(files), len(files))

    def _import_files(self, files: Sequence[Found]) -> None:
        """Import files that are at hand rather than on this disk.

        A stop or a lock (LockedError) ends it with the report so far; what was read since the last
        batch is written at a stop, and lost at a lock. The same files again go on from there.
        Outside of ``readable`` collections no note is compared: that it is there already would
        confirm what it says.
        """
        compared = self.ledger.collection in self.job.readable
        differing = self.request.differing if compared else ADD
        importer = FileImporter(self.ledger, self.counts, self.batch, differing)
        try:
            for done, found in enumerate(files):
                if self.job.stopped():
                    reason = f"stopped here: {done} of {len(files)} files were read"
                    self.counts.fail(found.name, reason)
                    break
                if isinstance(found, Skip | Failure):
                    self.counts.leave_out(found)
                else:
                    self.job.progress(found.name, done, len(files))
                    importer.take(UPLOADED, found)
            self.batch.flush()
        except LockedError:
            self.counts.fail("", "the vault was locked: unlock it and upload the same again")

    def _look_for_gone(
        self,
        sources: Sequence[str],
        filled: set[str],
        importer: FileImporter,
        imported: Mapping[str, str | None],
    ) -> None:
        """Name what left its source, and with ``prune`` forget it.

        Unless that is refused, also what Git says has left a work tree since it was ``imported``
        (by its commit), if there is a trash.

        Nothing of a source that cannot be listed today, nor of one that gave no file: an empty
        folder is more likely a disk that is not there.
        """
        prune = self.request.prune
        empty = "nothing to import is left in it, so nothing of it was forgotten"
        for source in sources:
            if source not in filled:
                if prune:
                    self.counts.fail(source, empty)
                continue
            try:
                gone = self.ledger.gone(source, importer.seen_files, importer.seen_records)
                forgotten = {*gone} if prune else set()
                commit = imported.get(source)
                if gone and commit and prune is None and self.ledger.vault.settings.trash:
                    by_git = left(Path(source), commit)
                    forgotten = {one for one in gone if one.file in by_git}
                    self.counts.followed += len(forgotten)
                self.ledger.forget([one.memory for one in forgotten])
                for one in gone:
                    named = self.counts.forgotten if one in forgotten else self.counts.vanished
                    named.append(one.name)
            except OSError as error:
                if not prune:  # the walk has named the folder
                    continue
                kept = f"{refusal(error)}, so nothing of {shown(source)} was forgotten"
                self.counts.fail(shown(error.filename or source), kept)


def _source_path(path: str) -> str:
    """How a source is remembered: the absolute path as given, links resolved."""
    if path == STDIN:
        return STDIN
    try:
        return str(real_path(path))
    except ValueError:  # no system has such a name, as the walk will say
        return path


def _found_files(
    job: ImportJob, request: ImportRequest, counts: Counts, as_before: AsBefore
) -> Iterator[tuple[str, SourceFile]]:
    seen: set[Path] = set()
    named = {shown(path) for path in request.paths}  # not skipped in their folder: taken by name
    for path in request.paths:
        source = _source_path(path)
        for found in walk(
            path,
            request.glob,
            request.exclude,
            seen=seen,
            all_files=request.all_files,
            as_before=as_before,
            stdin=job.stdin,
        ):
            if isinstance(found, SourceFile):
                yield source, found
            elif not (isinstance(found, Skip) and found.name in named - {shown(path)}):
                counts.leave_out(found)


class _Steps:
    """How far an import from this disk is: files are done when what they hold is written.

    Reading takes little of the time. While a batch is embedded, its files are done by and by.
    """

    def __init__(self, batch: Batch, total: int, job: ImportJob) -> None:
        self._batch, self._total, self._job = batch, total, job
        self._name, self._read, self._written = "", 0, 0

    def at(self, name: str, read: int) -> None:
        """So many files were read, and the next one is named."""
        self._name, self._read = name, read
        if not self._batch or not self._batch.embeds:
            self._written = read
        self._job.progress(self._name, self._written, self._total)

    def while_embedding(self, done: int, total: int) -> None:
        """So many windows of the batch at work have vectors."""
        self._job.embedded(done, total)
        written = self._written + (self._read - self._written) * done // total
        self._job.progress(self._name, written, self._total)
