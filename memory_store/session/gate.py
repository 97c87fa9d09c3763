"""The gate of an opened vault: many threads may be inside, and it is not locked while one is.

Boundary: no keys. Wiping an array or closing a connection under a thread that is using it crashes
the process, so a lock closes the gate, waits for those inside, and only then clears up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf

from memory_store.errors import LockedError


class Gate:
    """Counts the threads that use a vault. Entering again from inside is free.

    ``one_at_a_time``: a thread that enters waits until no other is inside.
    """

    def __init__(self, *, one_at_a_time: bool = False) -> None:
        self._most: float = 1 if one_at_a_time else inf
        self._condition = threading.Condition()
        self._inside = 0
        self._closed = False
        self._clear_up: Callable[[], None] | None = None
        self._local = threading.local()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Use the vault. Raises LockedError once the gate is closed."""
        depth = getattr(self._local, "depth", 0)
        if depth == 0:
            with self._condition:
                self._condition.wait_for(lambda: self._closed or self._inside < self._most)
                if self._closed:
                    raise LockedError("the vault is locked: unlock it with its key to go on")
                self._inside += 1
        self._local.depth = depth + 1
        try:
            yield
        finally:
            self._local.depth = depth
            if depth == 0:
                self._leave()

    def _leave(self) -> None:
        with self._condition:
            self._inside -= 1
            self._condition.notify_all()
            last = self._clear_up if self._inside == 0 else None
            if last is not None:
                self._clear_up = None
        if last is not None:
            last()

    def close(self, patience: float, clear_up: Callable[[], None]) -> bool:
        """Let no thread in any more, wait up to ``patience`` seconds for those inside, clear up.

        Returns whether all had left. Where one had not, the last one to leave clears up. Closing
        twice does nothing more.
        """
        mine = 1 if getattr(self._local, "depth", 0) else 0
        deadline = time.monotonic() + patience
        with self._condition:
            if self._closed:
                return self._inside <= mine
            self._closed = True
            self._condition.notify_all()
            while self._inside > mine and (left := deadline - time.monotonic()) > 0:
                self._condition.wait(left)
            if self._inside > 0:
                self._clear_up = clear_up
                return False
        clear_up()
        return True
