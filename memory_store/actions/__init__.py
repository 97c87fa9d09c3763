"""What a store can do: one function an action.

searches     search, and the view of the vault that a search runs on
reads        find a memory by what names it, open it, list many
topics       which there are, and how many memories each has
writes       add memories, import files, index again
edits        change, add and delete memories, one or many at once; publish one elsewhere
code         source code by its syntax: outlines, symbols, who depends on what, parts of files
collections  their names, settings and members, how current they are; delete one by its key
review       what may want putting in order, and what is done with a pair
suggestions  topics for a memory, as its neighbours have them
landscape    memories that belong together, and what stands there
key_…        slots, devices, rotation, sharing
saved_searches  searches under a name, and their feeds
settings     what holds for the whole vault, and where its topics are kept
links        what links to what, and what is near
mentions     what names a memory without a link to it
sources      which paths were imported, and which are read again
vaults       models, sizes and counts, and whether the vault is what it was
trash        what was deleted or replaced: list, put back, erase; undo the last change
assistants_work  all that one assistant did, taken back at once
words        whether some occur, and which begin with some letters
trail        who did what
sync         exchanges with other copies of the vault
export       memories as plain files

:mod:`memory_store.store` gives each its name. What is not imported there is imported when it is
first used: a command that searches needs nothing that writes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory_store.actions import (
        assistants_work,
        code,
        edits,
        key_devices,
        key_rotation,
        key_sharing,
        key_slots,
        landscape,
        links,
        review,
        saved_searches,
        settings,
        sources,
        suggestions,
        sync,
        topics,
        trail,
        trash,
        words,
        writes,
    )


def __getattr__(name: str) -> Any:
    """Import a module of this package when it is first asked for."""
    if name.startswith("_"):
        raise AttributeError(name)
    return import_module(f"{__name__}.{name}")
