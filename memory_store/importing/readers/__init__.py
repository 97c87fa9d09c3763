"""The formats that can be imported: one module and one line in ``READERS`` for each.

Boundary: a hostile file costs bounded memory and time, executes nothing and reads nothing else.
What was chosen and cannot be read becomes a :class:`Failure` that names file and line.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import PurePath
from time import monotonic

from msgspec.structs import replace

from memory_store.errors import MemoryStoreError
from memory_store.importing.readers import (
    anki,
    apple_export,
    apple_notes,
    bookmarks,
    code,
    conversations,
    csv,
    documents,
    enex,
    gemini,
    highlights,
    json,
    keep,
    markdown,
    mem0,
    notion,
    sqlite,
)
from memory_store.importing.source_file import (
    LIMITS,
    STDIN,
    Attachment,
    Failure,
    Item,
    LeftOutError,
    Limits,
    Reader,
    Skip,
    SourceFile,
    UnreadableError,
    is_binary,
    refusal,
    too_large,
)
from memory_store.records import MemoryDraft

STDIN_DIGEST_CHARACTERS = 16  # 64 bits: two notes of one vault never share them by chance

READERS: list[Reader] = [
    *(markdown.READER, markdown.TEXT),
    *(json.READER, json.LINES),
    *(csv.READER, csv.TABS),
    sqlite.READER,
    *documents.READERS,
    documents.MAILBOX,
    enex.READER,
    *bookmarks.READERS,
    *highlights.READERS,
    anki.READER,
    gemini.READER,
    apple_notes.READER,
    *notion.READERS,
    code.READER,
]
PROGRAMS = frozenset(
    {
        *(
            conversations.CHATGPT,
            conversations.CLAUDE,
            gemini.GEMINI,
            keep.SOURCE,
            mem0.SOURCE,
            enex.SOURCE,
        ),
        *(notion.SOURCE, anki.SOURCE, apple_export.SOURCE, highlights.KINDLE, highlights.READWISE),
        *(bookmarks.BROWSER, bookmarks.POCKET, bookmarks.INSTAPAPER, bookmarks.RAINDROP),
    }
)
"""What readers of exports give as the source of a memory."""


def register(reader: Reader) -> None:
    """Add a format. Of two readers with one suffix, the first keeps it."""
    READERS.append(reader)
    _of_suffix.cache_clear()


def reader_of_suffix(path: str | PurePath) -> Reader | None:
    """The reader of files that are called so."""
    return _of_suffix(os.path.splitext(path)[1].lower())


@lru_cache(1_000)
def _of_suffix(suffix: str) -> Reader | None:
    return next((one for one in READERS if suffix in one.suffixes), None)


def reader_named(kind: str) -> Reader:
    """The reader of that name."""
    return next(one for one in READERS if one.name == kind)


def reader_of(file: SourceFile) -> Reader:
    """The reader of a file: that of its kind, or of the export that it is by its content; of an
    unknown suffix, that of its first bytes."""
    named = reader_named(file.kind)
    if export := next((one for one in READERS if named.name in one.within and one.of(file)), None):
        return export
    if named is not markdown.TEXT:
        return named
    there = [one for one in READERS if one.binary and not (one.on_disk and file.content)]
    head = file.head() if there else b""
    return next((one for one in there if one.sniff(head)), named)


def label_of(file: SourceFile, draft: MemoryDraft) -> str:
    """What a report calls the kind of a memory in a file: the program that exported it, or else
    the format of the file."""
    if draft.source in PROGRAMS:
        return draft.source or ""
    if file.kind == STDIN:
        return "standard input"
    named = reader_named(file.kind)
    if named.label == documents.LABELS[documents.MAIL] and draft.type == documents.DOCUMENT:
        return "attachment"
    return named.label or named.name


def read_file(file: SourceFile, limits: Limits = LIMITS) -> Iterator[Item]:
    """The memories in a file, and a :class:`Skip` or :class:`Failure` for what is none.

    Every draft has a ``ref``, but the exported ones of memories that had none: those have their
    ``id``. Raises nothing for bad input.
    """
    try:
        if file.kind == STDIN:
            file = _from_stdin(file, limits)
        items = reader_of(file).read(file, limits)
        for item in _within(limits, file, _with_attachments(items, limits)):
            said = file.beside if isinstance(item, MemoryDraft) else None
            yield said.completed(item, file) if said and isinstance(item, MemoryDraft) else item
    except LeftOutError as error:
        yield Skip(file.name, str(error))
    except UnreadableError as error:
        yield Failure(f"{file.name}:{error.line}" if error.line else file.name, error.reason)
    except MemoryStoreError as error:
        yield Failure(file.name, str(error))
    except OSError as error:
        yield Failure(file.name, refusal(error))


def _with_attachments(items: Iterator[Item | Attachment], limits: Limits) -> Iterator[Item]:
    """The items, with what is in the attachments among them."""
    for item in items:
        if not isinstance(item, Attachment):
            yield item
            continue
        reader = reader_of_suffix(item.file.path)
        if reader is None or reader.rows:
            yield Skip(item.file.name, "an attachment of a kind that is not read")
            continue
        for one in read_file(replace(item.file, kind=reader.name), limits):
            yield item.finish(one) if isinstance(one, MemoryDraft) else one


def _within(limits: Limits, file: SourceFile, items: Iterator[Item]) -> Iterator[Item]:
    """The items of a file, as many as the limits allow. Only time spent in the reader counts."""
    spent, number = 0.0, 0
    while True:
        began = monotonic()
        item = next(items, None)
        spent += monotonic() - began
        if item is None:
            return
        number += 1
        if number > limits.items or spent > limits.seconds:
            most = f"{limits.items:,} records" if number > limits.items else f"{limits.seconds} s"
            yield Failure(file.name, f"more than {most}; the rest was not read")
            return
        yield item


def _from_stdin(file: SourceFile, limits: Limits) -> SourceFile:
    """Standard input as a file: of the kind that its bytes show, else one Markdown note.

    A note has no name there. It is named by a digest of its text (sealed, as every ref is), so the
    same text again is unchanged and another text never replaces it.
    """
    data = _stdin_bytes(file, limits)
    if len(data) > limits.bytes and not is_binary(data):
        raise UnreadableError(too_large(limits))
    sniffed = (one for one in READERS if not one.on_disk and one.sniff(data))
    return replace(
        file,
        kind=next(sniffed, markdown.READER).name,
        ref=f"stdin-{hashlib.sha256(data).hexdigest()[:STDIN_DIGEST_CHARACTERS]}",
        content=lambda: data,
    )


def _stdin_bytes(file: SourceFile, limits: Limits) -> bytes:
    stream = file.stream or sys.stdin
    binary = getattr(stream, "buffer", None)
    if binary is not None:
        data: bytes = binary.read(limits.bytes + 1)
        return data
    return stream.read(limits.bytes + 1).encode("utf-8", "surrogateescape")
