"""What a process says while it works: printed, logged, in exceptions; and the words in it."""

from __future__ import annotations

import logging
import re
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from canaries import spelled_in

CLIENTS = ("httpx", "httpcore")  # the asker's own loggers, which name the address they ask for
WRAPPING = re.compile(rb"(\s|\xe2[\x94\x95\x96][\x80-\xbf])+")  # and the boxes rich draws

Words = dict[str, str]
Said = Callable[[], bytes]


def quoted(content: bytes, words: Words) -> set[str]:
    """The kinds of the words that stand there, broken into lines or not."""
    return spelled_in(content + b"\n" + WRAPPING.sub(b"", content), words)


@pytest.fixture
def said(capfd: Any, caplog: Any, monkeypatch: pytest.MonkeyPatch) -> Said:
    """What was printed and logged since it was asked last, by threads too, as a server does it."""
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    caplog.set_level(logging.DEBUG)
    lines = logging.Formatter()

    def since() -> bytes:
        printed = capfd.readouterr()
        ours = [one for one in caplog.records if not one.name.startswith(CLIENTS)]
        caplog.clear()
        return "\n".join((printed.out, printed.err, *map(lines.format, ours))).encode()

    return since


def reported(error: BaseException | None) -> bytes:
    """All that an exception says of itself and of those behind it; of none, nothing."""
    if error is None:
        return b""
    parts = (*traceback.format_exception(error), repr(error), repr(vars(error)))
    return "".join(parts).encode()
