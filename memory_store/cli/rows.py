"""Records on standard output as JSON, NDJSON, CSV or a plain table.

JSON forms are lossless: characters that could drive a terminal are written as ``\\uXXXX``. CSV
and tables drop them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from memory_store.cli.terminal import escaped, printable, printable_line, shortened, width

CELL_WIDTH = 60  # terminal cells of a table column before it is cut with an ellipsis


def write_json(value: Any) -> None:
    """One indented JSON document."""
    click.echo(escaped(json.dumps(value, ensure_ascii=False, indent=2)))


def write_rows(form: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """``rows`` in the named form (``json nl csv table``). CSV and tables show ``columns``."""
    if form == "json":
        write_json(list(rows))
    elif form == "nl":
        for row in rows:
            click.echo(escaped(json.dumps(row, ensure_ascii=False)))
    elif form == "csv":
        _write_csv(rows, columns)
    else:
        for line in table_lines([[_cell(row.get(c)) for c in columns] for row in rows], columns):
            click.echo(line)


def table_lines(cells: Sequence[Sequence[str]], headings: Sequence[str]) -> Iterable[str]:
    """A left-aligned table: headings, a rule, one line per row."""
    cut = [[shortened(printable_line(cell), CELL_WIDTH) for cell in row] for row in cells]
    widths = [
        max([width(heading), *(width(row[i]) for row in cut)]) for i, heading in enumerate(headings)
    ]
    yield _aligned(headings, widths)
    yield "  ".join("-" * w for w in widths)
    for row in cut:
        yield _aligned(row, widths)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (w - width(cell)) for cell, w in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip()


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
