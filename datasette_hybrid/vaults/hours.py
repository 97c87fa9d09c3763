"""When an open vault locks itself: after a time of no use, and after a longer one in any case."""

from __future__ import annotations

import time

from ..configuration import DatabaseSettings


class Moment:
    """A point in time that survives both a suspended laptop and a clock set back."""

    def __init__(self) -> None:
        self.monotonic, self.wall = time.monotonic(), time.time()

    def elapsed(self) -> float:
        """Seconds since, by whichever clock says more: one stands still in suspend."""
        return max(time.monotonic() - self.monotonic, time.time() - self.wall)


class Hours:
    """How long a vault has been open and how long unused, against what its settings allow."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._settings = settings
        self.begin()

    def begin(self) -> None:
        """It was opened just now."""
        self.opened = self.used = Moment()

    def use(self) -> None:
        """It was used just now."""
        self.used = Moment()

    @property
    def over(self) -> bool:
        """Whether one of both times has passed."""
        return any(left is not None and left <= 0 for left in self.left())

    def left(self) -> tuple[float | None, float | None]:
        """Seconds until it locks itself if unused, and in any case. ``None`` for never."""
        idle, absolute = self._settings.idle_seconds, self._settings.absolute_seconds
        return (
            max(0.0, idle - self.used.elapsed()) if idle else None,
            absolute - self.opened.elapsed() if absolute else None,
        )
