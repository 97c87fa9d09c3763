"""What a regular expression needs: the texts that whatever it matches holds.

``time(out|r)`` needs one of ``timeout`` and ``timer``. The reader never decides what matches, only
what to look up: where it is unsure it asks for less, so that no match is lost to it. Python's own
parser reads the expression; what RE2 writes otherwise is put into its words before, or is taken for
"anything".

A word of a text is *whole* where signs stand on both sides of it: `` lock.acquire()`` has two,
``lock.acquire`` none, for ``lock`` may be the end of ``padlock``.

Boundary: sees a pattern, never a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from re import _constants as opcodes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from msgspec import Struct

from memory_store.errors import BadInputError
from memory_store.text.grams import fold, grams
from memory_store.text.words import words as words_of

MOST_NESTED = 50  # groups within groups
MOST_SPELLINGS = 16  # of a part that has a few, such as colou?r: more are not told apart

_TOKEN = re.compile(
    r"""\\Q(?P<quoted>.*?)(?:\\E|\Z)
    | (?P<class>\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\])
    | (?P<any>\\[pP](?:\{[^}]*\}|.)|\\C)
    | \\x\{(?P<code>[0-9A-Fa-f]{1,6})\}
    | (?P<end>\\z)
    | (?P<flags>\(\?[a-zA-Z-]+\))
    | (?P<head>\(\?(?:P?<\w+>|[a-zA-Z-]*:))
    | (?P<brace>\{(?=,))
    | (?P<other>\\.|.)""",
    re.VERBOSE | re.DOTALL,
)
_ANYTHING = r"[\s\S]"
_OF_CLASS = re.compile(r"\[:|\\[pPCQx0-7]|--")  # what Python reads otherwise there
_REPEATS = (opcodes.MAX_REPEAT, opcodes.MIN_REPEAT)


class Needs(Struct, frozen=True):
    """All of ``words``, all of ``texts``, and for each of ``choices`` one of its alternatives.

    Words are whole ones. Texts stand anywhere, also within words; they are folded
    (:func:`memory_store.text.grams.fold`), and each has grams to look up.
    """

    words: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    choices: tuple[tuple[Needs, ...], ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether no index can narrow it."""
        return not self.words and not self.texts and not self.choices

    def named(self) -> list[str]:
        """Every word and text mentioned, once."""
        inner = [name for branches in self.choices for one in branches for name in one.named()]
        return list(dict.fromkeys([*sorted(self.words), *sorted(self.texts), *inner]))

    def likely_words(self) -> list[str]:
        """The words of these, once: those at the ends of a text may go on, but seldom do."""
        return list(dict.fromkeys(word.text for name in self.named() for word in words_of(name)))


def needs(pattern: str) -> Needs:
    """What a text must hold for ``pattern`` (an RE2 expression that compiles) to match it.

    Raises :class:`BadInputError` when groups are nested more than 50 deep.
    """
    translated = _in_pythons_words(pattern)
    if translated is None:
        return Needs()
    try:
        read = _row(parser.parse(translated))
    except (re.error, OverflowError):
        return Needs()  # an expression of RE2's alone, of which nothing is known
    return read if isinstance(read, Needs) else _one_of(read)


def _in_pythons_words(pattern: str) -> str | None:
    """The expression as Python writes it, without its flags; ``None`` where it cannot be said."""
    said, depth = [], 0
    for token in _TOKEN.finditer(pattern):
        part = _translated(token)
        depth += part.startswith("(") - (part == ")")
        if depth > MOST_NESTED:
            raise BadInputError(f"q: groups nested more than {MOST_NESTED} deep", parameter="q")
        if not part and pattern[token.end() : token.end() + 1] in ("*", "+", "?", "{"):
            return None  # it would count for what stood before
        said.append(part)
    return "".join(said)


def _translated(token: re.Match[str]) -> str:
    """One token, in Python's words; a flag says nothing, for all is folded."""
    kind, text = token.lastgroup, token[0]
    if kind == "quoted":
        return re.escape(token["quoted"])
    if kind == "code":
        return re.escape(chr(int(token["code"], 16)))
    if kind == "class":
        if text.startswith("[^") or _OF_CLASS.search(text):
            return _ANYTHING
        return "[" + re.sub(r"\\.|[\[&~|]", _escaped, text[1:], flags=re.DOTALL)
    constant = {"any": _ANYTHING, "end": r"\Z", "flags": "", "head": "(?:", "brace": r"\{"}
    return constant.get(str(kind), text)


def _escaped(found: re.Match[str]) -> str:
    return found[0] if len(found[0]) > 1 else "\\" + found[0]


_Spellings = frozenset[str]
"""All that a part of an expression may match, folded, where that is little."""


def _row(items: Iterable[Any]) -> _Spellings | Needs:
    """Items in a row: their spellings, or else what they need."""
    runs: _Spellings = frozenset([""])
    found: list[Needs] = []
    for piece in _pieces(items):
        if isinstance(piece, Needs):
            found += [_one_of(runs), piece]
            runs = frozenset([""])
        elif len(runs) * len(piece) <= MOST_SPELLINGS:
            runs = frozenset(map("".join, product(runs, piece)))
        else:
            found.append(_one_of(runs))
            runs = piece
    return _all([*found, _one_of(runs)]) if found else runs


def _pieces(items: Iterable[Any]) -> Iterator[_Spellings | Needs]:
    """What each item may match, or needs, in order; what is within a group as if without it."""
    for code, of in items:
        if code is opcodes.LITERAL:
            yield frozenset([fold(chr(of))])
        elif code is opcodes.IN:
            yield _class(of)
        elif code is opcodes.SUBPATTERN:
            yield from _pieces(of[-1])
        elif code is opcodes.BRANCH:
            yield _choice([_row(branch) for branch in of[1]])
        elif code in _REPEATS:
            yield from _repeated(*of)
        elif code is not opcodes.AT:
            yield Needs()


def _class(of: Sequence[Any]) -> _Spellings | Needs:
    found: set[str] = set()
    for code, values in of:
        if code is opcodes.LITERAL:
            found.add(fold(chr(values)))
        elif code is opcodes.RANGE and values[1] - values[0] < 2 * MOST_SPELLINGS:
            found.update(fold(chr(one)) for one in range(values[0], values[1] + 1))
        else:
            return Needs()
    return frozenset(found) if len(found) <= MOST_SPELLINGS else Needs()


def _choice(branches: Sequence[_Spellings | Needs]) -> _Spellings | Needs:
    known = [one for one in branches if not isinstance(one, Needs)]
    together = frozenset[str]().union(*known)
    if len(known) == len(branches) and len(together) <= MOST_SPELLINGS:
        return together
    return _any([one if isinstance(one, Needs) else _one_of(one) for one in branches])


def _repeated(least: int, most: int, items: Iterable[Any]) -> Iterator[_Spellings | Needs]:
    inner = _row(items)
    if isinstance(inner, Needs):
        yield inner if least else Needs()
        return
    yield from [inner] * min(least, MOST_SPELLINGS)
    if (least, most) == (0, 1):
        yield inner | {""}
    elif most > min(least, MOST_SPELLINGS):
        yield Needs()
        yield from [inner] * bool(least)  # the last time


def _one_of(spellings: _Spellings) -> Needs:
    return _any([_text(one) for one in sorted(spellings)])


def _any(needs: Sequence[Needs]) -> Needs:
    """One of them. Where one needs nothing, nothing is needed."""
    distinct = tuple(dict.fromkeys(needs))
    if len(distinct) == 1:
        return distinct[0]
    return Needs() if any(one.nothing for one in distinct) else Needs(choices=(distinct,))


def _all(needs: Sequence[Needs]) -> Needs:
    return Needs(
        frozenset().union(*(one.words for one in needs)),
        frozenset().union(*(one.texts for one in needs)),
        tuple(choice for one in needs for choice in one.choices),
    )


def _text(text: str) -> Needs:
    return Needs(texts=frozenset([text] if len(grams(text)) else []))


def whole_words(text: str) -> list[str]:
    """The words that a memory which holds this text is sure to have as words of their own."""
    return [
        word.text
        for word in words_of(text)
        if _parts(text[: word.start][-1:]) and _parts(text[word.end :][:1])
    ]


def _parts(sign: str) -> bool:
    """Whether a sign (``""``: the end of a text) is sure to part words."""
    return sign.isascii() and bool(sign) and not sign.isalnum() and sign != "'"
