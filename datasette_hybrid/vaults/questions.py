"""Private searches as they were asked, each behind a name that says nothing of it.

Boundary: queries in plain text, in memory alone: from a form that was posted until the vault is
locked or its keys rest, when they are overwritten (not what a request was read from: text in
Python cannot be). Only the asker finds a name, not another actor who has come to know it.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

MOST, MOST_OF_ONE = 500, 50  # of one vault, and of an actor, or of all visitors; the one that was
# asked for the longest time ago goes first
LONGEST = 16 * 1024  # bytes of one, encoded: 8 MB in all

Pairs = Sequence[tuple[str, str]]
Who = tuple[str | None, bool, *tuple[str | None, ...]]
"""An actor's id, whether the browser unlocked the vault, and of a visitor which browser it is."""


@dataclass(frozen=True)
class Kept:
    """A question, and who asked it."""

    by: Who
    encoded: bytearray


class Questions:
    """The questions of one vault. Safe to use from many threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, by: Who, asked: Pairs) -> str | None:
        """The name of what ``by`` asked; ``None`` for what is too long to be kept."""
        encoded = bytearray(urlencode(asked).encode())
        if len(encoded) > LONGEST:
            return None
        with self._lock:
            for name, one in self._kept.items():
                if one.by == by and one.encoded == encoded:
                    self._kept.move_to_end(name)
                    return name
            name = secrets.token_urlsafe(16)
            self._kept[name] = Kept(by, encoded)
            mine = [known for known, one in self._kept.items() if one.by[:2] == by[:2]]
            if len(mine) > MOST_OF_ONE or len(self._kept) > MOST:
                oldest = mine[0] if len(mine) > MOST_OF_ONE else next(iter(self._kept))
                _overwrite(self._kept.pop(oldest))
            return name

    def find(self, by: Who, name: str) -> Pairs | None:
        """What ``by`` asked, by its name; ``None`` where that is kept no longer."""
        with self._lock:
            one = self._kept.get(name)
            if one is None or one.by != by:
                return None
            self._kept.move_to_end(name)
            return parse_qsl(one.encoded.decode())

    def wipe(self) -> None:
        """Overwrite and forget all of them."""
        with self._lock:
            for one in self._kept.values():
                _overwrite(one)
            self._kept.clear()


def _overwrite(one: Kept) -> None:
    one.encoded[:] = bytes(len(one.encoded))
