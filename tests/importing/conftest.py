"""A folder to put files into, and the import's own walk and readers to read it back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_store.records import MemoryDraft

sys.path.insert(0, str(Path(__file__).parent))  # reading_files

from reading_files import Outcome, read


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty, so that messages name files by short relative paths."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def put(here: Path) -> Callable[[str, str | bytes], Path]:
    """Writes a file below the current folder, with the folders it needs."""

    def put(name: str, content: str | bytes) -> Path:
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return put


@pytest.fixture
def rows(put: Callable[[str, str | bytes], Path]) -> Callable[[str, str | bytes], Outcome]:
    """What a file of this name and content becomes."""
    return lambda name, content: read(put(name, content).name)


@pytest.fixture
def note(put: Callable[[str, str | bytes], Path]) -> Callable[[str | bytes], MemoryDraft]:
    """What a note of this content becomes."""
    return lambda content: read(put("a.md", content)).only
