"""What may reach the terminal: text without control characters, and colour only when wanted.

Boundary: notes are untrusted text. An escape sequence in a note could retitle the window, move
the cursor over other output or fill the clipboard (OSC 52), so every string from a vault goes
through :func:`printable` before it is shown. JSON and NDJSON escape such characters instead.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import NamedTuple

BOLD, DIM, RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
LINK, ENDED = "\x1b]8;;", "\x1b\\"  # OSC 8: what stands between is where a click leads
SHORT_ID = 8  # characters of an id: the shortest beginning that every command takes
NARROW, WIDE = 40, 100  # columns: lines longer than a hundred characters tire the eye
USUAL = 88  # where no terminal says


class Terminal(NamedTuple):
    """Where a command's output is read that runs in another process: see ``keeper_process``."""

    variables: Mapping[str, str]
    width: int  # 0: no terminal says
    page: Callable[[Sequence[str]], None]  # has its own pager show lines
    edited: list[tuple[int, str]]  # a version, and the text that its editor made of it


class HereOnly(BaseException):
    """What only the process that was called can do. No error: it goes on there, from the start."""


class EditorWantedError(HereOnly):
    """A text has to go through the editor of the person who called."""

    def __init__(self, version: int, text: str) -> None:
        super().__init__("an editor")
        self.version = version
        self.text = text


_elsewhere: ContextVar[Terminal | None] = ContextVar("terminal", default=None)

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 (but tab and newline), DEL, C1
    "\u202a-\u202e\u2066-\u2069"  # bidirectional overrides: the text shown is not the text
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # byte order mark, annotations, tags
    "\ud800-\udfff]"  # lone surrogates cannot be encoded
)
_LINKS = re.compile(f"{re.escape(LINK)}[^\x1b]*{re.escape(ENDED)}")
_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029]")


def printable(text: str) -> str:
    """``text`` with nothing in it that can drive a terminal; line ends become newlines."""
    return _UNSAFE.sub("", _LINE_ENDS.sub("\n", text))


def printable_line(text: str) -> str:
    """``text`` printable and on one line, runs of white space collapsed."""
    return " ".join(printable(text).split())


def escaped(json_text: str) -> str:
    """JSON text with the same characters written as ``\\uXXXX``: safe to show, and lossless."""
    return _UNSAFE.sub(_escape, json_text)


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


@contextmanager
def seen_by(terminal: Terminal) -> Iterator[None]:
    """Write for another process's terminal inside."""
    token = _elsewhere.set(terminal)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def is_elsewhere() -> bool:
    """Whether this process works for another one, which has the terminal."""
    return _elsewhere.get() is not None


def here_only(what: str) -> None:
    """Raise HereOnly in a process that works for others."""
    if is_elsewhere():
        raise HereOnly(what)


def edited_elsewhere(version: int, text: str) -> tuple[int, str] | None:
    """What the editor of another process made of a text, and of which version of it.

    ``None`` where this process has the terminal. Raises EditorWantedError where it is yet to be
    edited.
    """
    elsewhere = _elsewhere.get()
    if elsewhere is None:
        return None
    if not elsewhere.edited:
        raise EditorWantedError(version, text)
    return elsewhere.edited.pop()


def paged_elsewhere(lines: Sequence[str]) -> bool:
    """Whether lines were left to the pager of another process, which has the terminal."""
    elsewhere = _elsewhere.get()
    if elsewhere is None or not sys.stdout.isatty():
        return False
    elsewhere.page(lines)
    return True


def _variables() -> Mapping[str, str]:
    elsewhere = _elsewhere.get()
    return os.environ if elsewhere is None else elsewhere.variables


def colour_wanted() -> bool:
    """Whether standard output may carry ANSI styles: a terminal, and ``NO_COLOR`` not set."""
    variables = _variables()
    if variables.get("NO_COLOR") or variables.get("TERM") == "dumb":  # https://no-color.org
        return False
    return sys.stdout.isatty()


def columns() -> int:
    """The width to write in, between 40 and 100."""
    chosen = _variables().get("COLUMNS", "")
    found = int(chosen) if chosen.isdecimal() else 0
    elsewhere = _elsewhere.get()
    if elsewhere is not None:
        found = found or elsewhere.width
    elif not found:  # as shutil does, whose import takes 3 ms for its archives
        with suppress(OSError, ValueError, AttributeError):
            found = os.get_terminal_size(sys.__stdout__.fileno()).columns  # type: ignore[union-attr]
    return max(NARROW, min(found or USUAL, WIDE))


def styled(text: str, style: str, colour: bool) -> str:
    """``text`` in an ANSI style, or as it is."""
    return f"{style}{text}{RESET}" if colour and text else text


def linked(text: str, path: str, colour: bool) -> str:
    """Printable ``text`` as a link to a file or folder that is there, where colour is wanted.

    The address is percent-encoded: no path ends the sequence that it stands in.
    """
    if not (colour and text and os.path.isabs(path) and os.path.exists(path)):
        return text
    from urllib.parse import quote

    return linked_to(text, f"file://{quote(os.fsencode(path))}", colour)


def linked_to(text: str, address: str, colour: bool) -> str:
    """Printable ``text`` as a link to an address without control characters, if there is one."""
    return f"{LINK}{address}{ENDED}{text}{LINK}{ENDED}" if colour and text and address else text


def unlinked(text: str) -> str:
    """``text`` with what its links show, for a pager that may know of none."""
    return _LINKS.sub("", text)


def width(text: str) -> int:
    """Terminal cells ``text`` takes: two for East Asian wide characters, none for accents."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def shortened(text: str, limit: int) -> str:
    """``text`` cut to ``limit`` cells with an ellipsis."""
    if width(text) <= limit:
        return text
    taken: list[str] = []
    room = limit - 1
    for character in text:
        room -= width(character)
        if room < 0:
            break
        taken.append(character)
    return "".join(taken).rstrip() + "…"


def bar(score: float, cells: int = 10) -> str:
    """A score of 0–1 as a bar of eighth blocks, ``cells`` wide."""
    eighths = round(max(0.0, min(score, 1.0)) * cells * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(cells, "·")


def memories(count: int) -> str:
    """``1 memory``, ``48,210 memories``."""
    return f"{count:,} {'memory' if count == 1 else 'memories'}"


def in_units(count: int) -> str:
    """A size in bytes for people: ``4.2 MB``."""
    size, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
