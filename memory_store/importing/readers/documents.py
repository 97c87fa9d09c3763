"""PDF, office files, web pages, books, notebooks and mail: read in processes of their own.

A file is one memory; a message with attachments is several, and a mailbox one for each message.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from functools import partial

from memory_store.dates import date_in_name
from memory_store.importing.converters import document, process
from memory_store.importing.converters.kinds import KINDS, Kind, kind_named
from memory_store.importing.readers.markdown import completed
from memory_store.importing.source_file import (
    Failure,
    Item,
    LeftOutError,
    Limits,
    Reader,
    Remark,
    Skip,
    SourceFile,
    UnreadableError,
    too_large,
)
from memory_store.records import MemoryDraft

EXTRA = "pip install 'datasette-hybrid[documents]'"
MAIL, DOCUMENT = "eml", "document"
LABELS = {
    "pdf": "PDF",
    "docx": "Word",
    "pptx": "PowerPoint",
    "sheets": "spreadsheet",
    "html": "web page",
    "epub": "book",
    "ipynb": "notebook",
    MAIL: "mail",
}
SIGNS = (
    *(("pdf", b"%PDF-"), ("docx", b"word/document.xml"), ("pptx", b"ppt/presentation.xml")),
    *(("sheets", b"xl/workbook.xml"), ("epub", b"META-INF/container.xml")),
)
"""How a document shows what it is: its first bytes, or the name of a file in it."""
FROM_LINE = b"From "  # begins a message in a mailbox (RFC 4155)


def read(file: SourceFile, limits: Limits, *, kind: Kind) -> Iterator[Item]:
    """The document as one memory, and each attachment as another one. One with the suffix of
    another kind is read as what it is."""
    require(kind.suffixes[0], kind.name)
    data = file.data(limits)
    try:
        documents = converted(kind.name, data, limits)
    except UnreadableError:
        signs = (name for name, sign in SIGNS if name != kind.name and _has(data, sign))
        if (other := next(signs, None)) is None:
            raise
        kind = kind_named(other)
        require(f"{file.name} is {kind.suffixes[0][1:].upper()}, which", kind.name)
        documents = converted(kind.name, data, limits)
    for found in documents:
        yield _item(file, file.name, found, file.ref, kind)


def _has(data: bytes, sign: bytes) -> bool:
    """Whether a file begins with a sign, or is an archive with a file of that name."""
    return data.startswith(sign) or (data.startswith(b"PK\x03\x04") and sign in data)


def read_mailbox(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The messages of a mailbox, one in memory at a time. One that is broken costs only itself.

    A copy of a message is left out; another one of the same Message-ID is known by its number."""
    kind = kind_named(MAIL)
    require(kind.suffixes[0], kind.name)
    seen: dict[str, set[int]] = {}  # what the messages of an id say, as hashes
    for number, data in enumerate(_messages(file, limits), 1):
        where = f"{file.name}: message {number}"
        if len(data) > limits.bytes:
            yield Failure(where, too_large(limits))
            continue
        try:
            found = converted(kind.name, data, limits)
        except (LeftOutError, UnreadableError) as error:
            yield Failure(where, str(error))
            continue
        ref = found[0].metadata.get("message_id") or f"message-{number}"
        said, says = seen.setdefault(ref, set()), hash((found[0].title, found[0].text))
        if says in said:
            yield Skip(where, "a copy of a message before it")
            continue
        ref = f"message-{number}" if said else ref
        said.add(says)
        for one in found:
            yield _item(file, where, one, ref, kind)


def require(named: str, *kinds: str) -> None:
    """Raise LeftOutError where the converters of these kinds are not installed."""
    if any(kind_named(kind).missing for kind in kinds):
        raise LeftOutError(f"{named} needs {EXTRA}")


def converted(kind: str, data: bytes, limits: Limits) -> list[document.Document]:
    """What a file holds, read in the process of its kind. Raises LeftOutError, UnreadableError."""
    try:
        return process.convert(kind, data, limits.seconds)
    except document.LeftOutError as error:
        raise LeftOutError(str(error)) from None
    except document.UnreadableError as error:
        raise UnreadableError(str(error)) from None


def page_text(html: str, limits: Limits) -> str:
    """The text of a page, as Markdown. Raises LeftOutError, UnreadableError."""
    page = codecs.BOM_UTF8 + html.encode("utf-8", "replace")
    return "\n\n".join(one.text for one in converted("html", page, limits))


def _item(
    file: SourceFile, where: str, found: document.Document, ref: str, kind: Kind
) -> MemoryDraft | Remark:
    """An attachment of a message is a document; so is all else that is not a message."""
    if found.unread:
        return Remark(f"{where}: {found.part}", f"attached, and not read: {found.unread}")
    type = "message" if kind.name == MAIL and not found.part else DOCUMENT
    named = None if kind.name == MAIL else date_in_name(file.path.stem)  # a message says when
    draft = MemoryDraft(
        found.text,
        title=found.title or None,
        created=named or found.created,
        metadata=found.metadata,
        type=file.type or type,
        ref=f"{ref}#{found.part}" if found.part else ref,
    )
    return completed(file, draft)


def _messages(file: SourceFile, limits: Limits) -> Iterator[bytes]:
    """The messages as bytes; of one over the limit, as much as shows that."""
    message, blank = bytearray(), True
    with file.open() as stream:
        for line in stream:
            if blank and line.startswith(FROM_LINE):
                if message.strip():
                    yield bytes(message)
                message.clear()
            elif len(message) <= limits.bytes:
                message += line.removeprefix(b">") if line.startswith(b">From ") else line
            blank = not line.strip()
    if message.strip():
        yield bytes(message)


READERS = [
    Reader(
        kind.name,
        kind.suffixes,
        partial(read, kind=kind),
        sniff=(lambda head: head.startswith(b"%PDF-"))
        if kind.name == "pdf"
        else lambda head: False,
        binary=kind.name == "pdf",
        label=LABELS[kind.name],
    )
    for kind in KINDS
    if kind.suffixes
]
MAILBOX = Reader("mbox", (".mbox",), read_mailbox, rows=True, streamed=True, label=LABELS[MAIL])
