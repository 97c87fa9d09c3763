"""The sources of a vault: what was imported from where, listed and forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest
from reading_files import write

from memory_store.errors import BadInputError, NotFoundError
from memory_store.store import MemoryStore


def test_every_imported_path_is_listed_with_its_options(store: MemoryStore, tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", a="Alpha.", b="Beta.")
    work = write(tmp_path / "work", c="Gamma.")
    store.import_paths([notes])
    store.import_paths([work], collection="work", glob=["*.md"])
    first, second = store.sources()
    assert (first.path, first.collection, first.memories) == (str(notes), "personal", 2)
    assert (second.path, second.collection, second.memories) == (str(work), "work", 1)
    assert second.options["glob"] == ["*.md"]
    assert (first.left_out, second.left_out) == (None, None)


def test_a_source_that_was_removed_is_read_no_more_and_its_memories_stay(
    store: MemoryStore, tmp_path: Path
) -> None:
    kept = write(tmp_path / "kept", a="Alpha.")
    removed = write(tmp_path / "removed", b="Beta.")
    store.import_paths([kept, removed])
    assert store.forget_source(str(removed)) == 1
    write(removed, c="Gamma.")
    assert store.import_paths().imported == 0
    assert [source.path for source in store.sources()] == [str(kept)]
    assert len(store.list()) == 2
    again = store.import_paths([removed])
    assert (again.imported, again.unchanged) == (1, 1)


def test_what_is_no_source_cannot_be_removed(store: MemoryStore, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="memory-store sources lists them"):
        store.forget_source(str(tmp_path))
    with pytest.raises(BadInputError):
        store.import_paths()
