"""NDJSON: one memory a line, one line in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator

from memory_store.importing.encoding import Broken
from memory_store.importing.readers.json import holds_lines, row_of_line
from memory_store.importing.readers.reader import Reader
from memory_store.importing.readers.rows import Row, items_of
from memory_store.importing.source_file import Item, Limits, SourceFile


def read(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The memories of the lines."""
    yield from items_of(file, _rows(file, limits))


def _rows(file: SourceFile, limits: Limits) -> Iterator[Row | Broken]:
    for number, line in file.lines():
        if isinstance(line, Broken):
            yield line
        elif line.strip():
            yield row_of_line(line, number, limits.depth)


READER = Reader("ndjson", (".ndjson", ".jsonl"), read, holds_lines, rows=True, streamed=True)
