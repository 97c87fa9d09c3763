"""How much one caller may ask: calls and bytes in a minute, streams at once, counted for this
caller alone.

Boundary: counts only; nothing of what is asked is kept. A caller is known by what the surface makes
of its token; only a keyed digest of that stands here.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from memory_store.assistants.assistant import RefusedError

CALLS = 240  # in a minute, and at once after a pause
BYTES = 4 * 1024 * 1024  # of arguments in a minute
MOST_IN_ONE = 1024 * 1024  # bytes of one call: fifty memories of 20 KB
STREAMS, STREAMS_IN_ALL = 4, 128  # of one caller at once, and of a server
CALLERS = 4_096  # remembered at once; one that is forgotten begins with a full allowance


class Allowance:
    """What is left to one caller. It fills again with time, as fast as it may be spent."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._calls, self._bytes = float(CALLS), float(BYTES)
        self._filled = clock()

    def spend(self, size: int) -> None:
        """Count a call with so many bytes of arguments.

        Raises RefusedError, which says how long to wait, or that the call is too large.
        """
        if size > MOST_IN_ONE:
            raise RefusedError(
                f"this call has {size:,} bytes; at most {MOST_IN_ONE:,} in one call: send less at "
                "once"
            )
        with self._lock:
            now = self._clock()
            minutes, self._filled = (now - self._filled) / 60, now
            self._calls = min(CALLS, self._calls + minutes * CALLS)
            self._bytes = min(BYTES, self._bytes + minutes * BYTES)
            wait = 60 * max((1 - self._calls) / CALLS, (size - self._bytes) / BYTES)
            if wait > 0:
                raise RefusedError(
                    f"too much at once: {CALLS} calls and {BYTES // 1024 // 1024} MiB in a minute "
                    f"are possible. Go on in {int(wait) + 1} seconds"
                )
            self._calls -= 1
            self._bytes -= size


class Allowances:
    """The allowance of each caller of a server."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(16)
        self._lock = threading.Lock()
        self._of: OrderedDict[bytes, Allowance] = OrderedDict()

    def of(self, caller: str) -> Allowance:
        """That of one caller, by a text that stands for it and for no other."""
        digest = hashlib.blake2b(caller.encode(), key=self._key, digest_size=16).digest()
        with self._lock:
            found = self._of.setdefault(digest, Allowance())
            self._of.move_to_end(digest)
            if len(self._of) > CALLERS:
                self._of.popitem(last=False)
            return found


class Streams:
    """The open streams of a server, by caller."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()

    @contextmanager
    def one(self, caller: str) -> Iterator[None]:
        """Have one more, as long as this is entered. Raises RefusedError where there are too
        many."""
        with self._lock:
            if self._open[caller] >= STREAMS or self._open.total() >= STREAMS_IN_ALL:
                raise RefusedError(
                    f"too many streams: {STREAMS} at once for one caller, {STREAMS_IN_ALL} in all. "
                    "Close one, or ask again later"
                )
            self._open[caller] += 1
        try:
            yield
        finally:
            with self._lock:
                self._open[caller] -= 1
                self._open += Counter()  # without those that have none
