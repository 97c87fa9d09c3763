"""What an exchange with another copy of a vault did."""

from __future__ import annotations

from memory_store.records.json_record import JsonRecord

CONFLICT_TOPIC = "sync-conflict"
CONFLICT_OF = "conflict_of"
"""Topic and metadata of a version that lost against another: the id of the memory that stayed."""


class SyncReport(JsonRecord, frozen=True):
    """Memories that an exchange ``sent``; that it ``added``, ``changed`` and ``deleted`` here.

    ``conflicts`` are ids of memories that were changed here and elsewhere: the later version stays
    under the id, the other one became a memory beside it. ``devices`` are the others that were
    heard of. ``waiting`` counts files that are said to be in the folder and have not arrived;
    ``ignored`` says of which files nothing was taken, and why. ``keys`` is ``adopted`` where keys
    that another device replaced are used here from now on.
    """

    target: str
    sent: int = 0
    added: int = 0
    changed: int = 0
    deleted: int = 0
    conflicts: tuple[str, ...] = ()
    devices: int = 0
    waiting: int = 0
    ignored: tuple[str, ...] = ()
    keys: str = ""
