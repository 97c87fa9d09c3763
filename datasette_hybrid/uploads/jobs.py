"""Imports at work: in a thread of their own, one at a time for each actor, and few for each vault.

Boundary: the files of a job are in memory from the upload to its end, and no longer. An
actor who knows a job's name, which is random, and may write to its vault sees the names of its
files. A job writes nothing that the actor who began it may not write any more: their permissions
are asked for before each batch.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from math import inf
from time import monotonic
from typing import Any

from msgspec.structs import replace

from memory_store import access
from memory_store.access import Grants
from memory_store.errors import ConflictError, LockedError, MemoryStoreError, ModelError
from memory_store.host import EmbeddingNow, Found, ImportJob, ImportRequest, MemoryStore, Scope
from memory_store.records import ImportReport

from .. import background
from ..audit.recorder import IMPORT, surface
from ..permissions.asker import Asker, asker
from ..requests import questions
from ..vaults.vault import Vault

STATES = ("running", "done", "stopped", "locked", "failed")
KEPT_JOBS = 20  # of one vault: results of those that are over
AT_ONCE = 4  # imports of one vault, each of another actor, and as many uploads that arrive for it
SHOWN = 500  # failures and skips of one job in its JSON
SERVER_STOPPED = "the server was stopped; what was imported before stays"
STOPPED_UNASKED = "no answer came whether you may still write; what was imported before stays"
STOPPING_SECONDS = 5.0  # an answer lets what was read be written; it usually takes milliseconds
GLANCE_SECONDS = 0.2  # between looks at the lock, while permissions are asked about


class WithdrawnError(MemoryStoreError):
    """The actor who began an import may not write there any more."""


Place = tuple[str, str | None, bool]


def _place(vault: Vault) -> Place:
    """An actor's in a vault; one of a browser that unlocked it; one for all visitors."""
    known = asker.get()
    return vault.database, known.actor_id, vault.database in known.sessions


