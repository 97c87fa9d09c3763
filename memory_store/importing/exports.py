"""What in an export of another program holds no memory, though a reader would take it.

An export is known by the names in it that its program gives. Its memories are read by their
content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from memory_store.importing.readers import apple_notes
from memory_store.importing.source_file import Found, Skip, SourceFile

CONVERSATIONS = re.compile(r"conversations(-\d+)?\.json")
BESIDE_CONVERSATIONS = frozenset(
    {
        *("chat.html", "user.json", "users.json", "user_settings.json", "message_feedback.json"),
        *("shared_conversations.json", "model_comparisons.json", "group_chats.json", "sora.json"),
        *("export_manifest.json", "shopping.json", "projects.json", "memories.json"),
    }
)
"""What ChatGPT and Claude put beside the conversations."""
CONTENTS, LABELS = "archive_browser.html", "Labels.txt"
NO_NOTE = "it says what is in the Takeout"
NO_CONVERSATION = "a part of the export that holds no conversation"
KEEP = "Keep"  # the folder of Google Keep in a Takeout
KEPT_TWICE = "the same note as its .json"
TABLE_TWICE = "the same table as the one of all its rows"
ALL_ROWS = "_all.csv"  # of a database of Notion, beside the rows of one view of it


def arranged(found: Iterable[Found]) -> list[Found]:
    """The files of an archive or an upload. Those that say once more what others say are left out
    by name."""
    files = apple_notes.told(found)
    names = {_name(one) for one in files if isinstance(one, SourceFile)}
    folders = {name.parent for name in names if CONVERSATIONS.fullmatch(name.name)}
    return [
        Skip(one.name, reason)
        if isinstance(one, SourceFile) and (reason := _left_out(_name(one), names, folders))
        else one
        for one in files
    ]


def _name(file: SourceFile) -> PurePosixPath:
    return PurePosixPath(file.path.as_posix())


def _left_out(
    name: PurePosixPath, names: set[PurePosixPath], conversations: set[PurePosixPath]
) -> str | None:
    if name.parent in conversations and name.name in BESIDE_CONVERSATIONS:
        return NO_CONVERSATION
    if name.parent.name == KEEP and name.suffix == ".html" and name.with_suffix(".json") in names:
        return KEPT_TWICE
    if name.name == CONTENTS or (name.parent.name == KEEP and name.name == LABELS):
        return NO_NOTE
    if name.suffix == ".csv" and name.with_name(f"{name.stem}{ALL_ROWS}") in names:
        return TABLE_TWICE
    return None
