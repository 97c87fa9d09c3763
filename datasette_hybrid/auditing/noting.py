"""Who did what with a vault: heard from its store, kept for a moment, written in the background.

Boundary: an event holds who, when, by which surface, what kind of thing and how many memories it
concerned; no query, text, title or id. Every use of a vault passes through its store, which tells
what it did (``MemoryStore.heard``), so that a surface cannot forget to. Events wait in memory for a
few seconds, longer while the vault is locked or its file cannot be written to; what is not written
when the process dies is lost.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sized
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from memory_store.records import MemoryStoreError
from memory_store.sqlite import sqlite3
from memory_store.vault.audit import SERVER, AuditEvent

from ..configuration import AuditSettings

if TYPE_CHECKING:
    from memory_store.store import MemoryStore

WAITING_LIMIT = 10_000  # events: 2 MB; the oldest are lost first
MERGED_SECONDS = 2  # reads of one request, such as the cells of a table, become one event

PAGE, JSON, CSV, SQL, TABLE, MEMORY, EXPORT, IMPORT = SURFACES = (
    *("page", "json", "csv", "sql", "table", "memory", "export", "import"),
)

surface: ContextVar[str | None] = ContextVar("hybrid_surface", default=None)
"""Set where something else than the request's address decides: SQL functions, imports."""


def _number(result: Any) -> int:
    return len(result) if isinstance(result, Sized) else 1


Counts = tuple[int, int]  # memories opened, memories returned or changed
HEARD: Mapping[str, tuple[str, Callable[[Any], Counts]]] = {
    "search": ("search", lambda found: (found.opened, len(found.rows))),
    "get": ("read", lambda _: (1, 1)),
    "list": ("read", lambda found: (len(found), len(found))),
    "texts": ("read", lambda found: (len(found), len(found))),
    "heads": ("read", lambda found: (0, len(found))),
    "_found_again": ("read", lambda found: (len(found), len(found))),
    "add_many": ("add", lambda added: (0, _number(added))),
    "add_once": ("add", lambda added: (0, _number(added))),
    "publish": ("add", lambda _: (1, 1)),
    "edit": ("edit", lambda _: (1, 1)),
    "edit_many": ("edit", lambda edited: (_number(edited), _number(edited))),
    "done": ("edit", lambda _: (1, 1)),
    "reopen": ("edit", lambda _: (1, 1)),
    "delete": ("delete", lambda _: (0, 1)),
    "delete_many": ("delete", lambda gone: (0, gone if isinstance(gone, int) else _number(gone))),
    "change_members": ("members changed", lambda _: (0, 0)),
    "open_collection": ("members changed", lambda _: (0, 0)),
    "create_collection": ("collection changed", lambda _: (0, 0)),
    "set_collection": ("collection changed", lambda _: (0, 0)),
    "rename_collection": ("collection changed", lambda _: (0, 0)),
}
"""What of a store's methods is told of: the action, and what their results count."""

ACTIONS = (
    *("search", "read", "add", "edit", "delete", "import", "members changed"),
    *("collection changed", "unlock", "failed unlock", "lock"),
)


class Recorder:
    """The events of one vault that are not written yet. Safe to use from many threads."""

    def __init__(self, database: str, settings: AuditSettings) -> None:
        self._database = database
        self._settings = settings
        self._waiting: deque[AuditEvent] = deque(maxlen=WAITING_LIMIT)
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._problem = ""

    @property
    def kept(self) -> bool:
        """Whether there is a trail at all."""
        return self._settings.kept

    def hear(self, method: str, result: Any) -> None:
        """A store's method was used. Takes microseconds, and never waits for a file."""
        told = HEARD.get(method)
        if told is not None:
            action, count = told
            opened, returned = count(result)
            self.note(action, opened=opened, returned=returned)

    def note(
        self, action: str, *, opened: int = 0, returned: int = 0, session: bool | None = None
    ) -> None:
        """Something was done on behalf of whoever is asking."""
        from ..permissions.grants import asker

        asked = asker.get()
        by = surface.get() or surface_of(asked.path)
        if session is None:
            session = self._database in asked.sessions
        self.add(AuditEvent(_now(), asked.actor_id, session, by, action, opened, returned))

    def note_server(self, action: str) -> None:
        """Something the server did by itself: a time-out, a configured key."""
        self.add(AuditEvent(_now(), None, False, SERVER, action))

    def add(self, event: AuditEvent) -> None:
        """Keep an event until it is written; reads that belong together become one."""
        if not self.kept:
            return
        with self._lock:
            last = self._waiting[-1] if self._waiting else None
            if last is not None and _belongs_to(last, event):
                opened, returned = last.opened + event.opened, last.returned + event.returned
                self._waiting[-1] = replace(last, opened=opened, returned=returned)
            else:
                self._waiting.append(event)

    def waiting(self) -> list[AuditEvent]:
        """What is not written yet, oldest first."""
        with self._lock:
            return list(self._waiting)

    def forget(self) -> None:
        """Drop what is waiting: its vault is gone."""
        with self._lock:
            self._waiting.clear()

    def write(self, store: MemoryStore) -> None:
        """Write what is waiting. What cannot be written now waits on; why is said once."""
        with self._writing:
            with self._lock:
                events = list(self._waiting)
                self._waiting.clear()
            if not events:
                return
            try:
                settings = self._settings
                store.keep_audit(events, days=settings.days, most=settings.events)
            except (MemoryStoreError, sqlite3.Error) as error:
                with self._lock:
                    self._waiting.extendleft(reversed(events))
                self._tell(str(error))

    def _tell(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            print(
                f"datasette-hybrid: {self._database}: the audit trail is kept in memory: {problem}",
                file=sys.stderr,
            )


def surface_of(path: str) -> str:
    """By which surface something is done, going by the request's address."""
    _, ours, below = path.partition("/-/hybrid")
    if not ours:
        return TABLE
    if below.startswith(("/import", "/export")):
        return below[1:7]
    for suffix, name in ((".json", JSON), (".csv", CSV)):
        if below.endswith(suffix):
            return name
    return MEMORY if below.startswith("/memories/") else PAGE


def _belongs_to(last: AuditEvent, event: AuditEvent) -> bool:
    alike = replace(event, time=last.time, opened=last.opened, returned=last.returned) == last
    if not alike or event.action != "read":
        return False
    apart = datetime.fromisoformat(event.time) - datetime.fromisoformat(last.time)
    return apart.total_seconds() <= MERGED_SECONDS


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
