"""Notes of Evernote (ENEX): one memory a note, and one for each attachment that can be read.

Boundary: the file may come from a stranger and is read note by note. XML without entities; a note
over the limit ends the reading; ENML becomes Markdown in the process that reads web pages.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import html
import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from msgspec.structs import replace

from memory_store.importing.readers.documents import page_text, require
from memory_store.importing.readers.export_fields import kept, moment, topics_of
from memory_store.importing.source_file import (
    Attachment,
    Failure,
    Item,
    LeftOutError,
    Limits,
    Reader,
    Skip,
    SourceFile,
    UnreadableError,
)
from memory_store.records import MemoryDraft

SOURCE = "Evernote"
NOTE_LIMIT = 256 * 1024 * 1024  # bytes of one note, with its attachments
NOT_READ = "; the notes from here on were not read"
_MEDIA = re.compile(r"<en-media\b[^>]{0,2000}>")
_HASH = re.compile(r'\bhash\s*=\s*"([0-9a-fA-F]{32})"')
_TODO = re.compile(r"<en-todo\b([^>]{0,200})>")
_PROLOGUE = re.compile(r"\s*(?:<\?xml\b[^>]{0,200}>\s*)?(?:<!DOCTYPE\b[^>]{0,500}>)?")
_TICKED = re.compile(r"^(- \[[ x]\] .*)\n\n(?=- \[[ x]\] )", re.M)
_NAMES = re.compile(r"[\x00-\x1f/\\\[\]|#^]+")


class _Bounded:
    """The bytes of a file, as many for each note as the limit says."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.left = stream, NOTE_LIMIT

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise UnreadableError(f"a note over {NOTE_LIMIT // 1024**2} MB{NOT_READ}")
        return data


def read(file: SourceFile, limits: Limits) -> Iterator[Item | Attachment]:
    """The notes and their attachments. Of a file that is cut off, the notes before."""
    require(".enex", "html", "docx")  # of the second: its parser of XML
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import iterparse

    with file.open() as opened:
        stream = _Bounded(opened)
        events = _known(iterparse(stream, events=("start", "end"), forbid_dtd=False))
        root, refs = None, dict[str, int]()
        try:
            for event, element in events:
                root = element if root is None else root
                if event == "end" and element.tag == "note":
                    yield from _note(file, element, refs, limits)
                    root.clear()
                    stream.left = NOTE_LIMIT
        except ParseError as error:
            line = error.position[0]
            yield Failure(f"{file.name}:{line}", f"no ENEX, broken or cut off{NOT_READ}")
        except DefusedXmlException:
            yield Failure(file.name, f"it declares entities, which no export does{NOT_READ}")


def _known(events: Iterable[Any]) -> Iterator[Any]:
    try:
        yield from events
    except LookupError:
        raise UnreadableError(f"it names an encoding that is not known{NOT_READ}") from None


def _note(
    file: SourceFile, note: Any, refs: dict[str, int], limits: Limits
) -> Iterator[Item | Attachment]:
    title = " ".join((note.findtext("title") or "").split())
    created = moment(note.findtext("created"))
    ref = f"{note.findtext('created') or ''} {title}".strip() or "untitled"
    refs[ref] = refs.get(ref, 0) + 1
    ref = ref if refs[ref] == 1 else f"{ref} {refs[ref]}"
    attached = {one[0]: one[1:] for one in _resources(note)}
    names = {digest: name for digest, (name, _) in attached.items()}
    where = f"{file.name}: {title or ref}"
    try:
        text = _text(note.findtext("content") or "", names, limits)
    except UnreadableError as error:
        yield Failure(where, error.reason)
        return
    known = {name: note.findtext(f"note-attributes/{name}") for name in ("author", "source-url")}
    if text or title:
        yield MemoryDraft(
            text or title,
            title=title or None,
            topics=topics_of(one.text for one in note.findall("tag")),
            created=created,
            updated=moment(note.findtext("updated")),
            metadata=kept({name.replace("-", "_"): value for name, value in known.items()}),
            source=SOURCE,
            ref=ref,
        )
    else:
        yield Skip(where, "empty")
    for name, data in attached.values():
        yield _attachment(file, name, data, (ref, title, created))


def _text(enml: str, names: dict[str, str], limits: Limits) -> str:
    """ENML as Markdown: boxes to tick as text, attachments as links to their memories."""

    def media(found: re.Match[str]) -> str:
        digest = _HASH.search(found[0])
        name = names.get(digest[1].lower()) if digest else None
        return html.escape(f"[[{name}]]") if name else ""

    def box(found: re.Match[str]) -> str:
        return "[x] " if "true" in found[1] else "[ ] "

    page = _TODO.sub(box, _MEDIA.sub(media, _PROLOGUE.sub("", enml, count=1)))
    try:
        text = page_text(page, limits) if page.strip() else ""
    except LeftOutError:
        return ""
    text = text.replace("\\[\\[", "[[").replace("\\]\\]", "]]").replace("\\_", "_")
    text = re.sub(r"^(?:- )?\\?\[( |x)\\?\] ", r"- [\1] ", text, flags=re.M)
    return _TICKED.sub(r"\1\n", text)


def _resources(note: Any) -> Iterator[tuple[str, str, bytes]]:
    """Digest, name and bytes of each attachment. ENML names them by MD5."""
    for number, one in enumerate(note.findall("resource"), 1):
        try:
            data = base64.b64decode("".join((one.findtext("data") or "").split()))
        except (binascii.Error, ValueError):
            data = b""
        given = one.findtext("resource-attributes/file-name") or ""
        name = _NAMES.sub(" ", given).strip()[:200] or f"attachment {number}"
        yield hashlib.md5(data, usedforsecurity=False).hexdigest(), name, data


def _attachment(
    file: SourceFile, name: str, data: bytes, note: tuple[str, str, str | None]
) -> Attachment | Failure:
    ref, title, created = note
    where = f"{file.name}: {title or ref}/{name}"
    if not data:
        return Failure(where, "broken in its note")

    def finish(draft: MemoryDraft) -> MemoryDraft:
        return replace(
            draft,
            title=name,
            created=draft.created or created,
            metadata={**draft.metadata, **({"attached_to": title} if title else {})},
            source=SOURCE,
        )

    inner = SourceFile(
        Path(name), file.root, f"{ref}#{name}", "", where, content=partial(bytes, data)
    )
    return Attachment(inner, finish)


READER = Reader("enex", (".enex",), read, rows=True, streamed=True)
