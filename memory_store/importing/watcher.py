"""Follows folders and imports what changes in them, until it is stopped.

Boundary: sees names, sizes and time stamps of files; the import itself reads and seals them.

Events of the system say *when* to look; what has changed is what differs from the last look. So
events that come twice or never, folders that are renamed and drives that go away all end in the
same state. A file is read once it has kept its size and time stamp for a moment: not while a
program is writing it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from stat import S_ISDIR
from time import monotonic, time

from msgspec import Struct
from msgspec.structs import replace

from memory_store.errors import BadInputError, BusyError, ExtraMissingError, StorageError
from memory_store.importing.folder_names import is_passed_over
from memory_store.importing.job import ImportJob, ImportRequest
from memory_store.importing.source_file import NOT_THERE, SourceFile, shown
from memory_store.records import ImportReport, Progress, unheard

EXTRA = "pip install 'datasette-hybrid[watch]'"
SETTLED = 0.4  # seconds that a file has not been written to before it is read
GONE = 1.0  # seconds that a file is missing before it counts as gone: editors replace files
AGAIN = 5.0  # seconds until the next try where the vault could not be written
GATHERED = 0.2  # seconds in which events become one look
POLLED = 0.25  # seconds between two looks at what is named, and at whether to stop
AWAY = "not there now; its memories are kept, and it is followed again when it is back"
VAULT_PARTS = ("", "-wal", "-shm", "-journal")

Signature = tuple[int, int, int]
"""Time stamp, size and number of a file: what differs when it was written or replaced."""
Identity = tuple[int, int]
"""Device and number of a folder: what differs when another takes its place."""


class Calls(Struct, frozen=True):
    """What a watcher asks of the store.

    ``sources`` are the paths that an import without a path reads again. ``embed`` gives vectors to
    what has none and calls its argument often. ``stopped`` says whether to end. ``progress`` is
    called with the file that the first import is at.
    """

    run: Callable[[ImportJob], ImportReport]
    sources: Callable[[], Sequence[str]]
    embed: Callable[[Callable[[], None]], Sequence[str]]
    vault: Path
    stopped: Callable[[], bool]
    progress: Progress = unheard


def watch(calls: Calls, request: ImportRequest, rescan: float) -> Iterator[ImportReport]:
    """The report of an import now, and of each later one that did something.

    Without paths in the request it follows every known source. Words and topics are written at
    once; vectors follow while nothing changes. ``rescan``: seconds after which it looks without an
    event, for drives that give none. Raises ExtraMissingError, BadInputError
    where no path is there, and what an import raises.
    """
    check_installed()
    if rescan < 1:
        raise BadInputError("rescan: at least 1 second expected", "rescan")
    watcher = _Watcher(calls, request, rescan)
    if not any(os.path.exists(path) for path in watcher.paths()):
        named = ", ".join(map(shown, request.paths))
        why = f"{named}: {NOT_THERE}" if named else "no known source is there"
        raise BadInputError(f"nothing to watch: {why}", "path")
    return watcher.reports()


def check_installed() -> None:
    """Raise ExtraMissingError where the library that hears of changes is missing."""
    if find_spec("watchfiles") is None:
        raise ExtraMissingError(f"watch needs an extra: {EXTRA}")


class _LookDueError(Exception):
    """Ends embedding, which goes on after the look."""


class _Watcher:
    def __init__(self, calls: Calls, request: ImportRequest, rescan: float) -> None:
        self._calls, self._request, self._rescan = calls, request, rescan
        self._event = threading.Event()
        self._read: dict[Path, Signature] = {}  # as the files were when they were read
        self._unread: dict[Path, tuple[Signature, float]] = {}  # not settled: as it is since when
        self._missing: frozenset[Path] = frozenset()
        self._missing_since = 0.0
        self._next = monotonic()
        self._to_embed = request.embed
        self._said: set[object] = set()
        self._failing: frozenset[tuple[str, str]] = frozenset()  # what the last look could not read
        self._deaf = ""

    def paths(self) -> list[str]:
        """What is followed: absolute paths, links resolved."""
        named = self._request.paths or self._calls.sources()
        return [os.path.realpath(os.path.expanduser(path)) for path in named]

    def reports(self) -> Iterator[ImportReport]:
        first = True
        while not self._calls.stopped():
            paths = self.paths()
            listened = _folders(paths)
            with self._listening(list(listened)):
                while not self._calls.stopped():
                    report = self._new(self._look(first=first), paths, first=first)
                    if first or _did_something(report):
                        yield report
                    first = False
                    self._embed()
                    self._wait(paths, listened)
                    if paths != self.paths() or listened != _folders(paths):
                        break  # a source more or less, a folder that came or went: listen anew

    @contextmanager
    def _listening(self, folders: Sequence[str]) -> Iterator[None]:
        """A thread that sets the event when something changes in a folder."""
        from watchfiles import watch as listen

        stop = threading.Event()

        def work() -> None:
            try:
                for _ in listen(
                    *folders,
                    watch_filter=lambda _, path: self._counts(path),
                    debounce=int(GATHERED * 1000),
                    stop_event=stop,
                    ignore_permission_denied=True,
                ):
                    self._event.set()
            except (OSError, RuntimeError) as error:  # too many folders for the system
                self._deaf = f"the system sends no events ({error}): looking every "
                self._deaf += f"{self._rescan:g} s instead"

        thread = threading.Thread(target=work, name="memory-store watch", daemon=True)
        if folders:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            if folders:
                thread.join()

    def _counts(self, path: str) -> bool:
        """Whether a change there matters: not of the vault, nor of what is passed over."""
        folder, name = os.path.split(path)
        vault = self._calls.vault
        if folder == str(vault.parent) and name in [vault.name + part for part in VAULT_PARTS]:
            return False
        return not is_passed_over(name)

    def _look(self, *, first: bool) -> ImportReport:
        """Import what is new and has settled, and plan the next look."""
        began = monotonic()
        there: set[Path] = set()
        taken: dict[Path, Signature] = {}
        unread: dict[Path, tuple[Signature, float]] = {}

        def changed(file: SourceFile) -> bool:
            found = _signature(file.path)
            if found is None:
                return False
            there.add(file.path)
            if found == self._read.get(file.path):
                return False
            before, since = self._unread.get(file.path, (None, began))
            if before != found:
                since = began
            # A time stamp may come from another clock: a file that stays the same is done too.
            quiet = time() - found[0] / 1e9 >= SETTLED or began - since >= SETTLED
            if quiet:
                taken[file.path] = found
            else:
                unread[file.path] = found, since
            return quiet

        self._event.clear()
        long_missing = self._missing and began - self._missing_since >= GONE
        job = ImportJob(
            request=self._request,
            embedded_later=True,
            changed=changed,
            progress=self._calls.progress if first else unheard,
            gone=first or bool(long_missing and not self._unread),
        )
        try:
            report = self._calls.run(job)
        except (StorageError, BusyError) as error:  # what was not written is read again
            self._next = monotonic() + AGAIN
            return ImportReport(failed=1, failures=((str(self._calls.vault), str(error)),))
        self._read |= taken
        self._unread = unread
        self._to_embed |= bool(taken) and self._request.embed
        missing = frozenset(self._read) - there
        if job.gone:
            if not any(_is_folder_within(name, self.paths()) for name, _ in report.failures):
                self._read = {path: self._read[path] for path in self._read if path in there}
            missing = frozenset()
        if missing != self._missing:
            self._missing, self._missing_since = missing, began
        done = monotonic()
        self._next = done + self._rescan
        if missing:
            self._next = max(self._missing_since + GONE, done + GATHERED)
        if unread:
            self._next = began + SETTLED
        return report

    def _new(self, report: ImportReport, paths: Sequence[str], *, first: bool) -> ImportReport:
        """A report less what earlier ones said, and less what was removed before it was read."""
        degraded = (*report.degraded, *([self._deaf] if self._deaf else []))
        found = [_said(one, paths) for one in report.failures if not _went(one, paths)]
        failures = tuple(one for one in found if one not in self._failing)
        self._failing = frozenset(found)
        said = frozenset() if first else frozenset(map(shown, self._request.paths))
        return replace(
            report,
            failed=len(failures),
            failures=failures,
            warnings=tuple(one for one in report.warnings if one[0] not in said),
            vanished=self._unsaid(report.vanished),
            degraded=self._unsaid(degraded),
            skipped=report.skipped if first else 0,
            skips=report.skips if first else (),
        )

    def _unsaid(self, lines: Sequence[object]) -> tuple[object, ...]:
        new = tuple(line for line in lines if line not in self._said)
        self._said.update(new)
        return new

    def _embed(self) -> None:
        """Embed what was written, until there is something to look at."""
        if not self._to_embed:
            return

        def breath() -> None:
            if self._event.is_set() or monotonic() >= self._next or self._calls.stopped():
                raise _LookDueError

        try:
            self._calls.embed(breath)
            self._to_embed = False
        except _LookDueError:
            return

    def _wait(self, paths: Sequence[str], listened: Mapping[str, Identity]) -> None:
        """Wait for an event, a change of what is named, or the time of the next look."""
        files = [Path(path) for path in paths if os.path.isfile(path)]
        self._event.wait(GATHERED)
        while monotonic() < self._next and not self._calls.stopped():
            if self._event.wait(min(POLLED, max(0.0, self._next - monotonic()))):
                return
            if any(_signature(file) != self._read.get(file) for file in files):
                return
            if listened != _folders(paths):
                return


def _went(failure: tuple[str, str], paths: Sequence[str]) -> bool:
    """Whether a file was removed just before it was read. A source that is gone is a failure."""
    return failure[1] == NOT_THERE and not _is_source(failure[0], paths)


def _said(failure: tuple[str, str], paths: Sequence[str]) -> tuple[str, str]:
    """A failure as it is reported: of a source that is gone, with what comes of its memories."""
    name, reason = failure
    return (name, AWAY) if reason == NOT_THERE and _is_source(name, paths) else failure


def _is_source(name: str, paths: Sequence[str]) -> bool:
    return os.path.realpath(os.path.expanduser(name)) in paths


def _is_folder_within(name: str, paths: Sequence[str]) -> bool:
    """Whether a failure is of a folder in a source: of that source nothing was forgotten then."""
    return os.path.isdir(name) and not _is_source(name, paths)


def _folders(paths: Sequence[str]) -> dict[str, Identity]:
    """The folders among these paths that are there. One in the place of another is not the same."""
    found = {}
    for path in paths:
        with suppress(OSError):
            status = os.stat(path)
            if S_ISDIR(status.st_mode):
                found[path] = status.st_dev, status.st_ino
    return found


def _signature(path: Path) -> Signature | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _did_something(report: ImportReport) -> bool:
    written = report.imported + report.replaced + report.pruned
    told = (report.failures, report.warnings, report.vanished, report.degraded)
    return bool(written or any(told))
