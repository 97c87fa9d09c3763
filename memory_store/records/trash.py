"""What is in the trash, and what was taken back out of it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from memory_store.records.json_record import JsonRecord
from memory_store.records.memories import Memory


class TrashEntry(JsonRecord, frozen=True):
    """A memory as it was before it was deleted, or replaced by a later version.

    ``change`` is ``deleted`` or ``edited``; ``by`` is ``hand``, ``import``, ``trash`` where an
    earlier version was put in its place, or ``sync`` where another device did it. ``assistant``
    names the one that did it, if one did. ``group`` is that
    of all that one change took away. ``title`` are its first words where it has none. ``time`` is
    when it went, ``until`` when it may be erased. ``text`` is there where one memory was asked for.
    """

    id: str
    version: int
    change: str
    by: str
    assistant: str
    time: str
    until: str
    group: str
    collection: str
    type: str
    title: str
    topics: tuple[str, ...]
    text: str | None = None


class Undone(Struct, frozen=True):
    """A change that was taken back: ``delete``, ``edit``, ``done`` or ``reopen``; or ``all`` that
    one assistant did.

    ``memories`` are as they are now; ``removed`` are ids of those that the change had made, which
    are in the trash now. ``left`` are ids of what was changed again afterwards, and which stays
    as it is for that reason.
    """

    change: str
    group: str
    memories: tuple[Memory, ...]
    removed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for JSON."""
        return {
            "change": self.change,
            "group": self.group,
            "memories": [memory.as_dict() for memory in self.memories],
            "removed": list(self.removed),
            "left": list(self.left),
        }
