"""The browser sessions that unlocked a vault, kept on the server between an unlock and a lock.

Boundary: a session belongs to the actor who began it. One that began without an actor belongs to
the first who signs in with that browser. A name that comes without its actor, or with another one,
ends its session for good: so a copy of the cookie is worth nothing after a logout.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time

from msgspec import Struct
from msgspec.structs import replace

MOST_SESSIONS = 1_000  # of one vault; who begins another one ends the oldest
TOKEN_BYTES = 16


class Session(Struct, frozen=True):
    """Whose it is (``None``: a visitor's), of which unlocking, and until when."""

    actor: str | None
    unlock: str
    until: float | None


class Sessions:
    """The sessions of one vault between an unlock and a lock. Safe to use from many threads."""

    def __init__(self) -> None:
        self._held: dict[bytes, Session] = {}
        self._lock = threading.Lock()

    def begin(self, session: Session) -> str:
        """A new session. Returns its name."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        with self._lock:
            while len(self._held) >= MOST_SESSIONS:
                del self._held[next(iter(self._held))]
            self._held[_digest(token)] = session
        return token

    def holds(self, token: str, unlock: str, actor: str | None) -> bool:
        """Whether a request of ``actor`` comes from that session; ends it for another actor."""
        name = _digest(token)
        with self._lock:
            found = self._held.get(name)
            if found is None:
                return False
            over = found.until is not None and time.time() >= found.until
            if over or found.unlock != unlock or found.actor not in (None, actor):
                del self._held[name]
                return False
            if found.actor != actor:
                self._held[name] = replace(found, actor=actor)
            return True

    def end(self, token: str) -> None:
        """Forget a session."""
        with self._lock:
            self._held.pop(_digest(token), None)

    def wipe(self) -> None:
        """Forget all: the vault is locked."""
        with self._lock:
            self._held.clear()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
