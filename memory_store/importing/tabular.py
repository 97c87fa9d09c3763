"""CSV and TSV: one memory per row, one failure per row that does not fit the header."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from msgspec import Struct

MAX_CELL_CHARACTERS = 16 * 1024 * 1024  # the csv module's own limit of 131,072 refuses long notes


class BrokenTable(Struct, frozen=True):
    """A row, or from there on the whole table, that cannot be read. ``line`` counts from 1."""

    line: int
    reason: str


class TableRow(Struct, frozen=True):
    """One row by column name. ``number`` counts rows from 1."""

    line: int
    number: int
    values: dict[str, str]


def rows_of_table(
    lines: Iterable[str], *, tabs: bool, columns: tuple[str, ...]
) -> Iterator[TableRow | BrokenTable]:
    """The rows of a table whose first line names the columns, one of them in ``columns``.

    ``lines`` keep their line ends. The separator is a tab, or else the comma, or the semicolon
    where the header has no comma (as spreadsheets write it in much of Europe).
    """
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL_CHARACTERS))  # of the whole process
    stream = iter(lines)
    first = next(stream, "")
    delimiter = "\t" if tabs else ";" if ";" in first and "," not in first else ","
    reader = csv.reader(_with(first, stream), delimiter=delimiter, strict=True)
    number = 0
    header: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield BrokenTable(line, f"{error}; the rows from here on were not read")
            return
        if cells is None:
            return
        if header is None:
            header = [name.strip() for name in cells]
            if problem := _problem_of_header(header, columns):
                yield BrokenTable(line, problem)
                return
        elif any(cells):
            number += 1
            yield _row(header, cells, line, number)


def _with(first: str, rest: Iterator[str]) -> Iterator[str]:
    if first:
        yield first
    yield from rest


def _problem_of_header(header: list[str], columns: tuple[str, ...]) -> str | None:
    named = [name for name in header if name]
    seen: set[str] = set()
    for name in named:
        if name in seen:
            return f"the column {name[:60]!r} is there twice"
        seen.add(name)
    if text_column(named, columns) is None:
        return no_text_column(named, columns)
    return None


def text_column(columns: Iterable[str], candidates: tuple[str, ...]) -> str | None:
    """The column that holds the text: the first candidate that is there, whatever its case."""
    by_name = {name.lower(): name for name in reversed(list(columns))}
    found = (by_name.get(candidate.lower()) for candidate in candidates)
    return next((name for name in found if name is not None), None)


def no_text_column(columns: Iterable[str], candidates: tuple[str, ...]) -> str:
    """What to say when :func:`text_column` finds none: the columns that are there."""
    names = list(columns)
    shown = ", ".join(repr(name[:60]) for name in names[:20]) or "none"
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    wanted = " or ".join(candidates)
    return f"no text column ({wanted}); it has {shown}{more}; name one with --text-column"


def _row(header: list[str], cells: list[str], line: int, number: int) -> TableRow | BrokenTable:
    if len(cells) != len(header):
        return BrokenTable(line, f"{len(cells)} cells where the header has {len(header)}")
    named = zip(header, cells, strict=True)
    values = {name or f"column {i}": cell for i, (name, cell) in enumerate(named, 1)}
    return TableRow(line, number, values)
