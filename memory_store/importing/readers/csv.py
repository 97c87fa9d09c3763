"""CSV and TSV: one memory a row, one failure for each row that does not fit the header."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import partial
from itertools import chain

from msgspec.structs import replace

from memory_store.importing.encoding import Broken
from memory_store.importing.readers.reader import Reader
from memory_store.importing.readers.rows import (
    Row,
    items_of,
    no_text_column,
    text_column,
)
from memory_store.importing.source_file import Item, Limits, SourceFile

MAX_CELL_CHARACTERS = 16 * 1024 * 1024  # the csv module's own limit of 131,072 refuses long notes


def read(file: SourceFile, limits: Limits, *, tabs: bool = False) -> Iterator[Item]:
    """The memories of a table whose first line names the columns.

    A table cannot be read past a wrong encoding.
    """
    broken: list[Broken] = []
    for row in _rows(_until_broken(file, broken), file.text_columns, tabs=tabs):
        if broken:  # what the csv module made of the lines before it may be half a row
            break
        yield from items_of(file, [row])
    yield from items_of(file, broken)


def _until_broken(file: SourceFile, broken: list[Broken]) -> Iterator[str]:
    for _, line in file.lines():
        if isinstance(line, Broken):
            broken.append(replace(line, last=True))
            return
        yield line


def _rows(lines: Iterator[str], columns: tuple[str, ...], *, tabs: bool) -> Iterator[Row | Broken]:
    """The rows. The separator is a tab, or else the comma, or the semicolon where the header has
    no comma (as spreadsheets write it in much of Europe)."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL_CHARACTERS))  # of the whole process
    first = next(lines, "")
    delimiter = "\t" if tabs else ";" if ";" in first and "," not in first else ","
    reader = csv.reader(chain([first] if first else [], lines), delimiter=delimiter, strict=True)
    number = 0
    header: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield Broken(line, str(error), last=True)
            return
        if cells is None:
            return
        if header is None:
            header = [name.strip() for name in cells]
            if problem := _problem_of_header(header, columns):
                yield Broken(line, problem)
                return
        elif any(cells):
            number += 1
            yield _row(header, cells, line, number, columns)


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


def _row(
    header: list[str], cells: list[str], line: int, number: int, columns: tuple[str, ...]
) -> Row | Broken:
    """One row. An empty cell says nothing, but in the text's own column it is an empty text."""
    if len(cells) != len(header):
        return Broken(line, f"{len(cells)} cells where the header has {len(header)}")
    named = zip(header, cells, strict=True)
    values = {name or f"column {i}": cell for i, (name, cell) in enumerate(named, 1)}
    column = text_column(values, columns)
    kept = {name: cell for name, cell in values.items() if cell or name == column}
    return Row(line, number, kept)


READER = Reader("csv", (".csv",), read, rows=True, streamed=True)
TABS = Reader("tsv", (".tsv",), partial(read, tabs=True), rows=True, streamed=True)
