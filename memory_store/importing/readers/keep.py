"""Notes of Google Keep, as Takeout exports them: one JSON object a note."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_store.importing.readers.export_fields import kept, microseconds, objects, topics_of
from memory_store.records import MemoryDraft

SOURCE = "Google Keep"
TRASHED = "in the trash of Google Keep"


def keep_note(values: Mapping[str, Any]) -> MemoryDraft | str | None:
    """The note that an exported object is, or why it is left out; ``None`` for another object."""
    text, items = values.get("textContent"), values.get("listContent")
    if "isTrashed" not in values or not (isinstance(text, str) or isinstance(items, list)):
        return None
    if values["isTrashed"]:
        return TRASHED
    title = values.get("title")
    title = title.strip() if isinstance(title, str) else ""
    parts = [text.strip() if isinstance(text, str) else "", _task_list(items), _pages(values)]
    said = "\n\n".join(part for part in parts if part)
    made = values.get("createdTimestampUsec")
    return MemoryDraft(
        said or title,
        title=title or None,
        topics=topics_of(one.get("name") for one in objects(values.get("labels"))),
        created=microseconds(made),
        updated=microseconds(values.get("userEditedTimestampUsec")),
        metadata=kept(
            {
                "pinned": values.get("isPinned") is True,
                "archived": values.get("isArchived") is True,
                "attachments": [one.get("filePath") for one in objects(values.get("attachments"))],
            }
        ),
        source=SOURCE,
        ref=str(made) if isinstance(made, int) and made else None,
    )


def _task_list(items: Any) -> str:
    return "\n".join(
        f"- [{'x' if one.get('isChecked') else ' '}] {' '.join(str(one.get('text') or '').split())}"
        for one in objects(items)
    )


def _pages(values: Mapping[str, Any]) -> str:
    """The web pages that Keep has found in a note, with what it says of them."""
    return "\n".join(
        f"{one.get('title') or one['url']}: {one['url']}"
        for one in objects(values.get("annotations"))
        if isinstance(one.get("url"), str) and one["url"] not in str(values.get("textContent"))
    )
