"""Which names are met in a folder or an archive, and which are passed over."""

from __future__ import annotations

MAX_FOLDER_DEPTH = 64  # folders below the one that was named
NEVER_TAKEN = (".", "~$")  # ~$report.docx: the note of an office program that it is open
FOLDERS_NEVER_ENTERED = frozenset({"node_modules", "__pycache__", "__MACOSX"})
"""Besides every name that begins with a dot (``.git``, ``.obsidian``, ``.trash``)."""


def is_passed_over(name: str) -> bool:
    """Whether a file or folder of that name is never looked at in a folder."""
    return name.startswith(NEVER_TAKEN) or name in FOLDERS_NEVER_ENTERED
