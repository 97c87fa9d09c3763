"""Words: a text cut where its script does, each with its place.

Boundary: works on plain text and keeps none of it. The tokenizer owns all splitting: no character
of a text or a query has a meaning of its own here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple


class Word(NamedTuple):
    """A word as spelled: ``text == source[start:end]``."""

    text: str
    start: int
    end: int


# Letters of scripts that put no space between words: Thai, Lao, Myanmar, Khmer, kana, Bopomofo,
# Han, Hangul. (Korean has spaces, but its particles stick to the noun: pairs find it all the same.)
UNSPACED = (
    "\u0e01-\u0e4e\u0e80-\u0ec6\u1000-\u103f\u1050-\u108f\u1100-\u11ff\u1780-\u17d3"
    "\u3005-\u3007\u3041-\u30ff\u3105-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001b000-\U0001b16f"
    "\U00020000-\U0003ffff"
)
ASCII_WORD = re.compile(r"[A-Za-z0-9]+(?:'[A-Za-z0-9]+)*")

# Latin without combining marks, Greek, Cyrillic, Armenian, and the signs that texts in them have:
# no marks, no joiners, no unspaced scripts, so that a word is letters and digits. Looking for one
# character of the whole pattern below costs ten times as much as this.
_PLAIN = re.compile(
    "[\x00-\xac\xae-\u02ff\u0370-\u0482\u048a-\u0590\u2010-\u2027\u2030-\u205e\u20a0-\u20cf"
    "\u2100-\u2bff]*"
)
_PLAIN_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


@cache
def marks_inside() -> str:
    """What may stand inside a word besides letters and digits, as part of a character class.

    Combining marks (``\\w`` leaves them out, which would cut Hindi to pieces), half marks, the
    soft hyphen, the joiners of Persian and of Indic scripts.
    """
    return _marks() + "\ufe20-\ufe2f\u00ad\u200c\u200d\u2060"


# The two patterns for text beyond ASCII are built on first use: together they take 10 ms.
@cache
def _word_pattern() -> re.Pattern[str]:
    """A word of a spaced script, or (group 1) a run of an unspaced one."""
    letter, inside = rf"[^\W_{UNSPACED}]", marks_inside()
    spaced = rf"{letter}+(?:[{inside}]+{letter}*|['’ʼ＇]{letter}+)*"
    return re.compile(rf"{spaced}|((?:(?![\W_])[{UNSPACED}][{inside}]*)+)")


@cache
def unspaced_letter() -> re.Pattern[str]:
    """A letter of a script without spaces."""
    return re.compile(f"[{UNSPACED}]")  # 3 ms, for which plain ASCII need not wait


@cache
def _character_pattern() -> re.Pattern[str]:
    """One character of an unspaced script with its marks."""
    return re.compile(rf"[{UNSPACED}][{marks_inside()}]*")


def _marks() -> str:
    """Unicode's combining marks, as ranges of a character class (a list compiles slowly)."""
    blocks = (
        range(0x0300, 0x2000),
        range(0x2CE0, 0x3100),
        range(0xA600, 0xAC00),
        range(0x10A00, 0x11E00),
    )
    codes = [c for block in blocks for c in block if unicodedata.category(chr(c))[0] == "M"]
    firsts = [code for before, code in pairwise([-1, *codes]) if code != before + 1]
    lasts = [code for code, after in pairwise([*codes, -1]) if after != code + 1]
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in zip(firsts, lasts, strict=True))


def simple_pattern(text: str) -> re.Pattern[str] | None:
    """What finds exactly the :func:`words` of a text whose scripts make it easy, else ``None``."""
    if text.isascii():
        return ASCII_WORD
    return _PLAIN_WORD if _PLAIN.fullmatch(text) else None


@lru_cache(maxsize=64)
def word_begun(first: str, second: str, ascii_alone: bool) -> re.Pattern[str]:
    """What finds those :func:`words` of a text with a :func:`simple_pattern` whose first letter,
    and second one where any are given, is one of some, small or capital, or beyond ASCII. What a
    first letter beyond ASCII stands for may be two: ß.

    The rest is passed over in half of the time that looking at each takes.
    """
    if ascii_alone and not first:
        return re.compile("(?!)")
    inside, joint = ("[A-Za-z0-9]", "'") if ascii_alone else (r"[^\W_]", "['’]")
    one, two = (_one_of(each + each.upper(), ascii_alone) for each in (first, second))
    begins = f"{one}(?<={inside})(?<!{inside}{one})(?<!{inside}{joint}{one})"
    if second:
        begins += f"(?={two})" if ascii_alone else f"(?:(?={two})|(?<=[^\\x00-\\x7f]))"
    return re.compile(f"{begins}{inside}*(?:{joint}{inside}+)*")


def _one_of(letters: str, ascii_alone: bool) -> str:
    """What matches one of some letters, or one beyond ASCII: none of all others, since a class of
    all that is beyond takes 8 ms to compile, and each question needs its own."""
    if ascii_alone:
        return f"[{re.escape(letters)}]"
    others = sorted({*map(chr, range(128))}.difference(letters))
    return f"[^{re.escape(''.join(others))}]"


def words(text: str) -> list[Word]:
    """The words of ``text`` in order, spelled as they are, with their offsets.

    A word is a run of letters and digits with the apostrophes, marks and soft hyphens inside it;
    ``_`` separates. A run of an unspaced script gives each character followed by the pair it
    begins: 東京都 → 東, 東京, 京, 京都, 都 (these overlap; starts never decrease).
    """
    pattern = simple_pattern(text)
    if pattern is not None:
        return [Word(m[0], *m.span()) for m in pattern.finditer(text)]
    found: list[Word] = []
    for match in _word_pattern().finditer(text):
        if match.lastindex:
            found.extend(_grams(text, *match.span()))
        else:
            found.append(Word(match[0], *match.span()))
    return found


def spellings(text: str) -> list[str]:
    """The :func:`words` of ``text`` as they are spelled, in order."""
    pattern = simple_pattern(text)
    return pattern.findall(text) if pattern is not None else [word.text for word in words(text)]


def query_words(text: str) -> list[Word]:
    """The words to look up for a query: as :func:`words`, less what says nothing of its own.

    In a run of an unspaced script only the pairs are kept (the single character, if it is alone):
    every text with 東京 also holds 東, and a match of 東 alone is rarely meant.
    """
    found = words(text)
    return [
        word
        for i, word in enumerate(found)
        if not (
            (i and found[i - 1].end >= word.end and found[i - 1].start < word.start)
            or (i + 1 < len(found) and found[i + 1].start == word.start)
        )
    ]


def _grams(text: str, start: int, end: int) -> Iterator[Word]:
    spans = [match.span() for match in _character_pattern().finditer(text, start, end)]
    for (a, b), (_, c) in pairwise(spans):
        yield Word(text[a:b], a, b)
        yield Word(text[a:c], a, c)
    a, b = spans[-1]
    yield Word(text[a:b], a, b)
