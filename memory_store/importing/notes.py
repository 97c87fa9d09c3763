"""What a note says about itself in its Markdown: its first heading and its ``#hashtags``.

Both skip code: a comment in a shell listing is no heading, and ``#include`` there no topic. Both
skip attribute lists, too: the ``{ #anchor }`` of a heading is neither a topic nor in the title.
"""

from __future__ import annotations

import io
import re
from bisect import bisect_right
from collections.abc import Iterator

from memory_store.plain_text import ATTRIBUTES, heading_words

MAX_TITLE_CHARACTERS = 200  # of a title that was derived, not given
MAX_HASHTAG_CHARACTERS = 100
FIRST_SYMBOL = 0x2190  # arrows, signs and emoji begin here: one of them alone is a tag too

_FENCE = re.compile(r"\s*(?:>\s*)*(?:[-*+]\s+|\d{1,9}[.)]\s+)?(`{3,}(?=[^`]*\Z)|~{3,})")
_LIST_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])(?:\s|\Z)")
_UNDERLINE = re.compile(r" {0,3}=+\s*\Z")

# Obsidian's rule, written anew: letters of any script, digits, emoji, and _ - /; no punctuation.
_HASHTAG = re.compile(
    r"(?<![^\s(|、。，（])(?<!\]\()#"
    r"([^\s!-,.:-@\[-^`{-~\u00a0-\u00bf\u2000-\u200b\u200e-\u206f\u3000-\u303f\uff00-\uff0f\uff1a-\uff20]+)"
)
_MAYBE_HASHTAG = re.compile(r"#[^\s#]")  # unlike a heading; every hashtag has it
_COLOUR = re.compile(r"[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8}", re.I)
_BACKTICKS = re.compile(r"`+")


def first_heading(text: str) -> str | None:
    """The first level-one heading outside code, in either Markdown style, without its marks."""
    if "#" not in text and "\n=" not in text:
        return None
    before = ""
    for line in _lines_outside_code(text):
        if heading := _level_one(line):
            return shorten(heading_words(heading))
        if _UNDERLINE.match(line) and before.strip() and not _LIST_ITEM.match(before):
            return shorten(heading_words(before.strip()))
        before = line
    return None


def hashtags(text: str, limit: int) -> tuple[str, ...]:
    """The first ``limit`` ``#hashtags`` of a Markdown text, each once, without their ``#``.

    Not taken: headings, code, anchors and URLs, pure numbers (``#42``) and colours (``#ff8800``).
    """
    found: dict[str, str] = {}
    if _MAYBE_HASHTAG.search(text) is None:
        return ()
    for line in _lines_outside_code(text):
        if "#" not in line:
            continue
        words = ATTRIBUTES.sub(" ", _without_code_spans(line))
        for match in _HASHTAG.finditer(words):
            topic = match[1].strip("-/_")
            if _is_topic(topic):
                found.setdefault(topic.casefold(), topic)
        if len(found) >= limit:
            break
    return tuple(found.values())[:limit]


def shorten(title: str) -> str:
    """A derived title, cut at a word when it is really a paragraph."""
    if len(title) <= MAX_TITLE_CHARACTERS:
        return title
    return title[:MAX_TITLE_CHARACTERS].rsplit(" ", 1)[0] + "…"


def _level_one(line: str) -> str:
    """The text of ``# Heading #``; empty for any other line. No regex: lines may be huge."""
    if _is_indented(line) or not line.lstrip().startswith(("# ", "#\t")):
        return ""
    title = line.strip()[1:].strip()
    without_closing = title.rstrip("#")
    if not without_closing or without_closing[-1].isspace():
        return without_closing.strip()
    return title


def _is_topic(word: str) -> bool:
    if not 0 < len(word) <= MAX_HASHTAG_CHARACTERS:
        return False
    if not any(c.isalpha() or ord(c) >= FIRST_SYMBOL for c in word):
        return False
    if _COLOUR.fullmatch(word):
        return not any(c.isdigit() for c in word) and len(set(word.lower())) > 1
    return True


def _lines_outside_code(text: str) -> Iterator[str]:
    """Lines that are in no fenced block and no indented one."""
    fence, in_list, after_blank = "", False, True
    for ended_line in io.StringIO(text):  # lazily: a text may be millions of lines
        line = ended_line.removesuffix("\n")
        if not line or line.isspace():
            if not fence and not after_blank:
                after_blank = True
                yield ""
            continue
        if ("```" in line or "~~~" in line) and (found := _FENCE.match(line)):
            mark = found[1]
            if not fence:
                fence = mark
            elif mark[0] == fence[0] and len(mark) >= len(fence) and _closes(line):
                fence = ""
            after_blank = False
            continue
        if fence:
            continue
        if _is_indented(line) and after_blank and not in_list:
            continue  # an indented block goes on, so after_blank stays
        after_blank = False
        in_list = bool(_LIST_ITEM.match(line)) or (in_list and line[0] in " \t")
        yield line


def _closes(line: str) -> bool:
    return not line.strip(" \t>`~")


def _is_indented(line: str) -> bool:
    return line.startswith(("    ", "\t"))


def _without_code_spans(line: str) -> str:
    """The line with each ``code`` span blanked: a run of backticks up to the next equal run."""
    if "`" not in line:
        return line
    runs = [(m.start(), m.end()) for m in _BACKTICKS.finditer(line)]
    starts_by_length: dict[int, list[int]] = {}
    for start, end in runs:
        starts_by_length.setdefault(end - start, []).append(start)
    pieces, position = [], 0
    for start, end in runs:
        if start < position:
            continue  # within the span just blanked
        equal = starts_by_length[end - start]
        following = bisect_right(equal, start)
        if following < len(equal):
            pieces += [line[position:start], " "]
            position = equal[following] + end - start
    return "".join([*pieces, line[position:]])
