"""Who did what with a vault: heard from its store, kept for a moment, written in the background.

Boundary: an event holds who, when, by which surface, what kind of thing and how many memories it
concerned; no query, text, title or id. Every use of a vault is an action of its store, which
reports its event (``MemoryStore.report_to``), so that a surface cannot forget to. Events wait in
memory for a few seconds, longer while the vault is locked or its file cannot be written to; what is
not written when the process dies is lost.
"""

from __future__ import annotations

import re
import sys
import threading
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from memory_store.errors import MemoryStoreError
from memory_store.host import SERVER, AuditEvent, sqlite3

from ..configuration import AuditSettings
from ..permissions.asker import asker

if TYPE_CHECKING:
    from memory_store.host import MemoryStore

WAITING_LIMIT = 10_000  # events: 2 MB; the oldest are lost first, searches before unlocks

PAGE, JSON, CSV, SQL, TABLE, MEMORY, EXPORT, IMPORT, MCP = SURFACES = (
    *("page", "json", "csv", "sql", "table", "memory", "export", "import", "mcp"),
)

STANDS_FOR_OTHERS = re.compile(
    r"\s*(?:anonymous|server|sync|unlocked session|(?:assistant|actor)\s.*)\s*", re.I | re.S
)
"""What the trail calls those who are no actor of Datasette's; and what it calls actors so named."""

surface: ContextVar[str | None] = ContextVar("hybrid_surface", default=None)
"""Set where something else than the request's address decides: SQL functions, imports."""


class Recorder:
    """The events of one vault that are not written yet. Safe to use from many threads."""

    def __init__(self, database: str, settings: AuditSettings) -> None:
        self._database = database
        self._settings = settings
        self._waiting: dict[int, AuditEvent] = {}
        self._latest: dict[tuple[object, ...], int] = {}
        self._number = 0
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._problem = ""

    @property
    def kept(self) -> bool:
        """Whether there is a trail at all."""
        return self._settings.kept

    def hear(self, action: str, opened: int, returned: int) -> None:
        """A store's action was done. Takes microseconds, and never waits for a file."""
        self.note(action, opened=opened, returned=returned)

    def note(
        self, action: str, *, opened: int = 0, returned: int = 0, session: bool | None = None
    ) -> None:
        """Something was done for the actor of the running request."""
        asked = asker.get()
        by = surface.get() or surface_of(asked.path)
        if session is None:
            session = self._database in asked.sessions
        self.add(AuditEvent(_now(), named(asked.actor_id), session, by, action, opened, returned))

    def note_server(self, action: str) -> None:
        """Something the server did by itself: a time-out, a configured key."""
        self.add(AuditEvent(_now(), None, False, SERVER, action))

    def add(self, event: AuditEvent) -> None:
        """Keep an event until it is written; alike ones become one."""
        if not self.kept:
            return
        with self._lock:
            number = self._latest.get(event.kind(), 0)
            earlier = self._waiting.get(number)
            both = earlier.with_later(event) if earlier is not None else None
            if both is not None:
                self._waiting[number] = both
                return
            self._number += 1
            self._waiting[self._number] = event
            self._latest[event.kind()] = self._number
            self._let_go()

    def _let_go(self) -> None:
        """Forget the oldest events of too many, those that are rare last."""
        while len(self._waiting) > WAITING_LIMIT:
            usual = (n for n, event in self._waiting.items() if event.strand == 0)
            number = next(usual, next(iter(self._waiting)))
            kind = self._waiting.pop(number).kind()
            if self._latest.get(kind) == number:
                del self._latest[kind]

    def waiting(self) -> list[AuditEvent]:
        """What is not written yet, oldest first."""
        with self._lock:
            return list(self._waiting.values())

    def forget(self) -> None:
        """Drop what is waiting: its vault is gone."""
        with self._lock:
            self._waiting, self._latest = {}, {}

    def write(self, store: MemoryStore) -> None:
        """Write what is waiting. What cannot be written now waits on; why is said once."""
        with self._writing:
            with self._lock:
                events = self._waiting
                self._waiting, self._latest = {}, {}
            if not events:
                return
            try:
                settings = self._settings
                store.trail.keep(list(events.values()), days=settings.days, most=settings.events)
            except (MemoryStoreError, sqlite3.Error) as error:
                with self._lock:
                    self._waiting = events | self._waiting
                    self._latest = {event.kind(): n for n, event in self._waiting.items()}
                    self._let_go()
                self._tell(str(error))

    def _tell(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            print(
                f"datasette-hybrid: {self._database}: the audit trail is kept in memory: {problem}",
                file=sys.stderr,
            )


def named(actor_id: str | None) -> str | None:
    """An actor as the trail has it: by the id, but for one who would pass for someone else."""
    taken = actor_id is not None and STANDS_FOR_OTHERS.fullmatch(actor_id)
    return f"actor {actor_id}" if taken else actor_id


def surface_of(path: str) -> str:
    """By which surface something is done, going by the request's address."""
    _, ours, below = path.partition("/-/hybrid")
    if not ours:
        return TABLE
    if below.startswith(("/import", "/export")):
        return below[1:7]
    if below == "/mcp":
        return MCP
    for suffix, name in ((".json", JSON), (".csv", CSV)):
        if below.endswith(suffix):
            return name
    return MEMORY if below.startswith("/memories/") else PAGE


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
