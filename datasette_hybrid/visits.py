"""When an assistant came before, of each actor and vault: what is new to it is what came since.

Over HTTP nothing says when a conversation begins. A pause of an hour does; and what was before the
server started, the audit trail knows.

Boundary: keeps in memory when each actor came last; an actor learns only of its own visits.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime

from msgspec import Struct

PAUSE_SECONDS = 3_600.0  # after which an actor comes anew
MOST = 4_096  # visits remembered at once; of one that is forgotten the trail knows


class Visit(Struct):
    """``begun`` and ``came``, the end of the one before (``None``: the trail knows), are ISO 8601;
    ``seen`` is when it last asked, by the monotonic clock and as text."""

    begun: str
    seen: tuple[float, str]
    came: str | None = None


class Visits:
    """The visits of a server."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._of: OrderedDict[tuple[str, str], Visit] = OrderedDict()

    def seen(self, database: str, actor: str) -> Visit:
        """The visit that an actor is on, which asks now."""
        now = self._clock(), datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._lock:
            visit = self._of.get((database, actor))
            if visit is None:
                visit = Visit(now[1], now)
            elif now[0] - visit.seen[0] > PAUSE_SECONDS:
                visit = Visit(now[1], now, came=visit.seen[1])
            visit.seen = now
            self._of[database, actor] = visit
            self._of.move_to_end((database, actor))
            if len(self._of) > MOST:
                self._of.popitem(last=False)
            return visit
