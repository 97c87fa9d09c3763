"""A file of source code as its page shows it: numbered, coloured lines, and what hangs on it.

Boundary: for an asker who may read the file; what it imports and what depends on it are files that
they may read, too. Text enters HTML only through ``escape``, in :func:`.marked`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby, takewhile
from operator import itemgetter
from time import thread_time
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from memory_store.errors import NotFoundError
from memory_store.host import Change, CodeOutline, Dependant, MemoryStore, changes_in
from memory_store.records import Memory, base_type

from ..marks import Spans, joined, marked

CODE_TYPE = "code"
STEPS = 2  # of what depends on a file
COLOURED = 300_000  # characters: 0.3 s of lexing; a longer file has one colour
LONGEST_LINE = 5_000  # characters, in a file with colours
MOST_SECONDS = 1.0  # of a processor, for the colours
PREFIX = "hy-c-"  # of the classes of coloured words
LINE_END = Markup("\n")

Marks = Sequence[tuple[int, int]]
"""Where what was looked for stands in a text."""


class FileView(Struct, frozen=True):
    """A file, ready to print: ``lines`` are HTML, the first one is line 1."""

    outline: CodeOutline
    dependants: tuple[Dependant, ...]
    lines: Sequence[Markup]
    changes: Sequence[Change] = ()


def file_view(store: MemoryStore, memory: Memory, spans: Spans) -> FileView | None:
    """The page of a memory that is source code; ``None`` for another one. Work for a thread.

    ``spans`` finds what to mark in it.
    """
    if base_type(memory.type) != CODE_TYPE:
        return None
    try:
        outline = store.code.outline(memory.id)
        found = store.code.impact(memory.id, hops=STEPS)
    except NotFoundError:  # text that is called code, and was never read as a file
        return None
    lines = coloured_lines(memory.text, outline.language, spans(memory.text))
    return FileView(outline, found.files, lines, changes_in(memory.metadata))


def coloured_lines(text: str, language: str | None, marks: Marks = ()) -> Sequence[Markup]:
    """Each line as HTML, coloured where Pygments is installed and knows the language."""
    return [*map(Markup, coloured(text.removesuffix("\n"), marks, language).split("\n"))]


def coloured(text: str, marks: Marks, language: str | None) -> Markup:
    """``text`` as HTML, coloured as source code, with ``marks`` in it; nothing spans two lines."""
    parts, start, waiting = [], 0, deque(sorted(marks))
    for piece, style in coloured_pieces(text, language):
        for number, line in enumerate(piece.split("\n")):
            if number:
                parts.append(LINE_END)
                start += 1
            end = start + len(line)
            while waiting and waiting[0][1] <= start:
                waiting.popleft()
            here = [(max(a, start) - start, min(b, end) - start) for a, b in _before(end, waiting)]
            html = marked(line, here)
            shown = style and line
            parts.append(
                Markup('<span class="{}">{}</span>').format(style, html) if shown else html
            )
            start = end
    return joined(parts)


def _before(end: int, marks: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    return takewhile(lambda one: one[0] < end, marks)


def coloured_pieces(text: str, language: str | None) -> Sequence[tuple[str, str]]:
    """``text`` in pieces, each with its CSS class; empty: none.

    Many lexers take the square of the length of a text that is made to harm.
    """
    short = len(text) <= COLOURED and max(map(len, text.split("\n"))) <= LONGEST_LINE
    lexer = _lexer(language) if language and short else None
    if lexer is None:
        return [(text, "")]
    found, until = list[tuple[str, str]](), thread_time() + MOST_SECONDS
    for _, kind, piece in lexer.get_tokens_unprocessed(text):
        if thread_time() > until:
            return [(text, "")]
        found.append((_style(kind), piece))
    alike = groupby(found, key=itemgetter(0))
    pieces = [("".join(piece for _, piece in several), style) for style, several in alike]
    return pieces if "".join(piece for piece, _ in pieces) == text else [(text, "")]


@cache
def _style(kind: Any) -> str:
    from pygments.token import STANDARD_TYPES, Whitespace

    if kind in Whitespace:
        return ""
    while kind not in STANDARD_TYPES:
        kind = kind.parent
    return f"{PREFIX}{STANDARD_TYPES[kind]}" if STANDARD_TYPES[kind] else ""


@cache
def _lexer(language: str) -> Any:
    try:
        from pygments.lexers import get_lexer_by_name
        from pygments.util import ClassNotFound
    except ImportError:  # the extra ``code`` brings it
        return None
    try:
        return get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return None
