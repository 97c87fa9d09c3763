"""Reads one source file of any kind into memory drafts.

Boundary: a hostile file costs bounded memory and time, executes nothing and reads nothing else.
The file is opened once, without following a link that took its place and without waiting for a
pipe. Whatever was chosen and cannot be taken becomes a :class:`Failure` that names file and line.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import re
import stat
import sys
from collections.abc import Iterator
from typing import IO, Any, BinaryIO

from msgspec.structs import replace

from memory_store.dates import date_in_name, format_epoch
from memory_store.errors import MemoryStoreError
from memory_store.importing.decoding import SNIFFED_BYTES, decode, is_binary
from memory_store.importing.drafts import with_text_topics
from memory_store.importing.fields import TEXT_COLUMNS, FieldError, Record
from memory_store.importing.front_matter import FrontMatter, FrontMatterError, read_front_matter
from memory_store.importing.notes import first_heading
from memory_store.importing.rows import (
    Item,
    database_items,
    json_items,
    ndjson_items,
    table_items,
)
from memory_store.importing.walk import (
    MAX_FILE_BYTES,
    Failure,
    Skip,
    SourceFile,
    starts_like_sqlite,
)
from memory_store.records import MemoryDraft

STDIN_DIGEST_CHARACTERS = 16  # 64 bits: two notes of one vault never share them by chance

_JSON_ARRAY = re.compile(rb"\s*\[\s*[{\]]")  # but no [link] and no [[wiki link]]
_JSON_OBJECT = re.compile(rb"\s*\{\s*[\"}]")  # but no {{template}}


def read_file(
    file: SourceFile, *, table: str | None = None, text_column: str | None = None
) -> Iterator[Item]:
    """The memories in a file, and a :class:`Skip` or :class:`Failure` for what is none.

    ``table`` chooses the table of a SQLite file, ``text_column`` the field that holds the text of
    rows (default: the first of ``text``, ``body``, ``content``, ``note`` that is there). Every
    draft has a ``ref``, but the exported ones of memories that had none: those have their ``id``.
    Raises nothing for bad input.
    """
    columns = (text_column,) if text_column else TEXT_COLUMNS
    try:
        if file.kind == "stdin":
            yield from _read_stdin(file, columns)
        elif file.content is None and _is_database(file):
            yield from _read_database(file, table, columns)
        else:
            with opened_file(file) as stream:
                yield from _read_stream(file, stream, columns)
    except MemoryStoreError as error:
        yield Failure(file.name, str(error))
    except OSError as error:
        yield Failure(file.name, (error.strerror or str(error)).lower())


def _is_database(file: SourceFile) -> bool:
    return file.kind == "sqlite" or (file.kind == "text" and starts_like_sqlite(file.path))


def opened_file(file: SourceFile) -> BinaryIO:
    """A regular file only: not a link put in its place, nor a pipe that would block."""
    if file.content is not None:
        return io.BytesIO(file.content())
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(file.path, flags | getattr(os, "O_NOFOLLOW", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise MemoryStoreError("not a regular file")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _read_stream(file: SourceFile, stream: IO[bytes], columns: tuple[str, ...]) -> Iterator[Item]:
    head = stream.read(SNIFFED_BYTES)
    stream.seek(0)
    if not head:
        yield Skip(file.name, "empty")
    elif is_binary(head):
        yield Skip(file.name, "binary")
    elif file.kind == "ndjson":
        yield from ndjson_items(file.name, stream, columns)
    elif file.kind in ("csv", "tsv"):
        yield from table_items(file.name, stream, columns, tabs=file.kind == "tsv")
    else:
        yield from _read_document(file, stream.read(MAX_FILE_BYTES + 1), columns)


def _read_document(file: SourceFile, data: bytes, columns: tuple[str, ...]) -> Iterator[Item]:
    if len(data) > MAX_FILE_BYTES:
        yield Failure(file.name, f"larger than {MAX_FILE_BYTES // 1024**2} MB")
        return
    text = decode(file.name, data)
    if isinstance(text, Failure):
        yield text
    elif not text.strip():
        yield Skip(file.name, "empty")
    elif file.kind == "json":
        yield from json_items(file.name, text, columns)
    else:
        yield _note(file, text)


def _read_database(file: SourceFile, table: str | None, columns: tuple[str, ...]) -> Iterator[Item]:
    if starts_like_sqlite(file.path):
        yield from database_items(file, table, columns)
    elif file.path.stat().st_size == 0:
        yield Skip(file.name, "empty")
    else:
        yield Failure(file.name, "not a SQLite database")


def _note(file: SourceFile, text: str) -> Item:
    """A Markdown or text file as one memory. Only Markdown has front matter."""
    try:
        read = read_front_matter(text) if file.kind == "markdown" else FrontMatter(body=text)
    except FrontMatterError as error:
        return Failure(f"{file.name}:{error.line}", error.reason)
    fields = dict(read.fields)
    body = _body_or_text(fields, read.body.removesuffix("\n"))
    if not body.strip():
        return Skip(file.name, "empty")
    record = Record(fields)
    exported = record.is_export
    try:
        draft = record.draft(body)
    except FieldError as error:
        line = read.lines.get(error.key)
        return Failure(f"{file.name}:{line}" if line else file.name, error.reason)
    return replace(draft, title=draft.title or "") if exported else _completed(file, draft)


def _body_or_text(fields: dict[str, Any], body: str) -> str:
    """The body; where it is blank, the front matter's own ``text``."""
    if body.strip() or not isinstance(fields.get("text"), str):
        return body
    return str(fields.pop("text"))


