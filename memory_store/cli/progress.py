"""How far a command is, on stderr: a line that is drawn again, or in a log one now and then.

Boundary: a log is kept, so that it gets figures alone; the names of files that are worked on are
shown to terminals.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from memory_store.cli.terminal import bar, columns, printable_line, shortened

if TYPE_CHECKING:
    from memory_store.records import Embedding

REDRAW_SECONDS = 0.1
LOG_SECONDS = 10.0  # between two lines where stderr is no terminal; short commands write none
SETTLE_SECONDS = 2.0  # before this a rate says nothing about the time left
BAR_CELLS = 16
STOP_IT = "Stop it at any moment (Ctrl-C): memory-store reindex goes on."
KEPT_OPEN = "You need not wait (Ctrl-C): the process that keeps the vault open goes on."
MANY_FILES = 64  # those of one batch; fewer are embedded in seconds


class Progress:
    """Draws ``███···· 120 of 400 · 38/s · 7 s left · name`` in place.

    Where stderr is no terminal, ``120 of 400 · 38/s · 7 s left`` is a line every ten seconds.

    An instance is called as ``progress(name, done, total)``: what is being worked on, and how
    much of it all is done. ``total`` may be ``None``.
    """

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._drawn = 0.0 if self._shown else time.monotonic()
        self._done = -1
        self._start = (0, 0.0)
        self._words_before: int | None = None
        self._files = (0, 0)
        self._announced = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

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
        by_words = self._words_before is not None
        if done < self._done or self._done < 0 or by_words != (words is not None):
            self._start = (done, now)
            self._words_before = words[0] if words is not None else None
        self._done = done
        if now - self._drawn < (REDRAW_SECONDS if self._shown else LOG_SECONDS):
            return
        self._drawn = now
        before, started = self._start
        since = (done - before, now - started)
        left = None
        if words is not None and words[0] > (self._words_before or 0):
            share = (words[1] - words[0]) / (words[0] - (self._words_before or 0))
            left = share * since[1]
        if not self._shown:
            figures = _figures(done, total, *since, left)
            click.echo(f"{figures} · {logged}" if logged else figures, err=True)
            return
        line = progress_line(name, done, total, *since, left)
        sys.stderr.write(f"\r\x1b[K{shortened(line, columns() - 1)}")
        sys.stderr.flush()

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
            f"{memories:,} memories can be searched by words and topics now.\n"
            "Next, search by meaning: they are embedded, the newest first. That takes most of the "
            "time.\n" + (KEPT_OPEN if kept_open else STOP_IT),
            err=True,
        )

    def say(self, words: str) -> None:
        """Draw these words as the line, on a terminal."""
        if self._shown:
            self._drawn = time.monotonic()
            sys.stderr.write(f"\r\x1b[K{shortened(words, columns() - 1)}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away, before something else is printed."""
        if self._shown and self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def progress_line(
    name: str,
    done: int,
    total: int | None,
    since: int,
    seconds: float,
    left: float | None = None,
) -> str:
    """The words of the line: ``since`` of the ``done`` steps took ``seconds``.

    ``left`` are the seconds that are left, where they do not follow from the steps.
    """
    parts = [_figures(done, total, since, seconds, left), printable_line(name)]
    drawn = f"{bar(done / total, BAR_CELLS)} " if total else ""
    return drawn + " · ".join(part for part in parts if part)


def _figures(
    done: int, total: int | None, since: int, seconds: float, left: float | None = None
) -> str:
    parts = [f"{done:,} of {total:,}" if total else f"{done:,}"]
    rate = since / seconds if seconds >= SETTLE_SECONDS else 0.0
    if rate:
        parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
        if total and done < total:
            parts.append(f"{_span((total - done) / rate if left is None else left)} left")
    return " · ".join(parts)


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
