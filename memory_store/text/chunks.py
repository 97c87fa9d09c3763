"""Cutting a text: passages for previews and reranking, windows for the embedding model.

Boundary: plain text goes in, only offsets come out; nothing is kept.

Both cuts are pure functions of the text, so that offsets stored with a memory stay valid for as
long as its text does. Where to cut Markdown is decided by `semantic-text-splitter` (headings before
blocks before sentences before words); how far two passages overlap is decided here, because the
splitter shares nothing between sections larger than the overlap.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from semantic_text_splitter import MarkdownSplitter

PASSAGE_TOKENS = 800  # QMD, "Chunking": 800 tokens with 15 % overlap
PASSAGE_OVERLAP = 0.15  # share of a passage that it repeats of the one before
CHARACTERS_PER_TOKEN = 4  # English prose; close enough for a size that is "about"

LONGEST_LINE, LONGEST_PIECE = 20_000, 1_000_000  # characters that are split at once

WINDOW_OVERLAP = 0.10  # share of a window that it repeats of the one before
SPECIAL_TOKENS = 2  # [CLS] and [SEP], which every BERT adds around a text

Offsets = Callable[[str], Sequence[tuple[int, int]]]
"""A model tokenizer: text → character offsets of each token, in order and not truncated."""


class Span(NamedTuple):
    """Characters ``start`` to ``end`` (exclusive) of a text."""

    start: int
    end: int


# Where a sentence, a line or a paragraph begins: after a full stop, its closing quotes and a
# blank; after a CJK full stop; after a newline.
_BEGINNING = re.compile(r"(?:[.!?…]['\"”’»)\]*_]*\s+|[。！？][」』”’）]*\s*|\n\s*)(?=\S)")
_WORD_BEGINNING = re.compile(r"\s(?=\S)")
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)[^\n]*$(?:.*?^ {0,3}\1[`~]*[ \t]*$|.*)", re.M | re.S)


def passages(
    text: str, *, target_tokens: int = PASSAGE_TOKENS, overlap: float = PASSAGE_OVERLAP
) -> list[Span]:
    """Cut ``text`` into passages of at most about ``target_tokens`` (of four characters each).

    The passages cover the whole text, in order; each begins with the end of the one before, from a
    paragraph, line or sentence on, up to ``overlap`` of the target. A code fence is kept whole
    where it fits. ``[]`` for an empty text. Raises ``ValueError`` for a target below 1 or an
    overlap outside 0 to 0.5.
    """
    if target_tokens < 1 or not 0 <= overlap <= 0.5:
        raise ValueError("target_tokens must be at least 1, overlap between 0 and 0.5")
    if not text:
        return []
    size = target_tokens * CHARACTERS_PER_TOKEN
    if len(text) <= size:
        return [Span(0, len(text))]
    shared = int(size * overlap)
    splitter = _splitter(size - shared)
    begins: list[int] = []
    for end in _pieces(text)[1:]:
        first = begins.pop() if begins else 0  # what ends where a piece does may be longer
        begins += [first + start for start, _ in splitter.chunk_indices(text[first:end])]
    cuts = _without_crumbs([*begins, len(text)], crumb=shared, size=size)
    fences = [match.span() for match in _FENCE.finditer(text)]
    found = [Span(0, cuts[1])]
    for before, start, end in zip(cuts, cuts[1:], cuts[2:], strict=False):
        # Never back to where the passage before began, however short that is.
        earliest = max(start - min(shared, size - (end - start)), before + 1)
        found.append(Span(_overlap_start(text, earliest, start, fences), end))
    return found


def _pieces(text: str) -> list[int]:
    """Where to part a text before it is split, its end included: the splitter takes four times as
    long for a line, or a table, of twice the length."""
    cuts, at = [0], 0
    for line in text.split("\n") if len(text) > LONGEST_LINE else ():
        end = at + len(line) + 1
        if len(line) > LONGEST_LINE or end - cuts[-1] > LONGEST_PIECE:
            cuts.append(at)
        while end - cuts[-1] > LONGEST_LINE and len(line) > LONGEST_LINE:
            most = cuts[-1] + LONGEST_LINE
            blank = text.rfind(" ", most - LONGEST_LINE // 2, most)
            cuts.append(blank + 1 or most)
        at = end
    return list(dict.fromkeys([*cuts, len(text)]))


def _without_crumbs(cuts: Sequence[int], *, crumb: int, size: int) -> list[int]:
    """The cuts, less those that part off fewer than ``crumb`` characters of what would fit."""
    kept = [cuts[0]]
    for cut, after in pairwise(cuts[1:]):
        parts_a_crumb = min(cut - kept[-1], after - cut) < crumb
        if not parts_a_crumb or after - kept[-1] > size:
            kept.append(cut)
    return [*kept, cuts[-1]]


@cache
def _splitter(characters: int) -> MarkdownSplitter:
    from semantic_text_splitter import MarkdownSplitter  # 5 ms, which no search needs

    return MarkdownSplitter(characters, trim=False)


def _overlap_start(text: str, earliest: int, start: int, fences: Sequence[tuple[int, int]]) -> int:
    """The first good place from ``earliest`` on to begin a passage; ``start`` if there is none."""
    for pattern in (_BEGINNING, _WORD_BEGINNING):
        for match in pattern.finditer(text, earliest - 1, start):
            place = match.end()
            if earliest <= place < start and not _inside(place, fences):
                return place
    return start


def _inside(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether ``place`` is within one of the sorted, separate ``spans``."""
    following = bisect_left(spans, (place,))
    return following > 0 and place < spans[following - 1][1]


