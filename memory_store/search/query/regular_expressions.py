"""What a regular expression needs: the whole words a text must hold for it to match.

The reader never decides what matches, only what to look up. Where it is unsure it asks for less,
so that no match is lost to it.

A word of the pattern is *whole* when nothing that could be a letter or digit stands next to it:
``(lock.acquire)`` has two, ``lock.acquire``, ``time(out|r)`` and ``colou?r`` have none, for
``acquire`` may be the beginning of ``acquired``.

Boundary: sees a pattern, never a text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from enum import Enum

from msgspec import Struct

from memory_store.errors import BadInputError
from memory_store.text.words import words as words_of

MOST_NESTED = 50  # groups within groups

_QUANTIFIER = re.compile(r"(?:([*+?])|\{(\d+)(,\d*)?\})\??")
_GROUP_HEAD = re.compile(r"\(\?(?:P?<\w+>|[a-zA-Z-]*(?P<flags>[:)]))")
_SEPARATING_ESCAPES = frozenset("Azstnrfva")  # not \W, which matches an é in RE2
_BOUNDARY = "b"  # in RE2 there is one between é and a letter of ASCII too
_LONG_ESCAPE = re.compile(r"[pP](?:\{[^}]*\}|.)|x(?:\{[^}]*\}|..)|[0-7]{1,3}", re.DOTALL)
_CLASS = re.compile(r"\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]", re.DOTALL)
_SEPARATING_CLASS = re.compile(r"""\[(?!\^)(?:\\[stnrfv]|\\?[ !"#$%&()*+,./:;<=>?@`{|}~])+-?\]""")
_INSIDE_WORDS = "'’ʼ"  # an apostrophe joins what stands on both sides of it


class Needs(Struct, frozen=True):
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
    return _needs(_Reader(pattern).group(depth=0), before=True, after=True)


def likely_words(pattern: str) -> list[str]:
    """The words of ``pattern`` if its own ends, and every ``\\b``, are ends of words: most often
    they are.

    Raises as :func:`needs`.
    """
    group = _Reader(pattern, _SEPARATING_ESCAPES | {_BOUNDARY}).group(depth=0)
    return _needs(group, before=False, after=False).all_words()


class _Other(Enum):
    """A piece that is neither text nor a group."""

    GAP = "may match a letter"
    EDGE = "matches no letter"


class _Group(Struct, frozen=True):
    """Alternatives, each a row of items."""

    branches: tuple[tuple[_Item, ...], ...]


class _Item(Struct, frozen=True):
    """A piece with its quantifier: least count, and whether it may repeat."""

    piece: str | _Group | _Other
    least: int = 1
    repeats: bool = False


class _Reader:
    """Reads an expression once, from left to right, into groups of items."""

    def __init__(self, pattern: str, separating: Set[str] = _SEPARATING_ESCAPES) -> None:
        self._pattern = pattern
        self._separating = separating
        self._at = 0

    def group(self, depth: int) -> _Group:
        """A whole pattern or the inside of a group, up to its end."""
        if depth > MOST_NESTED:
            raise BadInputError(f"q: groups nested more than {MOST_NESTED} deep", parameter="q")
        branches = [self._branch(depth)]
        while self._at < len(self._pattern) and self._pattern[self._at] == "|":
            self._at += 1
            branches.append(self._branch(depth))
        return _Group(tuple(branches))

    def _branch(self, depth: int) -> tuple[_Item, ...]:
        items: list[_Item] = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            piece = self._piece(depth)
            if piece:
                items += self._quantified(piece)
            elif found := _QUANTIFIER.match(self._pattern, self._at):
                # After (?i) or \Q\E a quantifier belongs to what stood before: it needs nothing.
                self._at = found.end()
                items[-1:] = [_Item(_Other.GAP, least=0, repeats=True)]
        return tuple(items)

    def _piece(self, depth: int) -> str | _Group | _Other | None:
        """The next piece; ``None`` for what holds nothing, such as ``(?i)``."""
        rest = self._pattern[self._at :]
        if rest[0] == "(":
            return self._inner(rest, depth)
        if rest[0] == "[":
            whole = _CLASS.match(rest)
            self._at += whole.end() if whole else 1
            separates = whole is not None and _SEPARATING_CLASS.fullmatch(whole[0])
            return _Other.EDGE if separates else _Other.GAP
        if rest[0] == "\\":
            return self._escape(rest)
        self._at += 1
        if rest[0] in "^$":
            return _Other.EDGE
        return _Other.GAP if rest[0] == "." else rest[0]

    def _inner(self, rest: str, depth: int) -> _Group | None:
        head = _GROUP_HEAD.match(rest)
        self._at += head.end() if head else 1
        if head and head["flags"] == ")":
            return None
        inner = self.group(depth + 1)
        self._at += 1  # the closing parenthesis
        return inner

    def _escape(self, rest: str) -> str | _Other:
        if rest.startswith("\\Q"):
            end = rest.find("\\E")
            self._at += len(rest) if end < 0 else end + 2
            return rest[2:] if end < 0 else rest[2:end]
        long = _LONG_ESCAPE.match(rest, 1)
        if long:
            self._at += long.end()
            return _Other.GAP
        self._at += 2
        character = rest[1:2]
        if character.isascii() and character.isalpha():
            return _Other.EDGE if character in self._separating else _Other.GAP
        return character

    def _quantified(self, piece: str | _Group | _Other) -> list[_Item]:
        """The piece with the quantifier that follows; of a text it takes the last character."""
        found = _QUANTIFIER.match(self._pattern, self._at)
        if found is None:
            return [_Item(piece)]
        self._at = found.end()
        if found[1]:
            least, repeats = (1 if found[1] == "+" else 0), found[1] != "?"
        else:
            least, repeats = int(found[2]), found[2] != "1" or found[3] is not None
        if isinstance(piece, str) and len(piece) > 1:
            return [_Item(piece[:-1]), _Item(piece[-1], least, repeats)]
        return [_Item(piece, least, repeats)]


def _needs(group: _Group, *, before: bool, after: bool) -> Needs:
    """A group's needs, given whether a letter may stand right before and after it."""
    branches = [_row_needs(branch, before=before, after=after) for branch in group.branches]
    if len(branches) == 1:
        return branches[0]
    return Needs() if any(b.nothing for b in branches) else Needs(choices=(tuple(branches),))


def _row_needs(items: Sequence[_Item], *, before: bool, after: bool) -> Needs:
    """What a row of items needs: the whole words of its runs of text, and of its groups."""
    words: set[str] = set()
    choices: list[tuple[Needs, ...]] = []
    run, joined = "", before
    for place, item in enumerate(items):
        if isinstance(item.piece, str) and item.least == 1 and not item.repeats:
            run += item.piece
            continue
        words |= _whole_words(run, before=joined, after=_may_join(item))
        if isinstance(item.piece, _Group) and item.least:
            ahead = _joins_after(items, place, after)
            behind = _ends_in_letter(run) if run else joined
            inner = _needs(item.piece, before=behind or item.repeats, after=ahead or item.repeats)
            words |= inner.words
            choices += inner.choices
        run, joined = "", _may_join(item)
    words |= _whole_words(run, before=joined, after=after)
    return Needs(frozenset(words), tuple(choices))


def _may_join(item: _Item) -> bool:
    """Whether words on both sides of an item may be one word, or go on into it."""
    if item.least == 0 or isinstance(item.piece, _Group):
        return True
    if isinstance(item.piece, str):
        return _ends_in_letter(item.piece)
    return item.piece is _Other.GAP


def _joins_after(items: Sequence[_Item], place: int, after: bool) -> bool:
    """Whether a letter may follow the item at ``place``."""
    if place + 1 == len(items):
        return after
    following = items[place + 1]
    if isinstance(following.piece, str) and following.least:
        return _ends_in_letter(following.piece[:1])
    return _may_join(following)


def _ends_in_letter(text: str) -> bool:
    return text[-1:].isalnum() or text[-1:] in _INSIDE_WORDS


def _whole_words(run: str, *, before: bool, after: bool) -> set[str]:
    """The words of a run of text, less those at an end where a letter may go on."""
    start = len(run) - len(run.lstrip(_INSIDE_WORDS))
    end = len(run.rstrip(_INSIDE_WORDS))
    return {
        word.text
        for word in words_of(run)
        if not (before and word.start <= start) and not (after and word.end >= end)
    }
