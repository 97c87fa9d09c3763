"""Two versions of a text beside each other, and both in one.

Boundary: text enters HTML only through ``escape``. Lines are compared first and words only within
lines that differ, so that the work stays small; very long texts are shown without marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from markupsafe import Markup, escape

WORDS = re.compile(r"\s+|\w+|[^\w\s]")
AROUND = 2  # equal lines shown before and after a difference
LINES_COMPARED = 5_000  # of each text; with more of them the comparison takes seconds
WORDS_COMPARED = 2_000  # of each line


@dataclass(frozen=True)
class Pair:
    """A line of the one text and its counterpart; ``None`` where it has none.

    ``skipped`` is how many equal lines were left out here instead.
    """

    theirs: Markup | None = None
    mine: Markup | None = None
    changed: bool = False
    skipped: int = 0


def side_by_side(theirs: str, mine: str) -> list[Pair]:
    """The lines of two texts, those that differ with their words marked."""
    left, right = theirs.split("\n"), mine.split("\n")
    if max(len(left), len(right)) > LINES_COMPARED:
        return [Pair(escape(theirs), escape(mine), changed=True)]
    pairs: list[Pair] = []
    for kind, a, b, c, d in _opcodes(left, right):
        if kind == "equal":
            pairs.extend(_context(left[a:b], first=not pairs, last=b == len(left)))
        else:
            pairs.extend(_changed(left[a:b], right[c:d]))
    return pairs


def both(theirs: str, mine: str) -> str:
    """One text with every line of both in it, those that differ one after the other."""
    left, right = theirs.split("\n"), mine.split("\n")
    if max(len(left), len(right)) > LINES_COMPARED:
        return f"{theirs}\n\n{mine}"
    lines: list[str] = []
    for kind, a, b, c, d in _opcodes(left, right):
        lines += left[a:b]
        if kind != "equal":
            lines += right[c:d]
    return "\n".join(lines)


def _opcodes(left: Sequence[str], right: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    return SequenceMatcher(None, left, right).get_opcodes()


def _context(lines: Sequence[str], *, first: bool, last: bool) -> Sequence[Pair]:
    """Equal lines: those next to a difference, and how many there are between."""
    pairs = [Pair(escape(line), escape(line)) for line in lines]
    before, end = 0 if first else AROUND, len(pairs) - (0 if last else AROUND)
    if end - before <= 1:
        return pairs
    return [*pairs[:before], Pair(skipped=end - before), *pairs[end:]]


def _changed(left: Sequence[str], right: Sequence[str]) -> Iterator[Pair]:
    for theirs, mine in zip_longest(left, right):
        if theirs is None or mine is None:
            marked = [None if one is None else _mark(one) for one in (theirs, mine)]
            yield Pair(marked[0], marked[1], changed=True)
        else:
            yield _marked(theirs, mine)


def _marked(theirs: str, mine: str) -> Pair:
    """Two lines with the words marked that are in one of them alone."""
    left, right = WORDS.findall(theirs), WORDS.findall(mine)
    if max(len(left), len(right)) > WORDS_COMPARED:
        return Pair(_mark(theirs), _mark(mine), changed=True)
    shown: tuple[list[Markup], list[Markup]] = ([], [])
    for kind, a, b, c, d in _opcodes(left, right):
        for parts, words in zip(shown, (left[a:b], right[c:d]), strict=True):
            text = "".join(words)
            if text:
                parts.append(escape(text) if kind == "equal" else _mark(text))
    return Pair(Markup("").join(shown[0]), Markup("").join(shown[1]), changed=True)


def _mark(text: str) -> Markup:
    return Markup("<mark>{}</mark>").format(text) if text else Markup("")
