"""Notes of Apple Notes as other programs export them: one JSON object, or row of a table, a note.

Apple Notes names a note by an address (``x-coredata://…/ICNote/p12``), which its scripts give as
``id`` beside the note as HTML (apple-notes-to-sqlite, scripts in JavaScript). Programs that read
its database give plain text, and tables beside it (apple_cloud_notes_parser,
apple-notes-liberator).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_store.importing.converters.document import table
from memory_store.importing.readers.documents import page_text, require
from memory_store.importing.readers.export_fields import kept, moment, topics_of
from memory_store.importing.source_file import LIMITS
from memory_store.records import MemoryDraft

SOURCE = "Apple Notes"
ATTACHED = "\ufffc"  # stands for an attachment, a picture or a table
ADDRESS = "x-coredata://"
LOCKED = "locked by a password in Apple Notes"
_CREATED = ("created", "creation_time", "creationDate")
_UPDATED = ("updated", "modified", "modify_time", "modificationDate")
_TABLES = ("embedded_objects", "embeddedObjects")


def apple_note(values: Mapping[str, Any], ref: str | None) -> MemoryDraft | str | None:
    """The note that an exported object is, or why it is left out; ``None`` for another object.
    Raises LeftOutError where it is HTML and the extra that reads HTML is missing."""
    name = ref or values.get("uuid") or values.get("id")
    name = name if isinstance(name, str) else ""
    parsed = "note_id" in values and "plaintext" in values
    liberated = isinstance(values.get("embeddedObjects"), list) and "text" in values
    if not (name.startswith(ADDRESS) or parsed or liberated):
        return None
    if values.get("is_password_protected") is True and not values.get("plaintext"):
        return LOCKED
    title = values.get("title") or values.get("name")
    title = title.strip() if isinstance(title, str) else ""
    marks = values.get("hashtags")
    return MemoryDraft(
        _text(values) or title,
        title=title or None,
        topics=topics_of(marks if isinstance(marks, list) else ()),
        created=_first(values, _CREATED),
        updated=_first(values, _UPDATED),
        metadata=kept(
            {
                "folder": folder if isinstance(folder := values.get("folder"), str) else None,
                "account": values.get("account"),
                "pinned": values.get("is_pinned") is True or None,
            }
        ),
        source=SOURCE,
        ref=name or None,
    )


def _text(values: Mapping[str, Any]) -> str:
    """The note as Markdown: of its HTML, else its plain text and the tables that are beside it."""
    html, plain = values.get("body"), values.get("plaintext") or values.get("text")
    if isinstance(html, str) and html.strip():
        require("what Apple Notes gives as HTML", "html")
        return page_text(html, LIMITS)
    parts = [plain.replace(ATTACHED, "").strip() if isinstance(plain, str) else ""]
    objects = next((found for key in _TABLES if isinstance(found := values.get(key), list)), [])
    for one in objects:
        rows = (one.get("table") or one.get("data")) if isinstance(one, dict) else None
        if isinstance(rows, list) and all(isinstance(row, list) for row in rows):
            parts.append(table([str(cell) for cell in row] for row in rows))
    return "\n\n".join(part for part in parts if part)


def _first(values: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((found for name in names if (found := moment(values.get(name)))), None)
