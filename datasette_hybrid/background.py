"""Work in the background: in a thread of its own, and joined before the interpreter goes.

A thread that is inside a model when the interpreter ends brings the whole process down: it cannot
take up Python again, and C++ above it answers that with ``abort``.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable
from contextvars import copy_context
from time import monotonic

LAST_SECONDS = 20.0
"""At the end of the process, for all of them together: a model loads within one, or is fetched."""

_begun: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
_stops: weakref.WeakKeyDictionary[threading.Thread, Callable[[], object]] = (
    weakref.WeakKeyDictionary()
)


def begin(name: str, call: Callable[[], object], stop: Callable[[], object] | None = None) -> None:
    """Run ``call`` on behalf of the present asker. It must report its own failures.

    ``stop`` is called at the end of the process, before the thread is waited for.
    """
    thread = threading.Thread(target=copy_context().run, args=(call,), name=name, daemon=True)
    _begun.add(thread)
    thread.start()
    if stop is not None:
        _stops[thread] = stop


@atexit.register
def join_all() -> None:
    """Wait for what was begun."""
    end = monotonic() + LAST_SECONDS
    for stop in list(_stops.values()):
        stop()
    for thread in list(_begun):
        thread.join(max(0.0, end - monotonic()))
