"""A long text at a terminal, through your pager.

Boundary: plain text goes into the pager's standard input, never into a file, and ``less`` is told
to keep no history and to start nothing. The vault is locked before: one may read for long.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

import click

from memory_store.cli.terminal import paged_elsewhere, unlinked, width

USUAL = "less"
SETTINGS = {"LESSHISTFILE": "-", "LESSSECURE": "1"}
COLOURS = "FRX"  # for less: leave a text that fits, show bold, do not clear the screen


def show(lines: Sequence[str], lock: Callable[[], None]) -> None:
    """Write lines, through ``PAGER`` (or ``less``) where they do not fit on the terminal.

    ``lock`` is called before a pager begins. An empty ``PAGER`` is none.
    """
    if paged_elsewhere(lines):
        return
    room = shutil.get_terminal_size()
    high = sum(
        max(1, -(-width(unlinked(one)) // room.columns))
        for line in lines
        for one in line.split("\n")
    )
    pager = shlex.split(os.environ.get("PAGER", USUAL)) if sys.stdout.isatty() else []
    if not pager or high < room.lines or shutil.which(pager[0]) is None:
        click.echo("\n".join(lines))
        return
    lock()
    lines = [*map(unlinked, lines)]
    environment = {"LESS": COLOURS, **os.environ, **SETTINGS}
    reading = subprocess.Popen(pager, stdin=subprocess.PIPE, env=environment)
    assert reading.stdin is not None
    with suppress(BrokenPipeError):  # left before the end
        reading.stdin.write("\n".join([*lines, ""]).encode("utf-8", "replace"))
        reading.stdin.close()
    while reading.poll() is None:
        with suppress(KeyboardInterrupt):  # the pager's own to act on
            reading.wait()
