"""Garbage is left alone while SQL waits for a search.

Boundary: sees no query, no text and no key.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections.abc import Iterator

OVERDUE = 1.0  # seconds of searches that follow one another without a gap

_lock = threading.Lock()
_waiting = 0  # statements
_since = 0.0  # when garbage was last let go, or could be
_wanted = False  # whether it was collected before we came


@contextlib.contextmanager
def nothing_collected() -> Iterator[None]:
    """Collect no garbage while SQL waits for a search; between two of them, as ever.

    A statement that asks for a search holds its connection's lock until the search has answered.
    What Python collects, in any thread, may hold another statement of that connection, which an
    error left behind in its traceback; freeing that waits for the same lock. In the thread that
    searches, or in one that holds what the search needs, neither would ever go on.
    """
    _begin()
    try:
        yield
    finally:
        if _ended():
            gc.collect(1)  # may wait for another statement, which does not wait for this thread


def _begin() -> None:
    global _waiting, _since, _wanted
    with _lock:
        _waiting += 1
        if _waiting == 1:
            _wanted, _since = gc.isenabled(), time.monotonic()
        gc.disable()


def _ended() -> bool:
    """Whether garbage has been left alone for too long, and others go on doing so."""
    global _waiting, _since
    with _lock:
        _waiting -= 1
        if _waiting == 0:
            if _wanted:
                gc.enable()
            return False
        overdue = _wanted and time.monotonic() - _since > OVERDUE
        if overdue:
            _since = time.monotonic()
        return overdue
