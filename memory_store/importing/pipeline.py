"""Importing: recognise what is known, read what is new, write it in batches.

Boundary: plain text of the files passes through, one batch at a time, and is written sealed. A
batch is one transaction: an import that is killed has lost at most the batch at work, and goes on
from there when it is run again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from memory_store.errors import LockedError
from memory_store.importing.batch import Batch
from memory_store.importing.intake import Intake
from memory_store.importing.session import ImportOptions, ImportSession
from memory_store.importing.tally import Tally
from memory_store.importing.twins import ADD
from memory_store.importing.walk import Failure, Found, Skip, SourceFile, reason, shown, walk
from memory_store.paths import home_path
from memory_store.records import ImportReport
from memory_store.vault.sources import UPLOADED

STDIN = "-"

Progress = Callable[[str, int, "int | None"], None]
Embedded = Callable[[int, int], None]


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

    Each path is remembered with the options from its first batch on.

    ``progress`` is called with a name, how many files are done, and how many there are;
    ``embedded`` with how many windows of a batch are embedded, and how many it has.
    """
    tally = Tally()
    session.options = options
    batch = Batch(session, tally, dry_run=dry_run)
    intake = Intake(session, options, tally, batch, prune=prune)
    files = list(_found_files(paths, options, tally))
    steps = _Steps(session, batch, len(files), progress, embedded)
    for done, (source, file) in enumerate(files):
        steps.at(file.ref, done)
        intake.take(source, file)
    steps.at("", len(files))
    batch.flush()
    named = [source for source in map(_source_path, paths) if source != STDIN]
    sources = [source for source in named if os.path.exists(source)]  # takes any name
    with session.vault.gate.entered():
        if prune:
            filled = _with_files(sources, files, tally)
            _prune(session, filled, intake, tally, dry_run=dry_run)
        if not dry_run:
            session.remember(sources)
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
    tally = Tally()
    batch = Batch(session, tally, dry_run=dry_run, before=stopped, written=written)
    intake = Intake(session, options, tally, batch, differing=differing)
    if embedded is not None:
        session.tell_embedded(embedded)
    try:
        for done, found in enumerate(files):
            if stopped():
                tally.fail(found.name, f"stopped here: {done} of {len(files)} files were read")
                break
            if isinstance(found, Skip | Failure):
                tally.turn_away(found)
            else:
                if progress is not None:
                    progress(found.name, done, len(files))
                intake.take(UPLOADED, found)
        batch.flush()
    except LockedError:
        tally.fail("", "the vault was locked: unlock it and upload the same again")
    return tally.report()


def _with_files(
    sources: Sequence[str], files: Sequence[tuple[str, SourceFile]], tally: Tally
) -> list[str]:
    """The sources that gave a file: an empty folder is more likely a disk that is not there."""
    filled = {source for source, _ in files}
    for source in sources:
        if source not in filled:
            tally.fail(source, "nothing to import is left in it, so nothing of it was forgotten")
    return [source for source in sources if source in filled]


def _prune(
    session: ImportSession, sources: Sequence[str], intake: Intake, tally: Tally, *, dry_run: bool
) -> None:
    """Forget what left its source. Of one that cannot be looked through today, nothing is."""
    for source in sources:
        try:
            tally.forgotten += session.prune(
                source, intake.seen_files, intake.seen_records, dry_run=dry_run
            )
        except OSError as error:
            name = shown(error.filename or source)
            tally.fail(name, f"{reason(error)}, so nothing of {shown(source)} was forgotten")


def _source_path(path: str | Path) -> str:
    """How a source is remembered: the absolute path as given, links resolved."""
    if str(path) == STDIN:
        return STDIN
    try:
        return str(home_path(path).resolve())
    except (OSError, ValueError):  # no system has such a name, as the walk will say
        return str(path)


def _found_files(
    paths: Sequence[str | Path], options: ImportOptions, tally: Tally
) -> Iterator[tuple[str, SourceFile]]:
    seen: set[Path] = set()
    for path in paths:
        source = _source_path(path)
        for found in walk([path], options.glob, options.exclude):
            if isinstance(found, Skip | Failure):
                tally.turn_away(found)
            elif found.path not in seen:
                seen.add(found.path)
                yield source, found


class _Steps:
    """How far an import from this disk is: files are done when what they hold is written.

    Reading takes little of the time. While a batch is embedded, its files are done by and by.
    """

    def __init__(
        self,
        session: ImportSession,
        batch: Batch,
        total: int,
        progress: Progress | None,
        embedded: Embedded | None,
    ) -> None:
        self._session, self._batch, self._total = session, batch, total
        self._progress, self._embedded = progress, embedded
        self._name, self._read, self._written = "", 0, 0
        session.tell_embedded(self._while_embedding)

    def at(self, name: str, read: int) -> None:
        """So many files were read, and now it is that one's turn."""
        self._name, self._read = name, read
        if not self._batch or not self._session.embeds:
            self._written = read
        self._tell(self._written)

    def _while_embedding(self, done: int, total: int) -> None:
        if self._embedded is not None:
            self._embedded(done, total)
        self._tell(self._written + (self._read - self._written) * done // total)

    def _tell(self, done: int) -> None:
        if self._progress is not None:
            self._progress(self._name, done, self._total)
