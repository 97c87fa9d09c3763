"""JSON and NDJSON: one memory per object, one failure per object that is not one.

Boundary: the documents may come from a stranger. An array is cut into its rows by a scan that
keeps no values, so depth and size are known before anything is built, and a broken row costs only
itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from memory_store.importing.front_matter import MAX_DEPTH

MAX_ROW_TOKENS = 200_000  # strings, brackets and commas of one row; a row of prose has tens
MAX_NESTING = MAX_DEPTH + 2  # the row itself, and its field `metadata`
ROW_LISTS = ("rows", "memories")  # keys of an object that holds the rows (Datasette's JSON, ours)

# Possessive, so an unclosed string costs one pass; then the lone quote matches and ends the scan.
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["\[\]{},]', re.S)
_SPACE = re.compile(r"[ \t\n\r]*")


class BrokenRow(Struct, frozen=True):
    """A row that cannot be read. ``line`` counts from 1; ``last`` when nothing after it can be."""

    line: int
    reason: str
    last: bool = False


class Row(Struct, frozen=True):
    """One JSON object, its line, and its number among the rows, both from 1."""

    line: int
    number: int
    values: dict[str, Any]


def rows_of_document(text: str) -> Iterator[Row | BrokenRow]:
    """The rows of a JSON document: an array, ``{"rows": […]}``, or one object that is the row."""
    start = _skip_space(text, 0)
    if text[start : start + 1] == "{":
        yield from _rows_of_object(text, start)
    elif text[start : start + 1] == "[":
        yield from _rows_of_array(text, start)
    else:
        yield BrokenRow(1 + text.count("\n", 0, start), "neither a JSON array nor an object", True)


def row_of_line(line: str, line_number: int, number: int) -> Row | BrokenRow:
    """One NDJSON line as a row."""
    if line.count("[") + line.count("{") > MAX_NESTING or line.count(",") > MAX_ROW_TOKENS // 4:
        _, problem = _end_of_value(line, _skip_space(line, 0))
        if problem:
            return BrokenRow(line_number, problem)
    return _row(line, line_number, number)


def _rows_of_object(text: str, start: int) -> Iterator[Row | BrokenRow]:
    line = 1 + text.count("\n", 0, start)
    end, problem = _end_of_value(text, start)
    if problem:
        yield BrokenRow(line, f"{problem}; write many rows as an array or NDJSON", True)
        return
    row = _row(text[start:end], line, 1)
    rest = _skip_space(text, end)
    if rest < len(text):
        yield BrokenRow(1 + text.count("\n", 0, rest), "text after the JSON object", True)
        return
    if isinstance(row, BrokenRow):
        yield row
        return
    for key in ROW_LISTS:
        if isinstance(row.values.get(key), list):
            yield from _rows_of_list(row.values[key], line)
            return
    yield row


def _rows_of_list(values: list[Any], line: int) -> Iterator[Row | BrokenRow]:
    for number, value in enumerate(values, start=1):
        if isinstance(value, dict):
            yield Row(line, number, value)
        else:
            yield BrokenRow(line, f"row {number} is not an object")


def _rows_of_array(text: str, start: int) -> Iterator[Row | BrokenRow]:
    position, line, number = _skip_space(text, start + 1), 1, 0
    counted = 0
    if text[position : position + 1] == "]":
        yield from _after(text, position + 1)
        return
    while True:
        line += text.count("\n", counted, position)
        counted = position
        number += 1
        end, problem = _end_of_value(text, position)
        if problem:
            yield BrokenRow(line, f"row {number}: {problem}", True)
            return
        yield _row(text[position:end], line, number)
        position = _skip_space(text, end)
        mark = text[position : position + 1]
        if mark == "]":
            yield from _after(text, position + 1)
            return
        if mark != ",":
            line += text.count("\n", counted, position)
            yield BrokenRow(line, f"a comma or ] must follow row {number}", True)
            return
        position = _skip_space(text, position + 1)


def _after(text: str, position: int) -> Iterator[BrokenRow]:
    rest = _skip_space(text, position)
    if rest < len(text):
        yield BrokenRow(1 + text.count("\n", 0, rest), "text after the JSON array", True)


def _end_of_value(text: str, start: int) -> tuple[int, str | None]:
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
        if depth > MAX_NESTING:
            return start, f"nested over {MAX_NESTING} levels"
        if tokens > MAX_ROW_TOKENS:
            return start, f"over {MAX_ROW_TOKENS} values in one row"
    return start, "the JSON ends too early"


def _row(text: str, line: int, number: int) -> Row | BrokenRow:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        return BrokenRow(line + error.lineno - 1, f"not JSON: {error.msg} (column {error.colno})")
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        return BrokenRow(line, f"not JSON: {reason}")
    if not isinstance(value, dict):
        return BrokenRow(line, f"row {number} is not an object")
    return Row(line, number, value)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _skip_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position
