"""Rows of any format as memory drafts.

Every row that cannot be read is a :class:`Failure` naming ``file:line`` (or, in a database,
``file:primary key``); the other rows are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memory_store.importing.drafts import with_text_topics
from memory_store.importing.fields import FieldError, Record
from memory_store.importing.notes import first_heading
from memory_store.importing.readers.apple_export import apple_note
from memory_store.importing.readers.conversations import conversation
from memory_store.importing.readers.gemini import gemini_exchange
from memory_store.importing.readers.keep import keep_note
from memory_store.importing.readers.mem0 import mem0_memory
from memory_store.importing.source_file import Broken, Failure, Item, Skip, SourceFile
from memory_store.records import MemoryDraft

NOT_READ = "; the rows from here on were not read"
_NO_TEXT = {bool: "true or false", list: "a list", dict: "an object"}


class Row(Struct, frozen=True):
    """One record. ``where`` is its line or, in a database, its primary key.

    ``number`` counts the rows from 1, and names a row without an ``id``. A row of a database has
    its ``ref`` and its ``table``.
    """

    where: int | str
    number: int
    values: dict[str, Any]
    ref: str | None = None
    table: str | None = None


def items_of(file: SourceFile, rows: Iterable[Row | Broken]) -> Iterator[Item]:
    """The memories of a file's rows."""
    for row in rows:
        where = file.name if row.where is None else f"{file.name}:{row.where}"
        yield broken_row(file, row) if isinstance(row, Broken) else _item(file, where, row)


def broken_row(file: SourceFile, row: Broken) -> Failure:
    """A row that cannot be read, named by its file and line."""
    where = file.name if row.where is None else f"{file.name}:{row.where}"
    return Failure(where, row.reason + (NOT_READ if row.last else ""))


def text_column(columns: Iterable[str], candidates: tuple[str, ...]) -> str | None:
    """The column that holds the text: the first candidate that is there, whatever its case."""
    by_name = {name.lower(): name for name in reversed(list(columns))}
    found = (by_name.get(candidate.lower()) for candidate in candidates)
    return next((name for name in found if name is not None), None)


def no_text_column(columns: Iterable[str], candidates: tuple[str, ...]) -> str:
    """The message where :func:`text_column` finds none: it lists the columns that are there."""
    names = list(columns)
    listed = ", ".join(repr(name[:60]) for name in names[:20]) or "none"
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    wanted = " or ".join(candidates)
    return f"no text column ({wanted}); it has {listed}{more}; name the column that holds the text"


def _of_program(file: SourceFile, row: Row) -> MemoryDraft | str | None:
    """The memory that an object of another program's export is, or why it is left out; ``None``
    for an object of no known program."""
    told = conversation(row.values) or gemini_exchange(row.values)
    if isinstance(told, str):
        return told
    if told is not None:
        return replace(told, type=file.type or "conversation")
    if (noted := apple_note(row.values, row.ref)) is not None or row.table is not None:
        return noted
    return keep_note(row.values) or mem0_memory(row.values)


def _name(values: dict[str, Any]) -> str | None:
    """What a row without a title is called: its ``name``, which stays in the metadata."""
    column = text_column(values, ("name",))
    name = values[column] if column is not None else None
    return name.strip() if isinstance(name, str) else None


def _item(file: SourceFile, where: str, row: Row) -> Item:
    told = _of_program(file, row)
    if told is not None:
        if isinstance(told, str) or not told.text.strip():
            return Skip(where, told if isinstance(told, str) else "empty")
        return told if told.ref else replace(told, ref=f"row-{row.number}", source=None)
    column = text_column(row.values, file.text_columns)
    if column is None:
        return Failure(where, no_text_column(row.values, file.text_columns))
    text = row.values.pop(column)
    record = Record(row.values, is_row=True, ref=row.ref)
    exported = record.is_export
    blank = text is None or (isinstance(text, str) and not text.strip())
    if blank and not (exported and row.values.get("title")):
        return Skip(where, "empty")
    if type(text) in _NO_TEXT:
        return Failure(where, f"{column!r} must hold text, not {_NO_TEXT[type(text)]}")
    try:
        draft = record.draft("" if blank else str(text))
    except FieldError as error:
        return Failure(where, error.reason)
    draft = replace(draft, title=draft.title or "") if exported else with_text_topics(draft)
    if not (exported or draft.title or first_heading(draft.text)):
        draft = replace(draft, title=_name(row.values))
    if row.table is not None:  # two tables may share their keys
        return replace(draft, source=f"{file.root}#{row.table}")
    named = draft.ref is not None or draft.id is not None
    return draft if named else replace(draft, ref=f"row-{row.number}")
