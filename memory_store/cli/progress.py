"""How far a command is, on stderr: a line that is drawn again, or in a log one now and then.

Boundary: a log is kept, so that it gets figures alone; the names of files that are worked on are
shown to terminals.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from memory_store.cli.failures import EXIT_INTERRUPTED
from memory_store.cli.terminal import bar, columns, printable_line, shortened
from memory_store.records.pace import Pace

if TYPE_CHECKING:
    from memory_store.records import Embedding

REDRAW_SECONDS = 0.1
LOG_SECONDS = 10.0  # between two lines where stderr is no terminal; short commands write none
BAR_CELLS = 16
STOP_IT = "Stop it at any moment (Ctrl-C): memory-store reindex goes on."
KEPT_OPEN = "You need not wait (Ctrl-C): the process that keeps the vault open goes on."
SLOWEST_SAID = 0.05  # steps in a second: fewer would read 0.0/s; the time left says it then
KEPT = "What was done is kept. To go on"
MANY_FILES = 64  # those of one batch; fewer are embedded in seconds


class Progress:
    """Draws ``███···· 120 of 400 · 38/s · 7 s left · name`` in place.

    Where stderr is no terminal, ``120 of 400 · 38/s · 7 s left`` is a line every ten seconds.

    An instance is called as ``progress(name, done, total)``: what is being worked on, and how
    much of it all is done. ``total`` may be ``None``. ``stopped`` is what Ctrl-C says, after how
    far it was: what is kept, and how to go on.
    """

    def __init__(self, stopped: str = "") -> None:
        self._stopped = stopped
        self._shown = sys.stderr.isatty()
        self._drawn = 0.0 if self._shown else time.monotonic()
        self._pace, self._word_pace = Pace(), Pace()
        self._files = (0, 0)
        self._announced = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.clear()
        if self._stopped and kind is KeyboardInterrupt:
            done, total = self._files
            far = f" at {done:,} of {total:,}" if total else ""
            click.echo(f"Stopped{far}. {self._stopped}", err=True)
            sys.exit(EXIT_INTERRUPTED)

    def __call__(
        self,
        name: str,
        done: int,
        total: int | None = None,
        *,
        logged: str = "",
        words: tuple[int, int] | None = None,
    ) -> None:
        """Redraw, at most ten times a second; a count that goes back starts a new measurement.

        ``logged`` is what a log may hold of the name. ``words`` are those that are done and those
        there are: then the time left is counted by them, for long texts take longer.
        """
        self._files = (done, total or 0)
        now = time.monotonic()
        self._pace.at(done, now)
        if words is not None:
            self._word_pace.at(words[0], now)
        if now - self._drawn < (REDRAW_SECONDS if self._shown else LOG_SECONDS):
            return
        self._drawn = now
        left = None if words is None else self._word_pace.seconds(words[1] - words[0])
        rate = self._pace.rate()
        if not self._shown:
            figures = _figures(done, total, rate, left)
            click.echo(f"{figures} · {logged}" if logged else figures, err=True)
            return
        self._write(progress_line(name, done, total, rate, left))

    def embedded(self, done: int, total: int) -> None:
        """So many windows of a batch have vectors. Says at the first one why this takes long."""
        files, of = self._files
        if not self._announced and of >= MANY_FILES:
            self._announced = True
            self.clear()
            click.echo(
                f"{of:,} files: what is new is embedded, for search by meaning, and that takes "
                "most of the time. Stop it at any moment (Ctrl-C): run again, it goes on. With "
                "--no-embed it is done much sooner, and memory-store reindex embeds later.",
                err=True,
            )
        if of:
            passages = f"embedding {done:,} of {total:,} passages"
            self(passages, files, of, logged=passages)

    def embedding(self, now: Embedding) -> None:
        """So many of the memories that an import wrote have vectors."""
        words = (now.words_done, now.words)
        self("embedding", now.done, now.total, logged="embedding", words=words)

    def in_words(self, memories: int, *, kept_open: bool = False) -> None:
        """So many memories can be searched by their words; they are embedded from now on.

        ``kept_open``: by a keeper, which does not end with this command.
        """
        if memories < MANY_FILES:
            return
        self._announced = True
        self.clear()
        click.echo(
            f"{memories:,} memories can be searched by words and topics now, in another terminal.\n"
            "Next, search by meaning: they are embedded, the newest first. That takes most of the "
            "time.\n" + (KEPT_OPEN if kept_open else STOP_IT),
            err=True,
        )

    def say(self, words: str) -> None:
        """Draw these words as the line, on a terminal."""
        if self._shown:
            self._drawn = time.monotonic()
            self._write(words)

    def _write(self, line: str) -> None:
        sys.stderr.write(f"\r\x1b[K{shortened(line, columns() - 1)}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away, before something else is printed."""
        if self._shown and self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def progress_line(
    name: str, done: int, total: int | None, rate: float | None, left: float | None = None
) -> str:
    """The words of the line: ``rate`` steps are done in a second.

    ``left`` are the seconds that are left, where they do not follow from the steps.
    """
    parts = [_figures(done, total, rate, left), printable_line(name)]
    drawn = f"{bar(done / total, BAR_CELLS)} " if total else ""
    return drawn + " · ".join(part for part in parts if part)


def _figures(done: int, total: int | None, rate: float | None, left: float | None = None) -> str:
    parts = [f"{done:,} of {total:,}" if total else f"{done:,}"]
    if rate:
        if rate >= SLOWEST_SAID:
            parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
        if total and done < total:
            parts.append(f"{_span((total - done) / rate if left is None else left)} left")
    return " · ".join(parts)


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
