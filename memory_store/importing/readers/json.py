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
from memory_store.importing.source_file import Broken, Item, Limits, Reader, SourceFile
from memory_store.text.plain_json import refuse_constant

MAX_ROW_TOKENS = 200_000  # strings, brackets and commas of one row; a row of prose has tens
ROW_LEVELS = 2  # the row itself, and its field `metadata`, besides what that may hold
ROW_LISTS = ("rows", "memories")  # keys of an object that holds the rows (Datasette's JSON, ours)
MEM0_LIST, MEM0_FIELDS = "results", 2  # of an answer of mem0; `relations` may be beside it

# Possessive, so an unclosed string costs one pass; then the lone quote matches and ends the scan.
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["\[\]{},]', re.S)
_SPACE = re.compile(r"[ \t\n\r]*")
_ARRAY = re.compile(rb"\s*\[\s*[{\]]")  # but no [link] and no [[wiki link]]
_OBJECT = re.compile(rb"\s*\{\s*[\"}]")  # but no {{template}}


def read(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The memories of a document: an array, ``{"rows": […]}``, or one object that is the row."""
    yield from items_of(file, _rows(file.text(limits), limits.depth))


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


def _rows(text: str, depth: int) -> Iterator[Row | Broken]:
    start = _skip_space(text, 0)
    if text[start : start + 1] == "{":
        yield from _rows_of_object(text, start, depth)
    elif text[start : start + 1] == "[":
        yield from _rows_of_array(text, start, depth)
    else:
        yield Broken(1 + text.count("\n", 0, start), "neither a JSON array nor an object", True)


def _rows_of_object(text: str, start: int, depth: int) -> Iterator[Row | Broken]:
    line = 1 + text.count("\n", 0, start)
    end, problem = _end_of_value(text, start, depth)
    if problem:
        yield Broken(line, f"{problem}; write many rows as an array or NDJSON", True)
        return
    row = _row(text[start:end], line, 1)
    after = _after(text, end, "object")
    if after or isinstance(row, Broken):
        yield after or row
        return
    names = (*ROW_LISTS, MEM0_LIST) if len(row.values) <= MEM0_FIELDS else ROW_LISTS
    lists = (row.values[key] for key in names if isinstance(row.values.get(key), list))
    for number, value in enumerate(next(lists, [row.values]), start=1):
        yield _checked(value, line, number)


def _checked(value: Any, line: int, number: int) -> Row | Broken:
    """A value as a row, where it is one."""
    if isinstance(value, dict):
        return Row(line, number, value)
    return Broken(line, f"row {number} is not an object")


def _rows_of_array(text: str, start: int, depth: int) -> Iterator[Row | Broken]:
    position, line, number = _skip_space(text, start + 1), 1, 0
    counted = 0
    mark = text[position : position + 1]
    while mark != "]":
        line += text.count("\n", counted, position)
        counted = position
        number += 1
        end, problem = _end_of_value(text, position, depth)
        if problem:
            yield Broken(line, f"row {number}: {problem}", True)
            return
        yield _row(text[position:end], line, number)
        position = _skip_space(text, end)
        mark = text[position : position + 1]
        if mark not in ("]", ","):
            line += text.count("\n", counted, position)
            yield Broken(line, f"a comma or ] must follow row {number}", True)
            return
        if mark == ",":
            position = _skip_space(text, position + 1)
    if after := _after(text, position + 1, "array"):
        yield after


def _after(text: str, position: int, kind: str) -> Broken | None:
    rest = _skip_space(text, position)
    if rest == len(text):
        return None
    return Broken(1 + text.count("\n", 0, rest), f"text after the JSON {kind}", True)


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
            return start, "a string is not closed"
        if depth > most + ROW_LEVELS:
            return start, f"nested over {most + ROW_LEVELS} levels"
        if tokens > MAX_ROW_TOKENS:
            return start, f"over {MAX_ROW_TOKENS} values in one row"
    return start, "the JSON ends too early"


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


READER = Reader("json", (".json",), read, sniff, rows=True)
LINES = Reader("ndjson", (".ndjson", ".jsonl"), read_lines, holds_lines, rows=True, streamed=True)
