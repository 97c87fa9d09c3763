"""The place of a passage: the heading that it stands under. A page, a sheet, a turn, a chapter.

Boundary: reads opened text; what leaves is a heading of what the caller may read anyway.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from memory_store.plain_text import UNMARKED, without_marks
from memory_store.records import Memory, base_type

PLACE_CHARACTERS = 80  # of a heading
PLACED = ("pages", "slides", "sheets", "turns")
"""What readers count in the metadata of a file that they cut into sections of the second level."""

_LINE = re.compile(r"^(?:(#{2,6})[ \t]+(\S[^\n]*)| {0,3}(`{3,}|~{3,})([^\n]*))", re.MULTILINE)
MAIL_HEAD = re.compile(
    r"From: (?P<name>[^\n<]*+)(?P<address>[^\n]*+)\n(?:(?:To|Cc|Date): [^\n]*\n)+(?:\n|\Z)"
)
"""How the reader of mail begins a text."""
_Span = tuple[int, int]


def section(memory: Memory, start: int, end: int, marks: Sequence[_Span]) -> str | None:
    """The heading over the part ``start``–``end`` of a text: over most of the words that were
    looked for (``marks``, offsets in the text), or over the longest stretch where there are none.

    ``None`` where that is no heading of the second level or a lower one, or only the title again.
    Of mail without headings it is who sent it.
    """
    found = [(0, ""), *_headings(memory)]
    starts = [at for at, _ in found]
    first, last = bisect_right(starts, start) - 1, bisect_right(starts, max(start, end - 1)) - 1
    place = found[first][1]
    if first < last:
        stretches = [start, *starts[first + 1 : last + 1], end]
        place = found[first + _most_asked(memory.text, stretches, marks)][1]
    if place:
        return None if place.casefold() == _plain(memory.title).casefold() else place
    if (mail := MAIL_HEAD.match(memory.text)) is None:
        return None
    sender = mail["name"].strip(' "') or mail["address"].strip("<> ")
    return f"from {sender[:PLACE_CHARACTERS]}" if sender else None


def _most_asked(text: str, limits: Sequence[int], marks: Sequence[_Span]) -> int:
    """In which of the stretches between ``limits`` most of the marked words are, by their letters:
    a long word is rarer than a short one."""
    words: list[list[str]] = [[] for _ in limits[1:]]
    for start, end in marks:
        number = min(max(bisect_right(limits, start) - 1, 0), len(words) - 1)
        words[number].append(text[start:end].casefold())

    def merit(number: int) -> tuple[int, int, int]:
        stretch = limits[number + 1] - limits[number]
        rare = sum(map(len, set(words[number])))
        return rare, len(words[number]), 0 if marks else stretch

    return max(range(len(words)), key=merit)


def _plain(words: str) -> str:
    """Words without the marks of Markdown, which a result shows in no other way."""
    shown = words[: 4 * PLACE_CHARACTERS]
    return shown if UNMARKED.fullmatch(shown) else without_marks(shown, ())[0].strip()


def _headings(memory: Memory) -> Iterator[tuple[int, str]]:
    """Where a heading begins, and its words. Of the first level there is one in a note, its
    title; a comment in a block of code only looks like one. On a page, a slide, a sheet and in a
    turn a lower heading is part of it; in a chapter it is named after the chapter."""
    read = base_type(memory.type) in ("document", "conversation")
    book = read and "chapters" in memory.metadata
    deepest = 2 if read and any(name in memory.metadata for name in PLACED) else 6
    fence, chapter = "", ""
    for line in _LINE.finditer(memory.text):
        level, words, ticks, after = line.groups()
        if fence:
            if ticks and ticks.startswith(fence) and not after.strip():
                fence = ""
        elif ticks:
            fence = "" if ticks[0] in after else ticks
        elif len(level) <= deepest:
            words = _plain(words.rstrip("# \t"))[:PLACE_CHARACTERS]
            chapter = words if len(level) == 2 else chapter
            within = f"{chapter} › {words}" if book and words != chapter else words
            yield line.start(), within