def windows(text: str, offsets: Offsets, *, max_tokens: int, title_tokens: int) -> list[Span]:
    """Cut a passage into windows that the embedding model reads whole.

    A window holds at most ``max_tokens - title_tokens - 2`` tokens of ``offsets`` (the title and
    two special tokens come on top), at least one. All windows together cover the whole text; they
    are of similar size (a short rest would make a poor vector), end with a sentence where one
    ends nearby, and repeat about a tenth of the one before. ``[]`` for a text without a token.
    """
    tokens = [span for span in offsets(text) if span[1] > span[0]]
    if not tokens:
        return []
    budget = max(max_tokens - title_tokens - SPECIAL_TOKENS, 1)
    if len(tokens) <= budget:
        return [Span(0, len(text))]
    cutter = _WindowCutter(text, [start for start, _ in tokens], budget)

    def fits(first: int, last: int | None) -> bool:
        """Whether the tokens from ``first`` to before ``last`` (None: to the end) fit."""
        # Counted anew where a cut is inside a word: half a word can have more tokens than before.
        if cutter.begins_word(first) and (last is None or cutter.begins_word(last)):
            return (len(tokens) if last is None else last) - first <= budget
        end = None if last is None else cutter.starts[last]
        return sum(b > a for a, b in offsets(text[cutter.starts[first] : end])) <= budget

    found: list[Span] = []
    first = start = last = 0
    while first < len(tokens) - 1 and not fits(first, None):
        least = max(first, last) + 1
        last = max(cutter.end(first), least)
        while last > least and not fits(first, last):
            last -= 1
        found.append(Span(start, cutter.starts[last]))
        first = cutter.next_start(last)
        start = cutter.starts[first]
    found.append(Span(start, len(text)))
    return found


class _WindowCutter:
    """Chooses the tokens at which windows of one text end and begin."""

    def __init__(self, text: str, starts: Sequence[int], budget: int) -> None:
        self.text, self.starts, self.budget = text, starts, budget
        self.shared = int(budget * WINDOW_OVERLAP)
        self.sentences = self._tokens_at(_BEGINNING)
        self.words = self._tokens_at(_WORD_BEGINNING)

    def _tokens_at(self, pattern: re.Pattern[str]) -> list[int]:
        places = (match.end() for match in pattern.finditer(self.text))
        return sorted({bisect_left(self.starts, place) for place in places})

    def begins_word(self, token: int) -> bool:
        start = self.starts[token]
        return start == 0 or self.text[start - 1].isspace()

    def end(self, first: int) -> int:
        """The token before which the window that begins at ``first`` ends."""
        rest = len(self.starts) - first
        count = max(math.ceil((rest - self.shared) / (self.budget - self.shared)), 1)
        aim = first + math.ceil((rest + (count - 1) * self.shared) / count)
        most = min(first + self.budget, len(self.starts) - 1)
        least = first + max((aim - first) * 3 // 4, 1)
        for places in (self.sentences, self.words):
            near = places[bisect_left(places, least) : bisect_right(places, most)]
            if near:
                return min(near, key=lambda place: (abs(place - aim), place))
        return min(aim, most)

    def next_start(self, last: int) -> int:
        """Where the window after one that ends at ``last`` begins: up to a tenth before it."""
        if not self.begins_word(last):
            return last
        for places in (self.sentences, self.words):
            at = bisect_left(places, last - self.shared)
            if at < len(places) and places[at] < last:
                return places[at]
        return last
