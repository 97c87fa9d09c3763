"""A progress line on stderr, drawn only when stderr is a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from memory_store.cli.terminal import bar, columns, printable_line, shortened, width

REDRAW_SECONDS = 0.1
SETTLE_SECONDS = 2.0  # before this a rate says nothing about the time left


class Progress:
    """Draws ``phase ███···· 120 of 400 · 38/s · 7 s left`` in place; silent elsewhere.

    An instance is called as ``progress(phase, done, total)``; ``total`` may be ``None``.
    """

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._phase = ""
        self._started = self._drawn = 0.0
        self._at_start = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown and self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __call__(self, phase: str, done: int, total: int | None = None) -> None:
        """Redraw, at most ten times a second; the first and the last step are always drawn."""
        if not self._shown:
            return
        now = time.monotonic()
        if phase != self._phase:
            self._phase, self._started, self._at_start, self._drawn = phase, now, done, 0.0
        if now - self._drawn < REDRAW_SECONDS and done != total:
            return
        self._drawn = now
        line = progress_line(phase, done, total, done - self._at_start, now - self._started)
        sys.stderr.write(f"\r\x1b[K{shortened(line, columns() - 1)}")
        sys.stderr.flush()


def progress_line(phase: str, done: int, total: int | None, since: int, seconds: float) -> str:
    """The words of the line: ``since`` steps took ``seconds``."""
    parts = [f"{done:,} of {total:,}" if total else f"{done:,}"]
    rate = since / seconds if seconds >= SETTLE_SECONDS else 0.0
    if rate:
        parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
        if total and done < total:
            parts.append(f"{_span((total - done) / rate)} left")
    drawn = f"{bar(done / total, 16)} " if total else ""
    name = printable_line(phase)
    return f"{name}{' ' * max(1, 12 - width(name))}{drawn}{' · '.join(parts)}"


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
