"""Markdown: one memory a file, with the YAML or TOML front matter at its head."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from memory_store.dates import date_in_name, format_epoch
from memory_store.importing.drafts import with_text_topics
from memory_store.importing.fields import FieldError, Record
from memory_store.importing.front_matter import FrontMatter, read_front_matter
from memory_store.importing.notes import first_heading
from memory_store.importing.readers.reader import Reader
from memory_store.importing.source_file import (
    Item,
    LeftOutError,
    Limits,
    SourceFile,
    UnreadableError,
)
from memory_store.records import MemoryDraft


def read(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The note."""
    yield note(file, read_front_matter(file.text(limits), limits.depth))


def sniff(head: bytes) -> bool:
    """Whether it opens with front matter."""
    return head.startswith((b"---\n", b"+++\n"))


def note(file: SourceFile, read: FrontMatter) -> MemoryDraft:
    """A file as one memory. Raises LeftOutError, UnreadableError."""
    fields = dict(read.fields)
    body = _body_or_text(fields, read.body.removesuffix("\n"))
    if not body.strip():
        raise LeftOutError("empty")
    record = Record(fields)
    exported = record.is_export
    try:
        draft = record.draft(body)
    except FieldError as error:
        raise UnreadableError(error.reason, read.lines.get(error.key)) from None
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


READER = Reader("markdown", (".md", ".markdown"), read, sniff)
