"""Globs: the patterns by which the caller says which files an import takes.

``*`` and ``?`` stay within a name, ``**`` spans folders, ``[…]`` is a set. Matching runs on RE2,
whose time is linear in the name whatever the pattern: ``*a*a*a*a*b`` would hold up Python's ``re``
for hours on a name of eighty letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from memory_store.errors import BadInputError

MOST_GLOB = 1_024  # characters, four times the longest name that a file can have
_PIECE = re.compile(r"\*\*/(?:\*\*/)*|/\*\*\Z|\*+|\?|\[!?\]?[^\]/]*\]|.", re.S)
_RANGE = re.compile(r"(.)-(.)|(.)", re.S)
_SURROGATE = re.compile("[\ud800-\udfff]")  # bytes of a name that are no text; RE2 reads UTF-8
_SPANNING = {"**": ".*", "/**": "(?:/.*)?"}


class Glob:
    """One pattern. Without ``/`` it is for names, with one for paths from the folder.

    Raises :class:`BadInputError` (``glob``) for a malformed pattern, or one that is too long.
    """

    def __init__(self, pattern: str) -> None:
        if len(pattern) > MOST_GLOB:
            raise BadInputError(f"glob: a pattern of more than {MOST_GLOB:,} characters", "glob")
        trimmed = pattern.strip("/") if pattern.endswith("/") else pattern.removeprefix("/")
        self.by_path = "/" in pattern.rstrip("/")
        try:
            self._source = "".join(map(_translated, _PIECE.findall(trimmed)))
        except ValueError as error:
            raise BadInputError(f"{pattern!r} is not a glob: {error}", "glob") from None

    @cached_property
    def _expression(self) -> Any:
        import re2

        options = re2.Options()
        options.dot_nl = True
        return re2.compile(self._source, options=options)

    def matches(self, relative: str) -> bool:
        """Whether a file or folder with this path from its root is meant."""
        subject = relative if self.by_path else relative.rpartition("/")[2]
        return self._expression.fullmatch(_encodable(subject)) is not None


def _translated(piece: str) -> str:
    """A piece of a glob as a piece of an RE2 expression. Raises ValueError for a bad set."""
    if piece.startswith("**/"):
        return "(?:.*/)?"
    if piece in _SPANNING:
        return _SPANNING[piece]
    if piece.startswith("*"):
        return "[^/]*"
    if piece == "?":
        return "[^/]"
    if len(piece) > 1 and piece.startswith("["):
        return _set(piece[1:-1])
    return _character(ord(_encodable(piece)))


def _set(inside: str) -> str:
    """A set, which never holds ``/``."""
    negated, members = inside.startswith("!"), inside.removeprefix("!")
    if not members:
        raise ValueError("an empty set")
    ranges = [_range(*match.groups()) for match in _RANGE.finditer(_encodable(members))]
    if negated:
        return f"[^/{''.join(map(_shown, ranges))}]"
    kept = [part for one in ranges for part in _without_slash(*one)]
    return f"[{''.join(map(_shown, kept))}]" if kept else r"[^\x{0}-\x{10FFFF}]"


def _range(first: str | None, last: str | None, single: str | None) -> tuple[int, int]:
    if single is not None or first is None or last is None:
        return ord(single or ""), ord(single or "")
    if first > last:
        raise ValueError(f"bad character range {first}-{last}")
    return ord(first), ord(last)


def _without_slash(first: int, last: int) -> Iterator[tuple[int, int]]:
    slash = ord("/")
    if not first <= slash <= last:
        yield first, last
        return
    if first < slash:
        yield first, slash - 1
    if last > slash:
        yield slash + 1, last


def _shown(span: tuple[int, int]) -> str:
    return f"{_character(span[0])}-{_character(span[1])}"


def _character(code: int) -> str:
    return f"\\x{{{code:X}}}"


def _encodable(text: str) -> str:
    """The text with what is no character moved to a plane for private use."""
    return _SURROGATE.sub(lambda half: chr(ord(half[0]) - 0xD800 + 0xF0000), text)
