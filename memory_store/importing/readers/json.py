"""JSON and NDJSON: one memory an object, one failure for each object that is not one.

Boundary: the documents may come from a stranger. An array is cut into its rows by a scan that
keeps no values, so depth and size are known before anything is built, and a broken row costs only
itself.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from memory_store.importing.readers.rows import Row, items_of
from memory_store.importing.source_file import (
    Broken,
    Item,
    LeftOutError,
    Limits,
    Reader,
    SourceFile,
    UnreadableError,
    too_large,
)
from memory_store.text.plain_json import refuse_constant

MAX_ROW_TOKENS = 500_000  # strings, brackets and commas of one row; a turn of a chat has hundreds
ROW_LEVELS = 2  # the row itself, and its field `metadata`, besides what that may hold
ROW_LISTS = ("rows", "memories")  # keys of an object that holds the rows (Datasette's JSON, ours)
MEM0_LIST, MEM0_FIELDS = "results", 2  # of an answer of mem0; `relations` may be beside it

APPLE_NOTES = "notes"

UNCLOSED, CUT_OFF = "a string is not closed", "the JSON ends too early"
UNFINISHED = (UNCLOSED, CUT_OFF)  # what may go on in what is still to be read

# Possessive, so an unclosed string costs one pass; then the lone quote matches and ends the scan.
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["\[\]{},]', re.S)
_SPACE = re.compile(r"[ \t\n\r]*")
_ARRAY = re.compile(rb"\s*\[\s*[{\]]")  # but no [link] and no [[wiki link]]
_OBJECT = re.compile(rb"\s*\{\s*[\"}]")  # but no {{template}}


def read(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The memories of a document: an array, ``{"rows": […]}``, or one object that is the row.

    Of an array one row is in memory at a time: it may be of any size.
    """
    yield from items_of(file, _rows(_Document(file.pieces(), limits)))


