"""Rows of JSON, NDJSON, CSV, TSV and SQLite as memory drafts.

Every row that cannot be taken is a :class:`Failure` naming ``file:line`` (or, in a database,
``file:primary key``); the other rows are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any

from msgspec.structs import replace

from memory_store.importing.database_rows import BrokenDatabase, rows_of_database
from memory_store.importing.decoding import decode_lines
from memory_store.importing.drafts import with_text_topics
from memory_store.importing.fields import FieldError, Record
from memory_store.importing.json_rows import BrokenRow, Row, row_of_line, rows_of_document
from memory_store.importing.tabular import BrokenTable, no_text_column, rows_of_table, text_column
from memory_store.importing.walk import Failure, Skip, SourceFile
from memory_store.records import MemoryDraft

Item = MemoryDraft | Skip | Failure
NOT_READ = "; the rows from here on were not read"


def json_items(name: str, text: str, columns: tuple[str, ...]) -> Iterator[Item]:
    """The memories of a JSON document."""
    return _json_items(name, rows_of_document(text), columns)


def ndjson_items(name: str, stream: IO[bytes], columns: tuple[str, ...]) -> Iterator[Item]:
    """The memories of an NDJSON stream, one line in memory at a time."""
    for number, line in decode_lines(stream, name):
        if isinstance(line, Failure):
            yield line
        elif line.strip():
            yield from _json_items(name, [row_of_line(line, number, number)], columns)


def table_items(
    name: str, stream: IO[bytes], columns: tuple[str, ...], *, tabs: bool
) -> Iterator[Item]:
    """The memories of a CSV or TSV stream. A table cannot be read past a wrong encoding."""
    problems: list[Failure] = []
    for row in rows_of_table(_until_problem(stream, name, problems), tabs=tabs, columns=columns):
        where = f"{name}:{row.line}"
        if problems:  # what the csv reader made of the lines before it may be half a row
            break
        if isinstance(row, BrokenTable):
            yield Failure(where, row.reason)
        else:
            yield _row_item(where, _without_empty_cells(row.values, columns), row.number, columns)
    yield from problems


def database_items(file: SourceFile, table: str | None, columns: tuple[str, ...]) -> Iterator[Item]:
    """The memories of a table. Its source is ``file#table``: two tables may share their keys."""
    for row in rows_of_database(file.path, table, columns):
        if isinstance(row, BrokenDatabase):
            yield Failure(file.name if row.ref is None else f"{file.name}:{row.ref}", row.reason)
            continue
        record = Record(row.values, is_row=True, ref=row.ref)
        item = _draft(f"{file.name}:{row.ref}", record, row.text, row.column)
        if isinstance(item, MemoryDraft):
            item = replace(item, source=f"{file.root}#{row.table}")
        yield item


def _without_empty_cells(values: dict[str, str], columns: tuple[str, ...]) -> dict[str, str]:
    """An empty cell says nothing, except in the text's own column: there it is an empty text."""
    column = text_column(values, columns)
    return {name: cell for name, cell in values.items() if cell or name == column}


def _until_problem(stream: IO[bytes], name: str, problems: list[Failure]) -> Iterator[str]:
    for _, line in decode_lines(stream, name):
        if isinstance(line, Failure):
            problems.append(replace(line, reason=line.reason + NOT_READ))
            return
        yield line


def _json_items(
    name: str, rows: Iterable[Row | BrokenRow], columns: tuple[str, ...]
) -> Iterator[Item]:
    for row in rows:
        where = f"{name}:{row.line}"
        if isinstance(row, BrokenRow):
            yield Failure(where, row.reason + (NOT_READ if row.last else ""))
        else:
            yield _row_item(where, row.values, row.number, columns)


def _row_item(where: str, values: dict[str, Any], number: int, columns: tuple[str, ...]) -> Item:
    """One row as a memory; without an ``id`` of its own it is named by its number."""
    column = text_column(values, columns)
    if column is None:
        return Failure(where, no_text_column(values, columns))
    text = values.pop(column)
    item = _draft(where, Record(values, is_row=True), text, column)
    if isinstance(item, MemoryDraft) and item.ref is None and item.id is None:
        return replace(item, ref=f"row-{number}")
    return item


def _draft(where: str, record: Record, text: Any, column: str) -> Item:
    if text is None or (isinstance(text, str) and not text.strip()):
        return Skip(where, "empty")
    if isinstance(text, (bool, list, dict)):
        return Failure(where, f"{column!r} must hold text, not {_json_kind(text)}")
    exported = record.is_export
    try:
        draft = record.draft(str(text))
    except FieldError as error:
        return Failure(where, error.reason)
    return replace(draft, title=draft.title or "") if exported else with_text_topics(draft)


def _json_kind(value: bool | list[Any] | dict[str, Any]) -> str:
    if isinstance(value, bool):
        return "true or false"
    return "a list" if isinstance(value, list) else "an object"
