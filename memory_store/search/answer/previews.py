"""Previews: the part of each result that answers, with the words that were looked for marked.

Boundary: reads opened text; what leaves is what the caller may read anyway.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from memory_store.plain_text import heading_words
from memory_store.records import Memory, Passage, base_type
from memory_store.search.answer.section import MAIL_HEAD, section
from memory_store.search.candidates import Scored
from memory_store.search.query.word_matcher import Hit, densest
from memory_store.search.reranking.cross_encoder import around as near
from memory_store.text.chunks import Span
from memory_store.text.identifiers import CODE, file_name

if TYPE_CHECKING:
    from memory_store.code.definitions import Definition
    from memory_store.code.symbols import FileSymbols

EXPAND_STANDARD = 3  # Gnosis, "Preview Generation": the top 3 results
EXPAND_DEEP = 5  # and 5 for deep search
EXPAND_SCORE = 0.80  # "rerank score above 0.80"
EXPAND_CHARACTERS = 2_048  # "content under 2,048 characters"
PREVIEW_CHARACTERS = 320  # about four lines on a page, two in a terminal
SENTENCES_FROM = 200  # whole sentences of this length at least are enough, however long the next is
PASSAGES = 3  # of source code, at most
LEAD_CHARACTERS = 160  # a preview starts at most this far before what was looked for

_MARK = r"(?:[-*+>] |\d+\. |#{1,6} )"
_BEGINNING = re.compile(rf"\n\s*\n\s*{_MARK}?|\n[ \t]*(?:{_MARK}|(?=\|))|[.!?…][\"')\]”»]?\s+")

_SENTENCE_END = re.compile(rf"[.!?…][\"')\]”»]?(?=\s)|[。！？]|(?<=\S)(?=\n[ \t]*(?:{_MARK}|\n))")
"""Where a sentence, a paragraph or an item of a list ends."""
_NUMBER = re.compile(r"[ \t]*\d+\.")  # of a list, which is no sentence

_LAST_HEADING = re.compile(r"\n#{1,6} [^\n]*\Z")
_FIRST_LINE = re.compile(
    r"\s*(?:#{1,6}[ \t]++)?([^\n]*+)\n(?:(?:=+|-+)[ \t]*\n)?(?:[ \t]*\n)*(?=[ \t]*\S)"
)


class Marker(Protocol):
    """Finds what was looked for in a text: a :class:`WordMatcher`, or a pattern."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where it stands, in order."""
        ...

    def met(self, text: str) -> set[str]:
        """What of it stands in a text, each once."""
        ...

    def called(self, path: str) -> set[str]:
        """What of it is in the path of a definition."""
        ...

    def most(self, text: str) -> float:
        """How long all of that is together at most, found out in less time."""
        ...

    def hits(self, text: str) -> list[Hit]:
        """Each of it where it stands, in order; of a pattern, the first alone."""
        ...


class Preview(Struct, frozen=True):
    """What is shown of a result: ``complete`` when ``passage`` is the whole text.

    ``others`` are the next best passages.
    """

    passage: Passage
    complete: bool
    others: tuple[Passage, ...] = ()


def preview(
    result: Scored,
    matcher: Marker,
    *,
    expanded: bool,
    passages: int = PASSAGES,
    symbols: Callable[[int], FileSymbols | None] = lambda ordinal: None,
) -> Preview:
    """The preview of one opened result, of source code with at most so many ``passages``.

    ``symbols`` gives those of an ordinal, where known: a file without is parsed again.
    """
    text = result.opened.text
    if is_source(result.opened):
        known = symbols(result.candidate.ordinal)
        return _code_preview(result.opened, matcher, known, passages)
    whole = expanded or len(text) <= PREVIEW_CHARACTERS
    start, end = (0, len(text)) if whole else _excerpt(result, text, matcher)
    part = text[start:end]
    marks = tuple(matcher.spans(part))
    place = section(result.opened, start, end, [(start + a, start + b) for a, b in marks])
    if not marks and not matcher.spans(result.opened.title):
        named = file_name(result.opened.ref)
        place = named if matcher.spans(named) else place
    return Preview(Passage(start, end, part, marks, place), complete=whole)


def is_source(memory: Memory) -> bool:
    """Whether a memory is a file of source code: its importer says in what language it is."""
    return base_type(memory.type) == CODE and "language" in memory.metadata


