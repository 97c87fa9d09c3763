"""Results kept for askers of the same grants, until anything in the vault changes or it is locked.

Boundary: may hold opened titles and names of topics, each for actors with the same grants; in
memory alone, and let go of at the lock (text in Python cannot be overwritten).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

MOST = 64  # of one vault: some kilobytes each


class Views:
    """The views of one vault. Safe to use from many threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[Any, Any]] = OrderedDict()
        self._locks = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, key: Hashable, generation: Any, make: Callable[[], Any]) -> tuple[Any, bool]:
        """What ``make`` returned at this ``generation``, and whether it was called just now."""
        with self._lock:
            locks, known = self._locks, self._kept.get(key)
            if known is not None and known[0] == generation:
                self._kept.move_to_end(key)
                return known[1], False
        made = make()
        with self._lock:
            if locks == self._locks:  # what a lock came in between of is not kept
                self._keep(key, (generation, made))
        return made, True

    def keep(self, key: Hashable, made: Any) -> None:
        """Keep something that holds whatever changes."""
        with self._lock:
            self._keep(key, (None, made))

    def find(self, key: Hashable) -> Any:
        """What was kept so; ``None`` where it is not, or no longer."""
        with self._lock:
            return self._kept.get(key, (None, None))[1]

    def _keep(self, key: Hashable, what: tuple[Any, Any]) -> None:
        self._kept[key] = what
        self._kept.move_to_end(key)
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)

    def wipe(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._locks += 1
            self._kept.clear()
