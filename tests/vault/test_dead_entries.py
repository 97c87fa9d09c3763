"""Entries that were renewed leave no dead ones behind, which every opening would read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memory_store.records import MemoryDraft
from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore

pytestmark = pytest.mark.in_a_file  # counts rows of its tables
NOTES = 30


def entries_and_changes(path: Path) -> tuple[int, int]:
    connection = sqlite3.connect(path)
    try:
        counts = "select (select sum(documents) from vault_segments), count(*) from vault_changes"
        entries, changes = connection.execute(counts).fetchone()
    finally:
        connection.close()
    return entries, changes


def test_embedding_what_was_imported_by_words_leaves_one_entry_a_memory(
    make_store: Callable[..., MemoryStore], tmp_path: Path
) -> None:
    store, folder = make_store(), tmp_path / "notes"
    folder.mkdir()
    for number in range(NOTES):
        (folder / f"n{number}.md").write_text(f"Weir number {number} is below the mill.")
    store.import_paths([folder], embed=False)
    before = {row.id for row in store.search("weir", mode="keyword", limit=NOTES).rows}
    store.embed_missing()
    assert entries_and_changes(store.path) == (NOTES, 1)
    assert {row.id for row in store.search("weir", mode="keyword", limit=NOTES).rows} == before
    assert store.verify()["failures"] == []


def test_one_who_has_the_vault_open_follows(
    make_store: Callable[..., MemoryStore], key_file: Path, tiny_model: Path
) -> None:
    store = make_store()
    drafts = [MemoryDraft(f"Weir number {number}") for number in range(NOTES)]
    ids = [one.id for one in store.add_many(drafts, embed=False)]
    with MemoryStore.open(store.path, key_file=key_file, embedder=str(tiny_model)) as other:
        assert len(other.search("weir", mode="keyword", limit=NOTES).rows) == NOTES
        store.embed_missing()
        store.delete(ids[0])
        assert len(other.search("weir", mode="keyword", limit=NOTES).rows) == NOTES - 1
        assert len(other.search("weir", mode="vector", limit=NOTES).rows) == NOTES - 1


def test_all_of_a_reindex_leaves_one_entry_a_memory(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store()
    store.add_many([MemoryDraft(f"Weir number {number}") for number in range(NOTES)])
    store.reindex(whole=True)
    assert entries_and_changes(store.path)[0] == NOTES
