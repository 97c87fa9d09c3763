"""Globs: the patterns by which the caller says which files an import takes.

``*`` and ``?`` stay within a name, ``**`` spans folders, ``[…]`` is a set. Matching runs on RE2,
whose time is linear in the name whatever the pattern: ``*a*a*a*a*b`` would hold up Python's ``re``
for hours on a name of eighty letters.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from memory_store.errors import BadInputError

MOST_GLOB = 1_024  # characters, four times the longest name that a file can have
_PIECE = re.compile(r"\*\*/(?:\*\*/)*|/\*\*\Z|\*+|\?|\[!?\]?[^\]/]*\]|.", re.S)
_RANGE = re.compile(r"(.)-(.)|(.)", re.S)
_SURROGATE = re.compile("[\ud800-\udfff]")  # bytes of a name that are no text; RE2 reads UTF-8
_WILD = {"**": ".*", "/**": "(?:/.*)?", "?": "[^/]"}
BEFORE_SLASH, AFTER_SLASH = ord("/") - 1, ord("/") + 1


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
    if piece in _WILD:
        return _WILD[piece]
    if piece.startswith("*"):
        return "(?:.*/)?" if piece.endswith("/") else "[^/]*"
    if len(piece) > 1 and piece.startswith("["):
        return _set(piece[1:-1])
    return f"\\x{{{ord(_encodable(piece)):X}}}"


def _set(inside: str) -> str:
    """A set, which never holds ``/``."""
    negated, members = inside.startswith("!"), inside.removeprefix("!")
    if not members:
        raise ValueError("an empty set")
    spans: list[tuple[int, int]] = []
    for first, last, single in _RANGE.findall(_encodable(members)):
        low, high = ord(first or single), ord(last or single)
        if low > high:
            raise ValueError(f"bad character range {first}-{last}")
        spans += [(low, min(high, BEFORE_SLASH)), (max(low, AFTER_SLASH), high)]
    shown = "".join(f"\\x{{{a:X}}}-\\x{{{b:X}}}" for a, b in spans if a <= b)
    if negated:
        return f"[^/{shown}]"
    return f"[{shown}]" if shown else r"[^\x{0}-\x{10FFFF}]"


def _encodable(text: str) -> str:
    """The text with what is no character moved to a plane for private use."""
    return _SURROGATE.sub(lambda half: chr(ord(half[0]) - 0xD800 + 0xF0000), text)
