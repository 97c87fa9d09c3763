"""When a note was written, as far as its file's time stamps and front matter tell in turn."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import pytest

from memory_store.store import MemoryStore


def stamped(file: Path, text: str, at: str) -> None:
    file.write_text(text)
    os.utime(file, (0, datetime.fromisoformat(at).timestamp()))


def test_an_older_copy_that_is_put_back_is_no_younger_than_itself(
    store: MemoryStore, tmp_path: Path
) -> None:
    note = tmp_path / "note.md"
    stamped(note, "As of 2024.", "2024-05-01T00:00:00Z")
    store.import_paths([note], embed=False)
    stamped(note, "As of 2020.", "2020-05-01T00:00:00Z")
    assert store.import_paths([note], embed=False).replaced == 1
    (memory,) = store.list()
    assert (memory.created, memory.updated) == ("2020-05-01T00:00:00Z", "2020-05-01T00:00:00Z")


@pytest.mark.parametrize(
    ("first", "then", "created"),
    [
        ("2024-05-01T00:00:00Z", "2020-05-01T00:00:00Z", "2020-05-01T00:00:00Z"),
        ("2024-05-01T00:00:00.5Z", "2024-05-01T00:00:00Z", "2024-05-01T00:00:00Z"),
        ("2024-05-01T00:00:00Z", "2024-05-01T00:00:00.5Z", "2024-05-01T00:00:00Z"),
    ],
)
def test_a_change_that_is_dated_back_takes_the_beginning_with_it(
    store: MemoryStore, tmp_path: Path, first: str, then: str, created: str
) -> None:
    note = tmp_path / "note.md"
    for updated in (first, then):
        note.write_text(f"---\nupdated: {updated}\n---\nAlpha.")
        store.import_paths([note], embed=False)
    (memory,) = store.list()
    assert memory.created == created
    assert datetime.fromisoformat(memory.updated) == datetime.fromisoformat(then)


def test_an_edited_file_makes_its_memory_no_younger_unless_it_says_when_it_was_written(
    store: MemoryStore, tmp_path: Path
) -> None:
    note = tmp_path / "note.md"
    written, changed = "2020-05-01T00:00:00Z", "2024-05-01T00:00:00Z"

    def imported(text: str, at: str) -> tuple[str, str]:
        stamped(note, text, at)
        store.import_paths([note], embed=False)
        (memory,) = store.list()
        return memory.created[:4], memory.updated[:4]

    assert imported("Alpha.", written) == ("2020", "2020")
    assert imported("Alpha, mended.", changed) == ("2020", "2024")
    assert imported("---\ncreated: 2018-05-01\n---\nAlpha.", changed)[0] == "2018"
    assert imported("Alpha, mended again.", changed) == ("2018", "2024")