def _code_preview(
    memory: Memory, matcher: Marker, known: FileSymbols | None, passages: int
) -> Preview:
    """The chunk with most of what is asked, whole; in the path of a definition it counts again.

    Longer words count for more: a compound name is rarer than its parts. The next best follow, as
    far as they hold any of it. Its symbol is the definition in it whose path says most of what is
    asked, else the one around what matches.
    """
    from memory_store.code.chunks import line_of  # few answers show code
    from memory_store.code.definitions import enclosing
    from memory_store.code.symbols import layout

    text = memory.text
    chunks, found = layout(text, str(memory.metadata["language"]), known)
    named = [(one, words) for one in found if (words := matcher.called(one.path))]
    each = []
    for chunk in chunks or [Span(0, len(text))]:
        inside = set[str]().union(
            *(words for one, words in named if chunk.start <= one.start < chunk.end)
        )
        again = sum(map(len, inside))
        each.append((matcher.most(text[chunk.start : chunk.end]) + again, again, chunk))
    best: list[tuple[tuple[int, int, int], Span]] = []
    for most, again, chunk in sorted(each, key=lambda one: -one[0]):
        full = len(best) == passages
        if full and most < best[-1][0][0]:
            break
        part = text[chunk.start : chunk.end]
        weight = sum(map(len, matcher.met(part))) + again
        if not full or weight >= best[-1][0][0]:
            own = (weight, len(matcher.spans(part)), -chunk.start)
            best = sorted([*best, (own, chunk)], reverse=True)[:passages]

    def told(one: Definition) -> int:
        return sum(map(len, matcher.called(one.path)))

    def passage(chunk: Span) -> Passage:
        part = text[chunk.start : chunk.end].lstrip("\n")
        start = chunk.end - len(part)
        end = start + len(part.rstrip())
        spans = matcher.spans(part)
        around = enclosing(found, start, end, text)
        if spans:  # narrower, where all that matches stands in one
            inner = enclosing(found, start + spans[0][0], start + spans[-1][1])
            if inner is not None and (around is None or _is_within(inner, around)):
                around = inner
        inside = [one for one, _ in named if chunk.start <= one.start < chunk.end]
        around = max([*filter(None, [around]), *inside], key=told, default=None)
        return Passage(
            start,
            chunk.end,
            part,
            tuple(spans),
            line=line_of(text, start),
            end_line=line_of(text, end),
            symbol=around.path if around else None,
        )

    first, *others = (passage(chunk) for n, (own, chunk) in enumerate(best) if own[0] or not n)
    return Preview(first, complete=len(first.text) == len(text), others=tuple(others))


def _is_within(inner: Definition, outer: Definition) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def after_heading(text: str, title: str, marks: Sequence[Sequence[int]] = ()) -> int:
    """Where ``text`` goes on after a first line that only repeats ``title``, as a heading or not,
    or after the head of a mail that holds none of the ``marks``.

    0 without such a line, and where nothing follows it.
    """
    mail = MAIL_HEAD.match(text)
    if mail is not None and mail.end() < len(text):
        return 0 if any(start < mail.end() for start, _ in marks) else mail.end()
    found = _FIRST_LINE.match(text)
    if found is None or not title.strip():
        return 0
    words = found[1].strip().rstrip("#").rstrip()
    said = {words.casefold(), heading_words(words).casefold()}
    return found.end() if title.strip().rstrip("…").casefold() in said else 0


def expands(position: int, result: Scored, deep: bool) -> bool:
    """Whether the result at ``position`` (from 0) shows its whole text without being asked."""
    return (
        position < (EXPAND_DEEP if deep else EXPAND_STANDARD)
        and (result.rerank_score or 0.0) > EXPAND_SCORE
        and len(result.opened.text) < EXPAND_CHARACTERS
    )


def _excerpt(result: Scored, text: str, matcher: Marker) -> tuple[int, int]:
    """About four lines: in the stretch the reranker or the vectors liked, where words are dense.

    Another stretch that holds more of what is asked is shown instead.
    """
    hits = matcher.hits(text)
    at = densest(hits, PREVIEW_CHARACTERS)
    liked = result.passage
    within = hits if liked is None else _within(hits, *liked)
    if len(within) < len(hits):
        inside = densest(within, PREVIEW_CHARACTERS)
        if at is not None and inside is not None:
            near_it, best = (
                len({said for _, _, said in _within(hits, n, n + PREVIEW_CHARACTERS)})
                for n in (inside, at)
            )
            at = at if best > near_it else inside
    if at is None:
        at = liked[0] if liked else 0
    head = MAIL_HEAD.match(text)
    if head is not None and 0 < at < head.end() and not matcher.spans(head[0]):
        at = head.end()  # not in the middle of a line of it
    return _from_a_beginning(text, at)


def _within(hits: Sequence[Hit], start: int, end: int) -> list[Hit]:
    return [hit for hit in hits if start <= hit[0] and hit[1] <= end]


def _from_a_beginning(text: str, wanted: int) -> tuple[int, int]:
    """The span from the start of the sentence, line or paragraph that ``wanted`` stands in.

    Where that lies too far back, from the next word a little before ``wanted``.
    """
    furthest = max(0, wanted - LEAD_CHARACTERS)
    starts = [furthest + found.end() for found in _BEGINNING.finditer(text[furthest:wanted])]
    if furthest == 0:
        starts.insert(0, 0)
    if not starts:
        return near(text, wanted - PREVIEW_CHARACTERS // 8, PREVIEW_CHARACTERS)
    start = starts[-1]
    end = min(len(text), start + PREVIEW_CHARACTERS)
    paragraph = text.rfind("\n\n", max(wanted, start + PREVIEW_CHARACTERS // 2), end)
    if paragraph > 0 and not _LAST_HEADING.search(text, start, paragraph):
        return start, paragraph
    sentences = [
        at.end()
        for at in _SENTENCE_END.finditer(text, start + SENTENCES_FROM, end)
        if not _NUMBER.fullmatch(text, text.rfind("\n", 0, at.end()) + 1, at.end())
        and not _LAST_HEADING.search(text, start, at.end())
    ]
    if sentences and end < len(text):
        return start, sentences[-1]
    return start, near(text, end - PREVIEW_CHARACTERS, PREVIEW_CHARACTERS)[1]
