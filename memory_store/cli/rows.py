"""Records on standard output as JSON, NDJSON, CSV or a plain table.

JSON forms are lossless: characters that could drive a terminal are written as ``\\uXXXX``. CSV
and tables drop them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from memory_store.cli.terminal import escaped, printable, printable_line, shortened, width
from memory_store.configuration import chosen
from memory_store.paths import RERANKER_VARIABLE
from memory_store.records.degraded import Code, Degraded

if TYPE_CHECKING:
    from memory_store.records import SearchResponse

CELL_WIDTH = 60  # terminal cells of a table column before it is cut with an ellipsis


def write_json(value: Any) -> None:
    """One indented JSON document; records in it are objects."""
    click.echo(escaped(json.dumps(value, ensure_ascii=False, indent=2, default=to_builtins)))


def write_answer(as_json: bool, found: Any, lines: Iterable[str], nothing: str = "") -> None:
    """``found`` as JSON where that was asked for, else ``lines`` for people; ``nothing`` says on
    stderr that there are none."""
    if as_json:
        write_json(found)
        return
    for line in lines:
        click.echo(line)
    if nothing and not found:
        click.echo(nothing, err=True)


def write_rows(
    form: str,
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    lines: Iterable[str] | None = None,
) -> None:
    """``rows`` in the named form (``json nl csv table text``). CSV and tables show ``columns``.

    As text they are ``lines``, or a table.
    """
    if form == "nl":
        for row in rows:
            click.echo(escaped(json.dumps(row, ensure_ascii=False)))
    elif form == "csv":
        _write_csv(rows, columns)
    else:
        if form == "table" or lines is None:
            lines = table_lines([[_cell(row.get(c)) for c in columns] for row in rows], columns)
        write_answer(form == "json", rows, lines)


def table_lines(cells: Iterable[Sequence[str]], headings: Sequence[str]) -> Iterable[str]:
    """A left-aligned table: headings, a rule, one line per row."""
    cut = [[shortened(printable_line(cell), CELL_WIDTH) for cell in row] for row in cells]
    rule = ["-" * max(map(width, column)) for column in zip(headings, *cut, strict=True)]
    return aligned([headings, rule, *cut])


def aligned(rows: Sequence[Sequence[str]], numeric: Collection[int] = ()) -> Iterator[str]:
    """Lines of cells in aligned columns: to the right those in ``numeric``, by number."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        gaps = (" " * (room - width(cell)) for cell, room in zip(row, widths, strict=True))
        cells = (
            gap + cell if n in numeric else cell + gap
            for n, (cell, gap) in enumerate(zip(row, gaps, strict=True))
        )
        yield "  ".join(cells).rstrip()


def _write_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([printable(_cell(row.get(column))) for column in columns])


def _cell(value: Any) -> str:
    """A value as one cell: lists and objects as JSON, nothing as an empty cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"  # as SQLite would
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def usual(response: SearchResponse) -> list[Degraded]:
    """What an answer went without as usual, and need not be told each time: a reranker, where none
    was chosen. ``doctor``, JSON and an explanation say what mends it."""
    if response.explain or chosen(RERANKER_VARIABLE):
        return []
    return [line for line in response.degraded if line.code is Code.NO_RERANKER]
