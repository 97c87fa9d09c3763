"""CSV and TSV: one memory a row, one failure for each row that does not fit the header."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import chain

from msgspec.structs import replace

from memory_store.importing.readers.rows import Row, items_of, no_text_column, text_column
from memory_store.importing.source_file import Broken, Item, Limits, Reader, SourceFile

MAX_CELL_CHARACTERS = 16 * 1024 * 1024  # the csv module's own limit of 131,072 refuses long notes


def read(file: SourceFile, limits: Limits, *, tabs: bool = False) -> Iterator[Item]:
    """The memories of a table whose first line names the columns.

    A table cannot be read past a wrong encoding.
    """
    yield from items_of(file, _until(file, file.text_columns, tabs=tabs))


def records(file: SourceFile) -> Iterator[Row | Broken]:
    """The rows of a table whose columns its reader knows."""
    return _until(file, ())


def columns_of(head: bytes) -> frozenset[str]:
    """The names of the columns in the first line of a table, in lower case."""
    line = head.decode("utf-8-sig", "replace").partition("\n")[0]
    return frozenset(name.strip(' "\r').lower() for name in line.split(","))


def _until(
    file: SourceFile, columns: tuple[str, ...], *, tabs: bool = False
) -> Iterator[Row | Broken]:
    broken: list[Broken] = []
    for row in _rows(_until_broken(file, broken), columns, tabs=tabs):
        if broken:  # what the csv module made of the lines before it may be half a row
            break
        yield row
    yield from broken


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
    header: list[str] = []
    column = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield Broken(line, str(error), last=True)
            return
        if cells is None:
            return
        if column is None:
            header = [name.strip() for name in cells]
            named = [name for name in header if name]
            column = text_column(named, columns) if columns else ""
            twice = [name for name, times in Counter(named).items() if times > 1]
            if twice:
                yield Broken(line, f"the column {twice[0][:60]!r} is there twice")
                return
            if column is None:
                yield Broken(line, no_text_column(named, columns))
                return
        elif any(cells):
            number += 1
            yield _row(header, cells, line, number, column)


def _row(header: list[str], cells: list[str], line: int, number: int, column: str) -> Row | Broken:
    """One row. An empty cell says nothing, but in the text's own column it is an empty text."""
    if len(cells) != len(header):
        return Broken(line, f"the header has {len(header)} cells, this row {len(cells)}")
    named = enumerate(zip(header, cells, strict=True), 1)
    kept = {name or f"column {i}": cell for i, (name, cell) in named if cell or name == column}
    return Row(line, number, kept)


READER = Reader("csv", (".csv",), read, rows=True, streamed=True, label="CSV")
TABS = Reader("tsv", (".tsv",), partial(read, tabs=True), rows=True, streamed=True, label="TSV")
