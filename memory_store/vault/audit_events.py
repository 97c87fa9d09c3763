"""The events of the audit trail: what one says, which are counted as one, how long each is kept.

Boundary: an event names an actor, a surface and numbers of memories; never a query or a text.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, astuple, replace

(
    SEARCH,
    READ,
    ADD,
    EDIT,
    DELETE,
    IMPORT,
    MEMBERS,
    COLLECTION,
    UNLOCK,
    FAILED_UNLOCK,
    LOCK,
    RESTORE,
    ERASE,
    SYNC,
) = ACTIONS = (
    *("search", "read", "add", "edit", "delete", "import", "members changed"),
    *("collection changed", "unlock", "failed unlock", "lock", "restore", "erase", "sync"),
)
SERVER = "server"  # the surface of what the server does by itself: time-outs, configured keys
ACTOR_LIMIT = 200  # characters; an actor's id is cut there
MERGED_WITHIN = timedelta(
    minutes=1
)  # alike events of such a time are one, so that they push no others out
RARE = frozenset({UNLOCK, LOCK, MEMBERS, COLLECTION})
NEVER_MERGED = frozenset({UNLOCK, LOCK})  # no one can do these again and again without a secret
STRAND_NUMBERS = 1 << 40  # batches that a strand may number


class Strand(Struct, frozen=True):
    """A part of the trail that is bounded by itself.

    Its batches are numbered behind ``base``; it keeps ``share`` of the events that are kept.
    """

    base: int
    share: float
    actions: frozenset[str] = frozenset()


STRANDS = (
    Strand(0, 1.0),  # everything else
    Strand(STRAND_NUMBERS, 0.1, RARE),
    Strand(2 * STRAND_NUMBERS, 0.1, frozenset({FAILED_UNLOCK})),  # anyone can cause them
)


class AuditEvent(Struct, frozen=True):
    """Something that was done with a vault.

    ``time`` is ISO 8601 in UTC. ``actor`` is an actor's id, ``None`` where no actor was signed in;
    ``session`` whether the browser had unlocked the vault. ``opened`` and ``returned`` count
    memories. ``times`` counts the alike ones that this event stands for, whose ``time`` is that
    of the first.
    """

    time: str
    actor: str | None
    session: bool
    surface: str
    action: str
    opened: int = 0
    returned: int = 0
    times: int = 1

    def kind(self) -> tuple[object, ...]:
        """What alike events have in common: who, by which surface, what."""
        return (self.actor, self.session, self.surface, self.action)

    def until(self, later: AuditEvent) -> timedelta:
        """The time from this event to a later one."""
        return datetime.fromisoformat(later.time) - datetime.fromisoformat(self.time)

    def with_later(self, later: AuditEvent) -> AuditEvent | None:
        """This event and an alike one as one; ``None`` where they are to stay two."""
        if self.action in NEVER_MERGED or self.kind() != later.kind():
            return None
        if abs(self.until(later)) > MERGED_WITHIN:
            return None
        return replace(
            self,
            opened=self.opened + later.opened,
            returned=self.returned + later.returned,
            times=self.times + later.times,
        )

    @property
    def strand(self) -> int:
        """In which of :data:`STRANDS` it is kept."""
        return next((n for n, one in enumerate(STRANDS) if self.action in one.actions), 0)

    def who(self) -> str:
        """The actor's id, or what stands for an actor without one."""
        if self.surface == SERVER:
            return SERVER
        return self.actor or ("unlocked session" if self.session else "anonymous")

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "who": self.who()}


def event_text(event: AuditEvent) -> str:
    """An event as it is kept, before it is sealed."""
    named = replace(event, actor=event.actor[:ACTOR_LIMIT]) if event.actor else event
    return json.dumps(astuple(named), separators=(",", ":"))


def event_of(values: list[Any]) -> AuditEvent:
    """The event that was written as :func:`event_text`."""
    event = AuditEvent(*values)
    # where ``times`` is, an empty list was before
    return event if isinstance(event.times, int) else replace(event, times=1)