def _completed(file: SourceFile, draft: MemoryDraft) -> MemoryDraft:
    """The draft with what a note says only by its headings, hashtags, name and time stamp.

    A time stamp is that of the last change: with an edit it moves on, and the note is no younger.
    """
    stem = None if file.stream is not None else file.path.stem
    created = draft.created or (date_in_name(stem) if stem else None)
    updated = draft.updated
    if created is None and updated is None and file.modified is not None:
        updated = format_epoch(int(file.modified))
    return replace(
        with_text_topics(draft),
        title=draft.title or first_heading(draft.text) or stem,
        created=created,
        updated=updated,
        ref=draft.ref or file.ref,
    )


def _read_stdin(file: SourceFile, columns: tuple[str, ...]) -> Iterator[Item]:
    """Standard input: JSON or NDJSON where it looks so, else one Markdown note.

    A note has no name there. It is named by a digest of its text (sealed, as every ref is), so the
    same text again is unchanged and another text never replaces it.
    """
    data = _stdin_bytes(file)
    kind = _kind_of(data)
    if is_binary(data):
        yield Skip(file.name, "binary")
    elif kind == "ndjson" and len(data) <= MAX_FILE_BYTES:
        yield from ndjson_items(file.name, io.BytesIO(data), columns)
    else:
        digest = hashlib.sha256(data).hexdigest()[:STDIN_DIGEST_CHARACTERS]
        named = replace(file, kind=kind, ref=f"stdin-{digest}")
        yield from _read_document(named, data, columns)


def _kind_of(data: bytes) -> str:
    start = data.removeprefix(codecs.BOM_UTF8)
    if _JSON_ARRAY.match(start):
        return "json"
    if not _JSON_OBJECT.match(start):
        return "markdown"
    first, _, rest = start.strip().partition(b"\n")
    return "ndjson" if rest and first.rstrip().endswith(b"}") else "json"


def _stdin_bytes(file: SourceFile) -> bytes:
    stream = file.stream or sys.stdin
    binary = getattr(stream, "buffer", None)
    if binary is not None:
        data: bytes = binary.read(MAX_FILE_BYTES + 1)
        return data
    return stream.read(MAX_FILE_BYTES + 1).encode("utf-8", "surrogateescape")
