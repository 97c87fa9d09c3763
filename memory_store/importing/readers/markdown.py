"""Markdown and plain text: one memory a file.

Markdown has YAML or TOML front matter at its head; plain text is all body. Files of an unknown
suffix are read as text, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from memory_store.dates import date_in_name, format_epoch
from memory_store.importing.drafts import with_text_topics
from memory_store.importing.fields import FieldError, Record
from memory_store.importing.front_matter import FrontMatter, read_front_matter
from memory_store.importing.notes import first_heading
from memory_store.importing.source_file import (
    Item,
    LeftOutError,
    Limits,
    Reader,
    SourceFile,
    UnreadableError,
)
from memory_store.records import MemoryDraft


def read(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The note."""
    yield _note(file, read_front_matter(file.text(limits), limits.depth))


def read_text(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The note, all of it body."""
    yield _note(file, FrontMatter(body=file.text(limits)))


def _note(file: SourceFile, read: FrontMatter) -> MemoryDraft:
    """A file as one memory; where its body is blank, by the front matter's own ``text``.

    Raises LeftOutError, UnreadableError.
    """
    fields, body = dict(read.fields), read.body.removesuffix("\n")
    if not body.strip() and isinstance(fields.get("text"), str):
        body = str(fields.pop("text"))
    if not body.strip():
        raise LeftOutError("empty")
    record = Record(fields)
    exported = record.is_export
    try:
        draft = record.draft(body)
    except FieldError as error:
        raise UnreadableError(error.reason, read.lines.get(error.key)) from None
    return replace(draft, title=draft.title or "") if exported else _completed(file, draft)


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


READER = Reader(
    "markdown",
    (".md", ".markdown"),
    read,
    lambda head: head.startswith((b"---\n", b"+++\n")),  # it opens with front matter
)
TEXT = Reader("text", (".txt",), read_text)
