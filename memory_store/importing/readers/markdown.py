"""Markdown and plain text: one memory a file.

Markdown has YAML or TOML front matter at its head; plain text is all body. A note is not lost for
its front matter: what cannot be read of it stays in the text, with a warning. A file of an unknown
suffix that was named is read if it is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from memory_store.dates import date_in_name, format_epoch
from memory_store.importing.drafts import with_text_topics
from memory_store.importing.fields import FieldError, Record
from memory_store.importing.front_matter import (
    FrontMatter,
    FrontMatterError,
    as_data,
    read_front_matter,
)
from memory_store.importing.notes import first_heading
from memory_store.importing.source_file import (
    Item,
    LeftOutError,
    Limits,
    Reader,
    Remark,
    SourceFile,
    UnreadableError,
)
from memory_store.records import MemoryDraft

KEPT_IN_TEXT = "the note was imported, with its front matter as part of the text"
KEPT_AS_METADATA = "the note was imported, with this field as it is among its metadata"
ORG_HEAD_LINES = 100
ORG_KEYWORD = re.compile(r"#\+(title|date|filetags):(.*\S)", re.IGNORECASE)
ORG_DAY = re.compile(r"^[<\[ ]*(\d{4}-\d\d-\d\d)\b")
SIGNATURES = (b"%PDF-", b"{\\rtf", b"PK\x03\x04", b"\x1f\x8b", b"\xd0\xcf\x11\xe0")
"""How files begin that are text in part only: PDF, RTF, zip archives, gzip, old office files."""
KEY_FILE = re.compile(rb"\s*[A-Za-z0-9+/]{43}=\s*")  # 32 bytes of base64, and no more
SAVED_AS = {
    ".docx": (".doc", ".docm", ".dot", ".dotx", ".odt", ".ott", ".pages", ".rtf"),
    ".pptx": (".odp", ".pps", ".ppsx", ".ppt", ".pptm"),
    ".xlsx": (".numbers", ".xlsb", ".xltx"),
    ".html": (".mht", ".mhtml"),
    ".epub": (".azw3", ".fb2", ".mobi"),
    ".eml": (".msg",),
}
"""What programs write beside their own formats, and is read."""


def read(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The note, and warnings about its encoding and its front matter."""
    decoded = file.decoded(limits)
    try:
        parts = read_front_matter(decoded.text, limits.depth)
    except FrontMatterError as error:
        if error.refused:
            raise
        yield _titled(file, Record({}).draft(decoded.text.removesuffix("\n")))
        yield _remark(file, error.line, f"{error.reason}; {KEPT_IN_TEXT}")
    else:
        yield from _note(file, parts)
    if decoded.remark:
        yield Remark(file.name, decoded.remark)


def read_text(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The note, all of it body."""
    suffix = file.path.suffix.lower()
    if KEY_FILE.fullmatch(file.head()):
        raise LeftOutError("a key file: a search would show the key")
    if suffix in TEXT.suffixes:
        decoded = file.decoded(limits)
        fields = {}
        if suffix == ".org":  # where "# " begins a comment
            fields = {"title": file.path.stem, **_org_fields(decoded.text)}
        yield from _note(file, FrontMatter(fields, body=decoded.text))
        if decoded.remark:
            yield Remark(file.name, decoded.remark)
        return
    if file.head().startswith(SIGNATURES):
        raise LeftOutError(no_reader(suffix))
    yield from _note(file, FrontMatter(body=file.text(limits)))


def _org_fields(text: str) -> dict[str, Any]:
    """What the keywords at the head of an Org file say: ``#+TITLE:``, ``#+DATE:`` where that is a
    date, and the topics in ``#+FILETAGS:``."""
    fields: dict[str, Any] = {}
    for line in text.splitlines()[:ORG_HEAD_LINES]:
        if not line.startswith(("#", ":")) and line.strip():
            break
        if keyword := ORG_KEYWORD.match(line):
            fields.setdefault(keyword[1].lower(), keyword[2].strip())
    tags = [tag for tag in fields.pop("filetags", "").split(":") if tag.strip()]
    made = {"created": day[1]} if (day := ORG_DAY.search(fields.pop("date", ""))) else {}
    return {**fields, **made, **({"topics": tags} if tags else {})}


def no_reader(suffix: str) -> str:
    """Why a file of an unknown suffix is skipped."""
    if suffix == ".zip":
        return "an archive: name it to import what is in it"
    other = next((taken for taken, others in SAVED_AS.items() if suffix in others), "")
    said = f": save it as {other}" if other else ""
    return f"no reader for {suffix}{said}" if suffix else "no reader for files without a suffix"


def _remark(file: SourceFile, line: int | str | None, reason: str) -> Remark:
    return Remark(f"{file.name}:{line}" if line else file.name, reason)


def _note(file: SourceFile, read: FrontMatter) -> Iterator[Item]:
    """A file as one memory; where its body is blank, by the front matter's own ``text``.

    A field that cannot be read becomes metadata, with a warning; in an export, which no person
    wrote, it raises UnreadableError. Raises LeftOutError for a blank note.
    """
    fields, body = dict(read.fields), read.body.removesuffix("\n")
    if not body.strip() and isinstance(fields.get("text"), str):
        body = str(fields.pop("text"))
    exported, kept, remarks = Record(fields).is_export, dict[str, Any](), list[Remark]()
    if not body.strip() and not (exported and fields.get("title")):
        raise LeftOutError("empty")
    while True:
        try:
            draft = Record(dict(fields)).draft(body)
            break
        except FieldError as error:
            line = read.lines.get(error.key)
            if exported or error.key not in fields:
                raise UnreadableError(error.reason, line) from None
            kept[error.key] = as_data(fields.pop(error.key))
            remarks.append(_remark(file, line, f"{error.reason}; {KEPT_AS_METADATA}"))
    draft = replace(draft, metadata={**draft.metadata, **kept}) if kept else draft
    yield replace(draft, title=draft.title or "") if exported else _titled(file, draft)
    yield from remarks


def _titled(file: SourceFile, draft: MemoryDraft) -> MemoryDraft:
    return completed(file, with_text_topics(draft))


def completed(file: SourceFile, draft: MemoryDraft) -> MemoryDraft:
    """The draft with what a note says only by its headings, name and time stamp.

    A time stamp is that of the last change: with an edit it moves on, and the note is no younger.
    """
    stem = None if file.stream is not None else file.path.stem
    created = draft.created or (date_in_name(stem) if stem else None)
    updated = draft.updated
    if created is None and updated is None and file.modified is not None:
        updated = format_epoch(int(file.modified))
    return replace(
        draft,
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
    label="Markdown",
)
TEXT = Reader("text", (".txt", ".rst", ".org"), read_text)
