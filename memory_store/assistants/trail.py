"""What an assistant did on this machine, in the vault's audit trail under its name.

Boundary: an event holds a name, a time, what kind of thing was done and how many memories it
concerned; no query, text or id. Events wait in memory for a minute at most, and are written when
the assistant leaves.
"""

from __future__ import annotations

import sys
import threading
import time
from datetime import UTC, datetime

from memory_store.errors import MemoryStoreError
from memory_store.store import MemoryStore
from memory_store.vault.audit_events import AuditEvent

SURFACE = "mcp"
TRIAL = "trial"  # the surface of a server that is only tried
WRITTEN_EVERY = 60.0  # seconds
DAYS, EVENTS = 400.0, 100_000  # that are kept, as Datasette does it unless configured


class Trail:
    """The events of one assistant that are not written yet."""

    def __init__(self, store: MemoryStore, name: str, surface: str = SURFACE) -> None:
        self._store = store
        self._surface = surface
        self._actor = f"assistant {name}"
        self._lock = threading.Lock()
        self._waiting: list[AuditEvent] = []
        self._written = time.monotonic()
        self._silent = False
        self._came: str | None = None if store.is_owner else ""  # the trail is the owner's
        if store.is_owner:
            store.report_to(self.hear)

    def last_came(self) -> str:
        """When it last did anything before, ISO 8601; empty if it never did, or is not the
        owner's. A long trail is read when this is first asked for."""
        if self._came is None:
            events = self._store.trail.events()
            own = (one for one in events if one.actor == self._actor and one.surface != TRIAL)
            times = [one.time for one in own]
            self._came = max(times, default="")
        return self._came

    def hear(self, action: str, opened: int, returned: int) -> None:
        """An action was done; alike ones of a minute are one event."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        event = AuditEvent(now, self._actor, False, self._surface, action, opened, returned)
        with self._lock:
            for place, earlier in enumerate(self._waiting):
                if (both := earlier.with_later(event)) is not None:
                    self._waiting[place] = both
                    break
            else:
                self._waiting.append(event)
        if time.monotonic() - self._written > WRITTEN_EVERY:
            self.write()

    def write(self) -> None:
        """Write what waits. Where the file cannot be written to, that is said once."""
        with self._lock:
            events, self._waiting = self._waiting, []
        self._written = time.monotonic()
        if not events:
            return
        try:
            self.last_came()  # before this time is among them
            self._store.trail.keep(events, days=DAYS, most=EVENTS)
        except MemoryStoreError as error:
            if not self._silent:
                print(f"memory-store: the audit trail is not kept: {error}", file=sys.stderr)
            self._silent = True
