"""Sessions over HTTP: what the clients of one server subscribed to, as protocols before 2026 do.

Nothing else depends on a session: a call without one, or with one that is forgotten, is answered
like any other.

Boundary: holds addresses that a caller named, no text. A session is its caller's alone.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict

from msgspec import Struct

SESSIONS, SESSIONS_IN_ALL = 16, 4_096  # of one caller, and of a server; the oldest are forgotten


class Session(Struct):
    """One session: whose it is, and the addresses that its client hears of."""

    caller: str
    addresses: set[str]


class Sessions:
    """The sessions of a server, by their ids."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: OrderedDict[str, Session] = OrderedDict()

    def begun(self, caller: str) -> str:
        """The id of a new one."""
        id_ = secrets.token_urlsafe(24)
        with self._lock:
            self._of[id_] = Session(caller, set())
            own = [known for known, one in self._of.items() if one.caller == caller]
            if len(own) > SESSIONS:
                del self._of[own[0]]
            if len(self._of) > SESSIONS_IN_ALL:
                self._of.popitem(last=False)
        return id_

    def of(self, caller: str, id_: str) -> Session | None:
        """A caller's session; ``None`` where there is none of that id."""
        with self._lock:
            found = self._of.get(id_)
            if found is None or found.caller != caller:
                return None
            self._of.move_to_end(id_)
            return found
