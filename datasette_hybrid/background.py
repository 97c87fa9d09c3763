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


def begin(name: str, call: Callable[[], object]) -> None:
    """Run ``call`` on behalf of the present asker. It must report its own failures."""
    thread = threading.Thread(target=copy_context().run, args=(call,), name=name, daemon=True)
    _begun.add(thread)
    thread.start()


@atexit.register
def join_all() -> None:
    """Wait for what was begun."""
    end = monotonic() + LAST_SECONDS
    for thread in list(_begun):
        thread.join(max(0.0, end - monotonic()))
