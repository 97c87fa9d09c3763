"""Writes folders of notes."""

from __future__ import annotations

from pathlib import Path


def write(folder: Path, **files: str) -> Path:
    """The folder, with a Markdown note of each of these names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder
