"""How fast work goes, and so how long the rest of it will take."""

from __future__ import annotations

from collections import deque
from time import monotonic

WINDOW_SECONDS = 30.0  # what was slower before, as on a busy machine, says nothing about the rest
SETTLE_SECONDS = 2.0  # before this a pace says nothing about the time left
SAMPLED_SECONDS = 0.5


class Pace:
    """How fast work has gone of late, from the first call of :meth:`at` on.

    What came before, as the loading of a model, is not counted. Seconds are those of a clock on the
    wall, with rests: a person waits for those, too.
    """

    def __init__(self) -> None:
        self._samples = deque[tuple[float, float]]()  # when, and how much was done then
        self._last = (0.0, 0.0)

    def at(self, done: float, now: float | None = None) -> None:
        """So much is done by ``now``. Less than before begins the measurement anew."""
        now = monotonic() if now is None else now
        if self._samples and done < self._last[1]:
            self._samples.clear()
        self._last = now, done
        if not self._samples or now - self._samples[-1][0] >= SAMPLED_SECONDS:
            self._samples.append(self._last)
        while len(self._samples) > 2 and self._samples[1][0] <= now - WINDOW_SECONDS:
            self._samples.popleft()

    def rate(self) -> float | None:
        """How much is done in a second; ``None`` while that is not known."""
        if not self._samples:
            return None
        (began, before), (now, done) = self._samples[0], self._last
        if now - began < SETTLE_SECONDS or done <= before:
            return None
        return (done - before) / (now - began)

    def seconds(self, left: float) -> float | None:
        """How long so much takes that is left; ``None`` while that is not known."""
        rate = self.rate()
        return None if rate is None else left / rate
