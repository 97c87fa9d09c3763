"""The place of a passage: the heading that it stands under. A page, a sheet, a turn, a chapter.

Boundary: reads opened text; what leaves is a heading of what the caller may read anyway.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from memory_store.records import Memory, base_type

PLACE_CHARACTERS = 100  # of a heading
PLACED = ("pages", "slides", "sheets", "chapters", "turns")
"""What readers count in the metadata of a file that they cut into sections of the second level."""

_LINE = re.compile(r"^(?:(#{2,6})[ \t]+(\S[^\n]*)| {0,3}(`{3,}|~{3,})([^\n]*))", re.MULTILINE)
_Span = tuple[int, int]


def section(memory: Memory, start: int, end: int, marks: Sequence[_Span]) -> str | None:
    """The heading over the part ``start``–``end`` of a text: over most of the words that were
    looked for (``marks``, offsets in the text), or over the longest stretch where there are none.

    ``None`` where that is no heading of the second level or a lower one, or only the title again.
    """
    found = [(0, ""), *_headings(memory.text, _deepest(memory))]
    starts = [at for at, _ in found]
    first, last = bisect_right(starts, start) - 1, bisect_right(starts, max(start, end - 1)) - 1
    words: dict[int, list[str]] = {number: [] for number in range(first, last + 1)}
    for mark in marks:
        number = min(max(bisect_right(starts, mark[0]) - 1, first), last)
        words[number].append(memory.text[mark[0] : mark[1]].casefold())
    limits = [*starts, len(memory.text)]

    def merit(number: int) -> tuple[int, int, int]:
        stretch = min(end, limits[number + 1]) - max(start, limits[number])
        return len(set(words[number])), len(words[number]), 0 if marks else stretch

    place = found[max(words, key=merit)][1]
    return None if not place or place.casefold() == memory.title.strip().casefold() else place


def _deepest(memory: Memory) -> int:
    """The lowest level of heading that names a place. What is lower on a page is part of it."""
    placed = any(name in memory.metadata for name in PLACED)
    return 2 if placed and base_type(memory.type) in ("document", "conversation") else 6


def _headings(text: str, deepest: int) -> Iterator[tuple[int, str]]:
    """Where a heading begins, and its words. Of the first level there is one in a note, its
    title; a comment in a block of code only looks like one."""
    fence = ""
    for line in _LINE.finditer(text):
        level, words, ticks, after = line.groups()
        if fence:
            if ticks and ticks.startswith(fence) and not after.strip():
                fence = ""
        elif ticks:
            fence = "" if ticks[0] in after else ticks
        elif len(level) <= deepest:
            yield line.start(), words.rstrip("# \t")[:PLACE_CHARACTERS]
