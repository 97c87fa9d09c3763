"""The audit trail: its events kept and read, and how much each actor opened.

Boundary: an event says who did what, and holds no query and no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from math import inf

from msgspec import Struct

from memory_store.actions.action import Opened, action
from memory_store.dates import parse_moment
from memory_store.records.json_record import JsonRecord
from memory_store.vault.audit_events import AuditEvent

COLUMNS = ("time", "who", "surface", "action", "times", "opened", "returned")


@action(None, writes=True)
def keep(opened: Opened, events: Sequence[AuditEvent], *, days: float, most: int) -> None:
    """Write events to the audit trail, sealed; keep so many ``days`` and events of it.

    ``days`` of 0 keeps them however old. Raises ReadOnlyError, TamperedError.
    """
    opened.vault.whole_vault().keep_audit(events, days=days, most=most)


@action(None, writes=False)
def events(opened: Opened) -> list[AuditEvent]:
    """Every event that was written, oldest first. Raises TamperedError."""
    from memory_store.vault import audit

    return audit.events(opened.vault.reader(), opened.vault.whole_vault().keyring)


class Wanted(Struct, frozen=True):
    """Which events to show; what is empty leaves none out.

    ``who`` is an actor's id or what stands for one. ``since`` and ``until`` are times, days or
    spans back from now (``2024-05-01``, ``7d``), both included.
    """

    who: str = ""
    surface: str = ""
    action: str = ""
    since: str = ""
    until: str = ""

    def of(self, events: Iterable[AuditEvent]) -> list[AuditEvent]:
        """The events wanted, in their order. Raises BadInputError for what is no time."""
        since, until = self.since.strip(), self.until.strip()
        first = parse_moment(since, parameter="since") if since else -inf
        last = parse_moment(until, parameter="until", end=True) if until else inf
        return [
            event
            for event in events
            if (not self.who or event.who() == self.who)
            and (not self.surface or event.surface == self.surface)
            and (not self.action or event.action == self.action)
            and first <= datetime.fromisoformat(event.time).timestamp() <= last
        ]


class Total(JsonRecord, frozen=True):
    """What one actor did: how often, how many memories were opened and returned, when last.

    Alike uses of one minute are one event.
    """

    who: str
    events: int
    opened: int
    returned: int
    last: str


def totals(events: Sequence[AuditEvent]) -> list[Total]:
    """One line for each actor, the one who opened most first."""
    by_name: dict[str, list[AuditEvent]] = {}
    for event in events:
        by_name.setdefault(event.who(), []).append(event)
    found = [
        Total(
            who,
            sum(event.times for event in some),
            sum(event.opened for event in some),
            sum(event.returned for event in some),
            max(event.time for event in some),
        )
        for who, some in by_name.items()
    ]
    return sorted(found, key=lambda total: (-total.opened, -total.events, total.who))