class Job:
    """One import: where it is, and in the end what came of it."""

    def __init__(self, vault: Vault, grants: Grants, request: ImportRequest, total: int) -> None:
        self.name = secrets.token_urlsafe(16)
        self.vault = vault
        self.request = request
        self.total = total
        self.done = 0
        self.embedding: tuple[int, int] | None = None
        self.state = "running"
        self.problem: str | None = None
        self.report: ImportReport | None = None
        self._grants = grants
        self._asker, self._loop = asker.get(), asyncio.get_running_loop()
        self.place = _place(vault)
        self._unlock_id: str | None = None
        self._stop = threading.Event()

    def is_of(self, asked: Asker) -> bool:
        """Whether this signed-in actor began it. A session is over with the lock."""
        return asked.actor_id is not None and asked.actor_id == self._asker.actor_id

    @property
    def running(self) -> bool:
        return self.state == "running"

    def stop(self) -> None:
        """Ask it to end after the file it is at."""
        self._stop.set()

    def run(self, files: Sequence[Found]) -> None:
        """Import. ``state`` says how it ended."""
        surface.set(IMPORT)
        try:
            self.report = self._import(files)
            self.state = self._ended()
        except WithdrawnError as error:
            self.state, self.problem = "stopped", str(error)
        except ModelError as error:
            shown = access.model_error_shown(error, owner=self._grants.audit)
            self.state, self.problem = "failed", str(shown)
        except MemoryStoreError as error:
            self.state, self.problem = "failed", str(error)
        except Exception as error:  # noqa: BLE001 - see report_fault; nothing else would end the job
            self.state, self.problem = "failed", questions.report_fault(error)

    def _import(self, files: Sequence[Found]) -> ImportReport:
        store = self._store()
        self._unlock_id = self.vault.unlock_id
        job = ImportJob(
            request=self.request,
            files=files,
            readable=self._grants.decrypt,
            stopped=lambda: self._stopped(store),
            progress=self._at,
            embedded=self._embedded,
            embedded_later=self.vault.upkeep.embeds_later,
            written=self._wrote,
        )
        try:
            return store.run_import(job)
        finally:  # at every end, and of a dry run too: its report shows what is known here
            report = self.report if not self.request.dry_run else None
            written = report.imported + report.replaced if report is not None else 0
            self.vault.audit.note("import", returned=written)
            self.vault.upkeep.embed_what_lacks()

    def _wrote(self, report: ImportReport) -> None:
        self.report = report

    @property
    def written_ids(self) -> Sequence[str]:
        """Ids of the memories written so far, the first thousand."""
        return () if self.report is None else self.report.ids

    def _store(self) -> MemoryStore:
        return self.vault.use(self._grants.write, creating=self._grants.create)

    def _stopped(self, store: MemoryStore) -> bool:
        """Whether it was asked to end. Raises LockedError, WithdrawnError."""
        now = self._asked_again().on(self.vault.database)
        reached = Scope.of(store.collections.membership())  # with collections that it made
        if not now.write.covers(reached) or (self._grants.create and not now.create):
            raise WithdrawnError(
                "you may not write any more where you might when it began, so it stopped at file "
                f"{self.done + 1:,} of {self.total:,}; what was imported before stays"
            )
        return self._stop.is_set()

    def _asked_again(self) -> Asker:
        """What the actor who began it may do now. Raises LockedError after a lock.

        A lock waits for this thread, and the answer waits for the lock; so this looks for one.
        Another plugin may never answer; so a stop of the import does not wait for that.
        """
        if self._asker.again is None:
            raise WithdrawnError("no actor began it")
        answer, end = _asked_in(self._loop, self._asker.again), inf
        while True:
            if self._unlock_id != self.vault.unlock_id:
                answer.cancel()
                raise LockedError(f"{self.vault.database} was locked")
            if self._loop.is_closed() and not answer.done():
                raise WithdrawnError(SERVER_STOPPED)
            wait([answer], GLANCE_SECONDS)
            if answer.done():
                return answer.result()
            if self._stop.is_set():
                end = min(end, monotonic() + STOPPING_SECONDS)
            if monotonic() >= end:
                answer.cancel()
                raise WithdrawnError(STOPPED_UNASKED)

    def _embedded(self, done: int, total: int) -> None:
        """Of the batch at work so many windows have vectors: most of the time goes there."""
        self.embedding = (done, total) if done < total else None

    def _at(self, name: str, done: int, total: int | None) -> None:
        self.done = done
        if not self.vault.locked:
            self._store()  # an import is a use: no time-out of idleness in the middle of it

    def _ended(self) -> str:
        if self._stop.is_set():
            return "stopped"
        if self.vault.locked or self._unlock_id != self.vault.unlock_id:
            return "locked"
        self.done = self.total
        return "done"

    def as_dict(self, embedding: EmbeddingNow | None = None) -> dict[str, Any]:
        """Where it is, as JSON data. ``embedding``: what is embedded in the background, for those
        who may search there.

        Without the right to read, replaced and unchanged are one number, and kinds, which leave out
        the unchanged, are not counted: which memories were there just as uploaded would confirm
        what they say.
        """
        report, asked = self.report, asker.get().on(self.vault.database)
        summary = None if report is None else report.summary()
        ids = self.written_ids
        if report is not None and not self._grants.decrypt.covers(self._grants.write):
            known = report.replaced + report.unchanged
            summary = (
                f"imported {report.imported}, replaced or unchanged {known}, "
                f"skipped {report.skipped}, failed {report.failed}"
            )
            report = (
                None if self.running else replace(report, replaced=known, unchanged=0, kinds={})
            )
            ids = ()
        shown = report or ImportReport()
        return {
            "job": self.name,
            "state": self.state,
            "done": self.done,
            "total": self.total,
            "embedding": list(self.embedding) if self.running and self.embedding else None,
            "to_embed": embedding.left if embedding else None,
            "embed_seconds": embedding.seconds if embedding else None,
            "meaning": str(embedding) if embedding else None,
            "dry_run": self.request.dry_run,
            "error": self.problem,
            "summary": summary if report is not None else None,
            "imported": shown.imported,
            "replaced": shown.replaced,
            "unchanged": shown.unchanged,
            "kinds": dict(shown.kinds),
            "failures": [list(pair) for pair in shown.failures[:SHOWN]],
            "skips": [list(pair) for pair in shown.skips[:SHOWN]],
            "warnings": [list(pair) for pair in shown.warnings[:SHOWN]],
            "degraded": access.import_lines_shown(
                shown.degraded,
                owner=asked.audit,
                reader=asked.decrypt.covers(self._grants.write),
            ),
            "ids": list(ids),
        }