def read_lines(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The memories of the lines, one line in memory at a time."""
    yield from items_of(
        file,
        (
            line if isinstance(line, Broken) else _row_of_line(line, number, limits.depth)
            for number, line in file.lines()
            if isinstance(line, Broken) or line.strip()
        ),
    )


def sniff(head: bytes) -> bool:
    """Whether it begins as an array of objects, or as one object that ends the text."""
    start = head.removeprefix(codecs.BOM_UTF8)
    return bool(_ARRAY.match(start) or _OBJECT.match(start)) and not holds_lines(head)


def holds_lines(head: bytes) -> bool:
    """Whether the first line is an object, and another line follows: NDJSON."""
    start = head.removeprefix(codecs.BOM_UTF8)
    if not _OBJECT.match(start):
        return False
    first, _, rest = start.strip().partition(b"\n")
    return bool(rest) and first.rstrip().endswith(b"}")


def _row_of_line(line: str, number: int, depth: int) -> Row | Broken:
    """One NDJSON line as a row."""
    nested = line.count("[") + line.count("{") > depth + ROW_LEVELS
    if nested or line.count(",") > MAX_ROW_TOKENS // 4:
        _, problem = _end_of_value(line, _skip_space(line, 0), depth)
        if problem:
            return Broken(number, problem)
    return _row(line, number, number)


class _Document:
    """A JSON document from a place on, of which one value at a time is in memory.

    ``line`` counts from 1.
    """

    def __init__(self, pieces: Iterator[str], limits: Limits) -> None:
        self.line = 1
        self._pieces, self._limits = pieces, limits
        self._text, self._at = "", 0

    def mark(self) -> str:
        """The next character that is no space, which is next from now on; empty at the end."""
        while True:
            self._go_to(_skip_space(self._text, self._at))
            if self._at < len(self._text) or not self._grow():
                return self._text[self._at : self._at + 1]

    def skip(self) -> None:
        """Go on behind the next character."""
        self._go_to(self._at + 1)

    def value(self) -> tuple[str, str | None]:
        """The value that is next, or what is wrong with it. Goes on behind it."""
        while True:
            end, problem = _end_of_value(self._text, self._at, self._limits.depth)
            so_far = len(self._text) if problem in UNFINISHED else end
            if so_far - self._at > self._limits.bytes:
                raise UnreadableError(too_large(self._limits), self.line if self.line > 1 else None)
            if problem not in UNFINISHED or not self._grow():
                break
        text = self._text[self._at : end]
        self._go_to(end)
        return text, problem

    def _go_to(self, place: int) -> None:
        self.line += self._text.count("\n", self._at, place)
        self._at = place

    def _grow(self) -> bool:
        """Read as much again as there is; whether there was more."""
        left = self._text[self._at :]
        more, length = [left], 0
        while length <= len(left) and (piece := next(self._pieces, None)) is not None:
            more.append(piece)
            length += len(piece)
        self._text, self._at = "".join(more), 0
        return length > 0


def _rows(document: _Document) -> Iterator[Row | Broken]:
    mark = document.mark()
    if not mark:
        raise LeftOutError("empty")
    if mark == "{":
        yield from _rows_of_object(document)
    elif mark == "[":
        yield from _rows_of_array(document)
    else:
        yield Broken(document.line, "neither a JSON array nor an object", True)


def _rows_of_object(document: _Document) -> Iterator[Row | Broken]:
    line = document.line
    text, problem = document.value()
    if problem:
        yield Broken(line, f"{problem}; write many rows as an array or NDJSON", True)
        return
    row = _row(text, line, 1)
    after = _after(document, "object")
    if after or isinstance(row, Broken):
        yield after or row
        return
    names = (*ROW_LISTS, MEM0_LIST) if len(row.values) <= MEM0_FIELDS else ROW_LISTS
    lists = (row.values[key] for key in names if isinstance(row.values.get(key), list))
    notes = row.values.get(APPLE_NOTES)  # by their numbers, as apple_cloud_notes_parser gives them
    apple = [*notes.values()] if isinstance(notes, dict) and "folders" in row.values else []
    for number, value in enumerate(apple or next(lists, [row.values]), start=1):
        yield _checked(value, line, number)


def _checked(value: Any, line: int, number: int) -> Row | Broken:
    """A value as a row, where it is one."""
    if isinstance(value, dict):
        return Row(line, number, value)
    return Broken(line, f"row {number} is not an object")


def _rows_of_array(document: _Document) -> Iterator[Row | Broken]:
    document.skip()
    number, mark = 0, document.mark()
    while mark != "]":
        number += 1
        line = document.line
        text, problem = document.value()
        if problem:
            yield Broken(line, f"row {number}: {problem}", True)
            return
        yield _row(text, line, number)
        mark = document.mark()
        if mark not in ("]", ","):
            yield Broken(document.line, f"a comma or ] must follow row {number}", True)
            return
        if mark == ",":
            document.skip()
            document.mark()
    document.skip()
    if after := _after(document, "array"):
        yield after


def _after(document: _Document, kind: str) -> Broken | None:
    return Broken(document.line, f"text after the JSON {kind}", True) if document.mark() else None


def _end_of_value(text: str, start: int, most: int) -> tuple[int, str | None]:
    """Where the value at ``start`` ends, found without building it; or what is wrong with it."""
    depth = 0
    for tokens, found in enumerate(_TOKEN.finditer(text, start)):
        token = found[0]
        if token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
            if depth <= 0:
                return (found.end() if depth == 0 else found.start()), None
        elif token == "," and depth == 0:
            return found.start(), None
        elif token == '"':
            return start, UNCLOSED
        if depth > most + ROW_LEVELS:
            return start, f"nested over {most + ROW_LEVELS} levels"
        if tokens > MAX_ROW_TOKENS:
            return start, f"over {MAX_ROW_TOKENS} values in one row"
    return start, CUT_OFF


def _row(text: str, line: int, number: int) -> Row | Broken:
    try:
        value = json.loads(text, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        return Broken(line + error.lineno - 1, f"not JSON: {error.msg} (column {error.colno})")
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        return Broken(line, f"not JSON: {reason}")
    return _checked(value, line, number)


def _skip_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


READER = Reader("json", (".json",), read, sniff, rows=True, streamed=True, label="JSON")
LINES = Reader(
    *("ndjson", (".ndjson", ".jsonl"), read_lines, holds_lines),
    rows=True,
    streamed=True,
    label="NDJSON",
)
