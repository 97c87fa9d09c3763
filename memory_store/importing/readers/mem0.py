"""Memories of mem0: JSON objects, as its client lists them and its page exports them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_store.importing.readers.export_fields import kept, moment, topics_of
from memory_store.records import MemoryDraft

SOURCE = "mem0"
READ = ("id", "memory", "categories", "metadata", "created_at", "updated_at", "hash", "score")


def mem0_memory(values: Mapping[str, Any]) -> MemoryDraft | None:
    """The memory that an object of mem0 is; ``None`` for another object."""
    text, name = values.get("memory"), values.get("id")
    if not isinstance(text, str) or not isinstance(name, str) or not name:
        return None
    more, categories = values.get("metadata"), values.get("categories")
    return MemoryDraft(
        text,
        topics=topics_of(categories if isinstance(categories, list) else ()),
        created=moment(values.get("created_at")),
        updated=moment(values.get("updated_at")),
        metadata=kept(
            {
                **{key: value for key, value in values.items() if key not in READ},
                **(more if isinstance(more, dict) else {}),
            }
        ),
        source=SOURCE,
        ref=name,
    )
