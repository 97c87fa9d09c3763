"""Markdown for a glance: a preview without its marks, and where each character of it went.

Boundary: works on text that its asker may read; returns text, never HTML.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain, groupby, pairwise
from typing import NamedTuple

HEADING = re.compile(r"^(?: {0,3}#{1,6}|\*{2,30})[ \t]+(?=\S)", re.MULTILINE)
"""Of Markdown, and of Org mode below its first level, which would be an item of a list."""
GAP = re.compile(r"\n(?:[ \t]*\n)+")  # after a heading: its words stand on a line of their own
TABLE_RULE = frozenset("|-: \t")
BARS = re.compile(r"(?:[ \t]*(?<!\\)\|)+[ \t]*")  # also around cells of a table that are empty
EMPTY_LINES = re.compile(r"\A(?:[ \t]*\n)+|(?<=\n)(?:[ \t]*\n){2,}")
UNMARKED = re.compile(r"[^\W_](?:[^\W_]|[ ,.()/-])*")
"""A line with no sign that could be a mark."""
RULES = (frozenset("-"), frozenset("*"), frozenset("_"))
EMPHASIS = re.compile(
    r"(?<![\w*\\])(?P<stars>\*{1,3})(?=[^\s*])[^*\n]{1,400}(?<=[^\s*])(?P=stars)(?![\w*])"
    r"|(?<![\w_\\])(?P<lines>_{1,3})(?=[^\s_])[^_\n]{1,400}(?<=[^\s_])(?P=lines)(?![\w_])"
    r"|(?<![\w=\\])(?P<signs>==)(?=[^\s=])(?:[^=`\n]|`[^`\n]{1,80}`){1,400}(?<=[^\s=])==(?![\w=])"
)
LINK = re.compile(
    r"!?\[(?P<said>[^\[\]\n]{0,400})\]\([^()\s]{0,1000}(?:[ \t]+[\"'][^\"\n]{0,200}[\"'])?\)"
)
_TARGET = r"(?:\([^()\s]{0,1000}(?:[ \t]+[\"'][^\"\n]{0,200}[\"'])?\)|\[[^\[\]\n]{0,200}\])"
BADGE = re.compile(rf"\[!\[[^\[\]\n]{{0,400}}\]{_TARGET}\]{_TARGET}")
"""A picture that is a link: as a rule it says what a program made of a project."""
REFERENCE = re.compile(r"(?<![\w\]\\])!?\[(?P<said>[^\[\]\n]{1,400})\]\[[^\[\]\n]{0,200}\]")
DEFINITION = re.compile(
    r"^ {0,3}\[[^\[\]\n^]{1,200}\]:[ \t]+[^\s\[]\S{0,2000}"
    r"(?:[ \t]+[\"'(][^\n]{0,400})?[ \t]*(?:\n|\Z)",
    re.MULTILINE,
)
"""``[name]: address``, which the links with that name lead to."""
WIKILINK = re.compile(
    r"!?\[\[(?P<target>[^\[\]|#\n]{0,400})(?P<hash>#?)(?P<place>[^\[\]|\n]{0,400})"
    r"(?:\|(?P<said>[^\[\]\n]{1,400}))?\]\]"
)
CUT_LINK = re.compile(
    r"!?\[(?:\[(?=[^\s\[\]])(?:[^\[\]|\n]{1,400}\|)?(?P<words>[^\[\]|\n]{0,400})"
    r"|(?P<said>[^\[\]\n]{0,400})\]\([^()\s]{0,1000})\Z"
)
"""A link that a preview ends in the middle of."""
QUOTE = re.compile(r"^ {0,3}(?:>[ \t]?){1,9}(?:\[!\w{1,40}\][-+]?[ \t]*)?", re.MULTILINE)
COMMENT = re.compile(r"<!--.{0,2000}?-->|%%.{0,2000}?%%", re.DOTALL)
CODE = re.compile(
    r"^ {0,3}(?P<fence>`{3,20}|~{3,20})[^`\n]*\n(?P<block>(?:(?! {0,3}(?P=fence)).*(?:\n|\Z))*)"
    r"(?: {0,3}(?P=fence).*(?:\n|\Z))?"
    r"|(?<!`)(?P<ticks>``?)(?P<inline>[^`\n]{1,200})(?P=ticks)(?![`_])",
    re.MULTILINE,
)
"""A fenced block, or what stands in backticks."""
ATTRIBUTES = re.compile(r"(?<![ \t])[ \t]*\{:?[ \t]*[#.][^\W\d][^{}\n]{0,400}\}")
"""An attribute list, ``{ #anchor .class }``, as Python-Markdown, Pandoc and kramdown read it."""
BLOCK_NAME = re.compile(
    r"(?:(?<=\S)[ \t]{1,20}|^)\^(?=[\d-]{0,100}[^\W\d]|\d{6}[ \t]{0,20}$)[\w-]{1,100}[ \t]{0,20}$",
    re.MULTILINE,
)
"""``^name`` at the end of a block, by which Obsidian's links name it."""
ESCAPE = re.compile(r"\\(?=[\[\]_*#`<>~|])")
"""What keeps a sign of Markdown from being one: editors write it before brackets and in names."""
RST_LINE = re.compile(
    r"^(?:([=~^\"'+])\1{2,}[ \t]*(?:\n|\Z)|\.\. _[^:\n]{1,200}:.*(?:\n|\Z)"
    r"|[ \t]*\.\. [\w:+.-]{1,60}::[ \t]*)",
    re.MULTILINE,
)
"""What reStructuredText says to programs: the line under a title, a target, a directive's name."""
RST_ROLE = re.compile(r"(?<![\w:]):[a-zA-Z][\w:+.-]{0,40}:(?=`[^`\n])")
RST_LINK = re.compile(r"`(?P<said>[^`<\n]{0,400}?)[ \t]{0,4}(?:<[^`<>\n]{1,1000}>)?`__?(?!\w)")
ORG_LINE = re.compile(
    r"^(?:[ \t]*#\+[a-z][\w-]{0,40}(?::|[ \t]|$).*(?:\n|\Z)"
    r"|[ \t]*:(?:properties|logbook|clock):[ \t]*\n(?:(?![ \t]*:end:).*\n){0,40}"
    r"[ \t]*:end:[ \t]*(?:\n|\Z))",
    re.MULTILINE | re.IGNORECASE,
)
"""What Org mode says to programs: its keywords and drawers."""
ORG_LINK = re.compile(r"\[\[[^\[\]\n]{1,1000}\]\[(?P<said>[^\[\]\n]{1,400})\]\]")
GONE = (
    BADGE,
    DEFINITION,
    COMMENT,
    ATTRIBUTES,
    BLOCK_NAME,
    QUOTE,
    ESCAPE,
    RST_LINE,
    RST_ROLE,
    ORG_LINE,
)
"""Marks that leave nothing; reStructuredText's lines under titles Markdown has, too."""
DOUBLE_TICKS = re.compile(r"(?<!`)(`{2,4}) ?([^`\n]{1,400}?) ?\1(?!`)")
TASK = re.compile(r"^[ \t]*(?P<mark>[-*+] \[(?P<box>[ xX])\] )(?=\S)", re.MULTILINE)
STARTS = re.compile(
    r"\s*(?:[-*+]\s|\d{1,9}[.)]\s|#{1,6}\s|#\+\w|\*{2,30}\s|:\w{1,40}:\s*\Z|>|`{3}|~{3}|\|"
    r"|[=~^\"'+]{3,}\s*\Z)| {4}|\t"
)
"""How a line begins that does not go on with the paragraph before it."""

PICTURE = re.compile(r"\.(?:avif|bmp|gif|jpe?g|png|svg|webp)\Z", re.IGNORECASE)
"""How the name of a picture ends: embedded, it says nothing to a reader of words."""

ITEM = re.compile(r"(?:[-*+•☐☑]|\d{1,9}[.)])[ \t]")
"""How an item of a list begins, without the blanks before it."""
WRAPPED = 60  # characters: editors wrap at 72 to 100, people who break lines on purpose earlier
Span = tuple[int, int]


class Edit(NamedTuple):
    """A piece of a text to be replaced."""

    start: int
    end: int
    text: str = ""


@dataclass(frozen=True)
class Plain:
    """A text without its marks; ``edits`` are those that made it, in order, none overlapping.

    Where they were made to what others had made, ``first`` is that.
    """

    text: str
    edits: Sequence[Edit]
    first: Plain | None = None

    def place(self, position: int) -> int:
        """Where a position of the original is now; within what was cut, where that was."""
        position = self.first.place(position) if self.first is not None else position
        before = bisect_right(self._starts, position - 1)
        if not before:
            return position
        moved, last = self._moved[before - 1], self.edits[before - 1]
        if position < last.end:
            return last.start + moved + min(position - last.start, len(last.text))
        return position + moved + len(last.text) - (last.end - last.start)

    @cached_property
    def _starts(self) -> Sequence[int]:
        return [edit.start for edit in self.edits]

    @cached_property
    def _moved(self) -> Sequence[int]:
        """By how much what stands before each edit has moved it."""
        grown = (len(edit.text) - (edit.end - edit.start) for edit in self.edits)
        return list(accumulate(grown, initial=0))


def without_marks(text: str, highlights: Iterable[Span]) -> tuple[str, list[Span]]:
    """``text`` as words alone, for where there is no other type for code, and its highlights.

    The marks around code go too; what stands between them does not change.
    """
    coded = list(CODE.finditer(text))
    within = [found.span("block" if found["inline"] is None else "inline") for found in coded]
    around = [
        edit
        for found, (start, end) in zip(coded, within, strict=True)
        for edit in (Edit(found.start(), start), Edit(end, found.end()))
    ]
    plain = plainly(text, within, around)
    return plain.text, [(plain.place(start), plain.place(end)) for start, end in highlights]


def heading_words(heading: str) -> str:
    """A heading without its marks and its attribute list. One of marks alone stays as it is."""
    if UNMARKED.fullmatch(heading):
        return heading.strip()
    coded = DOUBLE_TICKS.sub(r"`\2`", ATTRIBUTES.sub("", heading).strip())
    return without_marks(coded, ())[0].strip() or heading


def plainly(text: str, kept: Iterable[Span] = (), also: Iterable[Edit] = ()) -> Plain:
    """``text`` without the marks of headings, emphasis, links, quotes and tables, and without
    escapes, comments and attribute lists; wrapped lines are joined, and of empty lines in a
    row one stays, of those at the beginning none.

    Lists keep their lines, tasks have a box, and nothing of the ``kept`` spans (code) changes,
    which do not overlap. ``also`` are edits of the caller's.
    """
    untouched = sorted(kept)
    marks = (_gone, _tasks, _headings, _links, _rst_links, _tables, _emphasis, _joints)
    edits = sorted({*also, *chain.from_iterable(found(text) for found in marks)})
    plain = _edited(text, edits, untouched)
    if not EMPTY_LINES.search(plain.text):
        return plain
    moved = [(plain.place(start), plain.place(end)) for start, end in untouched]
    found = EMPTY_LINES.finditer(plain.text)
    gaps = [Edit(*lines.span(), "\n" if lines.start() else "") for lines in found]
    return replace(_edited(plain.text, gaps, moved), first=plain)


def _edited(text: str, edits: Iterable[Edit], untouched: Sequence[Span]) -> Plain:
    """``text`` with those edits made that are not within what stays as it is, nor within the
    edit before; both are in order."""
    passed = 0  # how many of them end before the edit
    made: list[Edit] = []
    parts: list[str] = []
    position = 0
    for edit in edits:
        while passed < len(untouched) and untouched[passed][1] <= edit.start:
            passed += 1
        within = passed < len(untouched) and untouched[passed][0] < edit.end
        if within or edit.start < position:
            continue
        parts += [text[position : edit.start], edit.text]
        position = edit.end
        made.append(edit)
    return Plain("".join([*parts, text[position:]]), made)


def _headings(text: str) -> Iterator[Edit]:
    for found in HEADING.finditer(text):
        yield Edit(*found.span())
        end = text.find("\n", found.end())
        gap = GAP.match(text, end) if end >= 0 else None
        if gap is not None:
            yield Edit(*gap.span(), "\n")


def _gone(text: str) -> Iterator[Edit]:
    yield from (Edit(*found.span()) for marks in GONE for found in marks.finditer(text))


def _tasks(text: str) -> Iterator[Edit]:
    for found in TASK.finditer(text):
        yield Edit(*found.span("mark"), "☐ " if found["box"] == " " else "☑ ")


def _links(text: str) -> Iterator[Edit]:
    """Addresses go, and what a link says stays; a link to a section of a note names both. Embedded
    pictures go."""
    for found in chain(*(link.finditer(text) for link in (LINK, REFERENCE, ORG_LINK))):
        yield Edit(found.start(), found.start("said"))
        yield Edit(found.end("said"), found.end())
    if cut := CUT_LINK.search(text, max(0, text.rfind("[") - 2)):
        said = "words" if cut["said"] is None else "said"
        yield Edit(cut.start(), cut.start(said))
        yield Edit(cut.end(said), cut.end())
        if said == "words" and (place := text.find("#", cut.start(said))) > cut.start(said):
            yield Edit(place, place + 1, " › ")
    for found in WIKILINK.finditer(text):
        if found[0][0] == "!" and PICTURE.search(found["target"]):
            yield Edit(*found.span())
            continue
        start, end = found.span("said")
        if start < 0:
            start, end = found.start("target"), found.end("place")
            if found["place"].startswith("^"):  # a block, by a name that says nothing
                end = found.end("target")
            elif found["hash"]:
                yield Edit(*found.span("hash"), " › " if found["target"] else "")
        yield Edit(found.start(), start)
        yield Edit(end, found.end())


def _rst_links(text: str) -> Iterator[Edit]:
    """What a link of reStructuredText says stays."""
    for found in RST_LINK.finditer(text):
        if found["said"]:
            yield Edit(found.start(), found.start("said"))
            yield Edit(found.end("said"), found.end())


def _tables(text: str) -> Iterator[Edit]:
    """The lines under a table's head and between parts go, and so do the bars around a row. Between
    its cells a dot stands. The first or last row may be cut."""
    start = 0
    for line in text.split("\n"):
        end = start + len(line)
        cells = line.strip()
        table_rule = "-" in cells and "|" in cells and TABLE_RULE.issuperset(cells)
        if table_rule or (len(cells) > 2 and frozenset(cells) in RULES):
            yield Edit(start, min(end + 1, len(text)))
        elif len(cells) > 2 and (
            (cells[0] == "|" and "|" in cells[1:]) or (not start and cells[-1] == "|")
        ):
            for bars in BARS.finditer(text, start, end):
                inside = bars.start() > start and bars.end() < end
                yield Edit(*bars.span(), " · " if inside else "")
        start = end + 1


def _emphasis(text: str) -> Iterator[Edit]:
    for found in EMPHASIS.finditer(text):
        width = len(found["stars"] or found["lines"] or found["signs"])
        yield Edit(found.start(), found.start() + width)
        yield Edit(found.end() - width, found.end())


def _joints(text: str) -> Iterator[Edit]:
    """The newlines where a long line was wrapped, which become spaces.

    Short lines stay apart, as in a list or an address: the next word would have had room. The first
    line of all may be cut, so that it looks short.
    """
    start = 0
    for filled, paragraph in groupby(text.split("\n"), lambda line: bool(line.strip())):
        lines = list(paragraph)
        widest = max(map(len, lines))
        for before, line in pairwise(lines):
            first, start = start == 0, start + len(before) + 1
            if not filled or widest < WRAPPED or STARTS.match(line) or HEADING.match(before):
                continue
            words = line.lstrip()
            full = len(before) + 1 + len(words.split(None, 1)[0]) > widest
            if full or max(len(before), first * len(line)) >= WRAPPED:
                yield Edit(start - 1, start + len(line) - len(words), " ")
        start += len(lines[-1]) + 1
