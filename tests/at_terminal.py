"""A command at a real (pseudo) terminal, where its questions are answered."""

from __future__ import annotations

import os
import pty
import re
import select
import termios
import time
from collections.abc import Mapping, Sequence

PATIENCE = 180.0  # seconds until a session counts as hung


def session(
    command: Sequence[str],
    environment: Mapping[str, str],
    answers: Sequence[str] = (),
    *,
    echoed: bool = False,
    question: str = ": ",
    stop_at: str = "",
    sure: bool = True,
) -> tuple[str, int]:
    """Run a command, answer its questions in turn: secrets, or echoed; it is ``sure`` to ask.

    Where ``stop_at`` is shown, Ctrl-C is pressed.

    Returns all that the terminal showed, and the exit code.
    """
    child, terminal = pty.fork()
    if child == 0:
        os.execve(command[0], [*command], {**environment})
    shown, waiting, deadline = b"", list(answers), time.monotonic() + PATIENCE
    ready = select.poll()
    ready.register(terminal, select.POLLIN)
    answered, asks = 0, re.compile(re.escape(question.encode()))
    while time.monotonic() < deadline:
        if not ready.poll(100):
            continue
        try:
            piece = os.read(terminal, 65_536)
        except OSError:  # Linux: the other end is closed
            break
        if not piece:
            break
        shown += piece
        if stop_at and stop_at.encode() in shown:
            os.write(terminal, b"\x03")
            stop_at = ""
        if waiting and len(asks.findall(shown)) > answered:
            answered = len(asks.findall(shown))
            while not echoed and termios.tcgetattr(terminal)[3] & termios.ECHO:
                time.sleep(0.01)  # until the prompt has switched it off
            os.write(terminal, waiting.pop(0).encode() + b"\n")
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert not (sure and waiting), f"questions missing; shown: {shown!r}"
    return shown.decode(), os.waitstatus_to_exitcode(status)
