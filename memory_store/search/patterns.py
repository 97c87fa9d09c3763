"""What a regular expression needs: the whole words a text must hold for it to match.

The reader never decides what matches, only what to look up. Where it is unsure it asks for less,
so that no match is lost to it.

A word of the pattern is *whole* when nothing that could be a letter or digit stands next to it:
``connect_timeout`` has two, ``time(out|r)`` and ``colou?r`` have none. The pattern's own ends
count as ends of words.

Boundary: sees a pattern, never a text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory_store.records import BadInputError
from memory_store.text.tokens import words as words_of

MOST_NESTED = 50  # groups within groups

_QUANTIFIER = re.compile(r"(?:([*+?])|\{(\d+)(,\d*)?\})\??")
_GROUP_HEAD = re.compile(r"\(\?(?:P?<\w+>|[a-zA-Z-]*(?P<flags>[:)]))")
_EDGES = frozenset("bAzsWtnrfva")  # escapes that are no letter or digit: \b, \s, \n …
_LONG_ESCAPE = re.compile(r"[pP](?:\{[^}]*\}|.)|x(?:\{[^}]*\}|..)|[0-7]{1,3}", re.DOTALL)
_CLASS = re.compile(r"\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]", re.DOTALL)
_SEPARATING_CLASS = re.compile(r"\[(?:\\[stnrfv]|\\?[^\w\\^\]]|(?!^)\^)+\]", re.ASCII)

_GAP, _EDGE = "gap", "edge"


@dataclass(frozen=True, slots=True)
class Needs:
    """All of ``words``, and for each of ``choices`` one of its alternatives.

    An alternation is a choice only when every branch needs something.
    """

    words: frozenset[str] = frozenset()
    choices: tuple[tuple[Needs, ...], ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether a text without any known word may match."""
        return not self.words and not self.choices

    def all_words(self) -> list[str]:
        """Every word mentioned, once."""
        inner = [w for branches in self.choices for b in branches for w in b.all_words()]
        return list(dict.fromkeys([*sorted(self.words), *inner]))


def needs(pattern: str) -> Needs:
    """What a text must hold for ``pattern`` (an RE2 expression that compiles) to match it.

    Raises :class:`BadInputError` when groups are nested more than 50 deep.
    """
    return _Reader(pattern).alternatives(depth=0)


class _Reader:
    """Reads an expression once, from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def alternatives(self, depth: int) -> Needs:
        """A whole pattern or the inside of a group, up to its end."""
        if depth > MOST_NESTED:
            raise BadInputError(f"q: groups nested more than {MOST_NESTED} deep", parameter="q")
        branches = [self._branch(depth)]
        while self._at < len(self._pattern) and self._pattern[self._at] == "|":
            self._at += 1
            branches.append(self._branch(depth))
        if len(branches) == 1:
            return branches[0]
        return Needs() if any(b.nothing for b in branches) else Needs(choices=(tuple(branches),))

    def _branch(self, depth: int) -> Needs:
        """Pieces in a row, up to ``|``, ``)`` or the end."""
        row = _Row()
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            piece = self._piece(depth)
            row.add(piece, self._repeats())
        return row.needs()

    def _piece(self, depth: int) -> str | Needs | tuple[str]:
        """The next piece: a literal character, a group's needs, a gap or an edge."""
        rest = self._pattern[self._at :]
        character = rest[0]
        if character == "(":
            return self._group(rest, depth)
        if character == "[":
            whole = _CLASS.match(rest)
            self._at += whole.end() if whole else 1
            separates = whole is not None and _SEPARATING_CLASS.fullmatch(whole[0])
            return (_EDGE,) if separates else (_GAP,)
        if character == "\\":
            return self._escape(rest)
        self._at += 1
        if character in "^$":
            return (_EDGE,)
        return (_GAP,) if character == "." else character

    def _group(self, rest: str, depth: int) -> Needs | tuple[str]:
        head = _GROUP_HEAD.match(rest)
        self._at += head.end() if head else 1
        if head and head["flags"] == ")":  # (?i) sets a flag and holds nothing
            return (_EDGE,)
        inner = self.alternatives(depth + 1)
        self._at += 1  # the closing parenthesis
        return inner

    def _escape(self, rest: str) -> str | tuple[str]:
        if rest.startswith("\\Q"):
            end = rest.find("\\E")
            quoted = rest[2:] if end < 0 else rest[2:end]
            self._at += len(rest) if end < 0 else end + 2
            return quoted
        long = _LONG_ESCAPE.match(rest, 1)
        if long:
            self._at += long.end()
            return (_GAP,)
        self._at += 2
        character = rest[1:2]
        if character.isascii() and character.isalpha():
            return (_EDGE,) if character in _EDGES else (_GAP,)
        return character

    def _repeats(self) -> tuple[int, bool] | None:
        """The quantifier that follows: least count, and whether more are allowed."""
        found = _QUANTIFIER.match(self._pattern, self._at)
        if found is None:
            return None
        self._at = found.end()
        if found[1]:
            return (1 if found[1] == "+" else 0), found[1] != "?"
        least = int(found[2])
        return least, least != 1 or found[3] is not None


class _Row:
    """A branch while it is read: runs of literal text, and what stands between them."""

    def __init__(self) -> None:
        self._words: set[str] = set()
        self._choices: list[tuple[Needs, ...]] = []
        self._text = ""
        self._open = False  # whether a letter may stand right before the run

    def add(self, piece: str | Needs | tuple[str], repeats: tuple[int, bool] | None) -> None:
        """Take in a piece and its quantifier."""
        optional = repeats is not None and repeats[0] == 0
        if isinstance(piece, str):
            self._add_text(piece, repeats)
            return
        if isinstance(piece, Needs) and not optional:
            self._words |= piece.words
            self._choices += piece.choices
        edge = piece == (_EDGE,)
        if edge and (optional or repeats is not None):
            self._close(touching=optional)
        else:
            self._close(touching=not edge)

    def needs(self) -> Needs:
        """What the branch needs as a whole."""
        self._close(touching=False)
        return Needs(frozenset(self._words), tuple(self._choices))

    def _add_text(self, piece: str, repeats: tuple[int, bool] | None) -> None:
        """Literal text; a quantifier belongs to its last character."""
        if repeats is None:
            self._text += piece
            return
        self._text += piece[:-1]
        last = piece[-1:]
        if last.isalnum():
            self._close(touching=True)
        elif repeats[0] == 0:
            self._close(touching=True)  # a separator that may be missing joins its neighbours
        else:
            self._text += last

    def _close(self, *, touching: bool) -> None:
        """End a run; ``touching``: a letter may follow it, and precede the next."""
        found = words_of(self._text)
        for word in found:
            cut_before = self._open and word.start == 0
            cut_after = touching and word.end == len(self._text)
            if not cut_before and not cut_after:
                self._words.add(word.text)
        self._text, self._open = "", touching
