"""What is done with an opened vault, one kind of work a module.

writes       add memories, import files, index again
edits        change, add and delete memories, one or many at once
publication  a memory's content in another collection, too
reads        find a memory by what names it, open it, list many
collections  collections with their settings, and the topics in them
members      who may use a collection
settings     what holds for the whole vault, and where its topics are kept
statistics   sizes and counts
searches     what a search runs on, and its models

:class:`memory_store.store.MemoryStore` is the way in: it keeps locks away while these run.
They are imported when they are first used: a command that searches needs none of those that write.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory_store.actions import (
        edits,
        key_devices,
        key_rotation,
        key_sharing,
        key_shredding,
        key_slots,
        publication,
        settings,
        writes,
    )

__all__ = [
    "edits",
    "key_devices",
    "key_rotation",
    "key_sharing",
    "key_shredding",
    "key_slots",
    "publication",
    "settings",
    "writes",
]


def __getattr__(name: str) -> Any:
    """Import a module of this package when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