class Jobs:
    """The imports of one Datasette."""

    def __init__(self) -> None:
        self._jobs: dict[str, list[Job]] = {}
        self._receiving: set[Place] = set()
        self._lock = threading.Lock()

    @contextmanager
    def receiving(self, vault: Vault) -> Iterator[None]:
        """Keep an actor's place while files arrive: who sends slowly keeps no other from sending.

        Raises ConflictError.
        """
        mine = _place(vault)
        with self._lock:
            self._refuse_beside_others(vault)
            others = sum(place[0] == vault.database for place in self._receiving)
            if mine in self._receiving or others >= AT_ONCE:
                raise ConflictError("another upload is on its way: wait until it has arrived")
            self._receiving.add(mine)
        try:
            yield
        finally:
            with self._lock:
                self._receiving.discard(mine)

    def _refuse_beside_others(self, vault: Vault) -> None:
        running = [job.place for job in self._jobs.get(vault.database, ()) if job.running]
        if _place(vault) in running:
            raise ConflictError("another import is running: wait for it, or stop it")
        if len(running) >= AT_ONCE:
            raise ConflictError("several people are importing: try again when one of them is done")

    def begin(
        self, vault: Vault, grants: Grants, request: ImportRequest, files: Sequence[Found]
    ) -> Job:
        """Start an import. Raises ConflictError where the actor has another one running.

        It is listed once it has a thread: without one it would be running for ever.
        """
        with self._lock:
            self._refuse_beside_others(vault)
            known = self._jobs.setdefault(vault.database, [])
            job = Job(vault, grants, request, len(files))
            background.begin("hybrid-import", lambda: job.run(files))
            over = [one for one in known if not one.running][-KEPT_JOBS + 1 :]
            known[:] = [*(one for one in known if one.running or one in over), job]
        return job

    def find(self, vault: Vault, name: str) -> Job | None:
        """The job of that name, while it is remembered."""
        with self._lock:
            jobs = self._jobs.get(vault.database, [])
            return next((job for job in jobs if job.name == name), None)


_settling: set[asyncio.Task[None]] = set()  # a loop keeps no task alive by itself


def _asked_in(
    loop: asyncio.AbstractEventLoop, ask: Callable[[], Awaitable[Asker]]
) -> Future[Asker]:
    """What ``ask`` says in another thread's loop. Raises WithdrawnError when that loop is gone.

    It is called in there alone: a coroutine made here would never be awaited where the server stops
    before its turn comes.
    """
    answer: Future[Asker] = Future()

    async def settle() -> None:
        if not answer.set_running_or_notify_cancel():
            return
        try:
            answer.set_result(await ask())
        except Exception as error:  # noqa: BLE001 - raised again where it is awaited
            answer.set_exception(error)
        except asyncio.CancelledError:
            answer.set_exception(WithdrawnError(SERVER_STOPPED))
            raise

    def begin() -> None:
        task = loop.create_task(settle())
        _settling.add(task)
        task.add_done_callback(_settling.discard)

    try:
        loop.call_soon_threadsafe(begin)
    except RuntimeError:  # the loop is closed
        raise WithdrawnError(SERVER_STOPPED) from None
    return answer


_registry: weakref.WeakKeyDictionary[Any, Jobs] = weakref.WeakKeyDictionary()


def jobs_of(datasette: Any) -> Jobs:
    """The imports of this Datasette."""
    return _registry.setdefault(datasette, Jobs())
