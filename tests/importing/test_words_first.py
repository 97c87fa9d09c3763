"""An import that writes words first: all can be searched before the first vector is made."""

from __future__ import annotations

from pathlib import Path

import pytest
from reading_files import write

from memory_store.importing.job import ImportJob, ImportRequest
from memory_store.records import Embedding, ImportReport
from memory_store.store import MemoryStore

NOTES = {f"note{n}": f"# Note {n}\n\nThe pump number {n} is primed by hand." for n in range(12)}


def found(store: MemoryStore) -> list[tuple[str, float]]:
    rows = store.search("how is the pump primed", limit=12).rows
    return [(str(row.title), round(row.score, 4)) for row in rows]


def test_all_can_be_searched_by_words_before_the_first_vector_is_made(
    store: MemoryStore, tmp_path: Path
) -> None:
    notes = write(tmp_path / "notes", **NOTES)
    seen: list[tuple[int, int, int]] = []

    def in_words(report: ImportReport) -> None:
        rows = store.search("pump", mode="keyword", limit=20).rows
        seen.append((report.imported, len(rows), store.stats()["vectors"]))

    request = ImportRequest.of_paths(notes)
    report = store.run_import(ImportJob(request=request, words_first=True, in_words=in_words))
    assert seen == [(12, 12, 0)]
    assert report.imported == 12
    assert store.stats()["vectors"] >= 12
    assert store.reindex() == 0


def test_an_import_that_is_left_while_it_embeds_keeps_its_words_and_goes_on(
    store: MemoryStore, tmp_path: Path
) -> None:
    notes = write(tmp_path / "notes", **NOTES)

    def leave(_: Embedding) -> None:
        raise KeyboardInterrupt

    request = ImportRequest.of_paths(notes)
    with pytest.raises(KeyboardInterrupt):
        store.run_import(ImportJob(request=request, words_first=True, embedding=leave))
    assert len(store.search("pump", mode="keyword", limit=20).rows) == 12
    again = store.run_import(ImportJob(request=request, words_first=True))
    assert (again.imported, again.unchanged) == (0, 12)
    assert store.reindex() == 0


def test_a_folder_that_is_not_there_is_named_before_anything_else_is_embedded(
    store: MemoryStore, tmp_path: Path
) -> None:
    store.import_paths(write(tmp_path / "notes", **NOTES), embed=False)
    request = ImportRequest.of_paths(tmp_path / "nots")
    report = store.run_import(ImportJob(request=request, words_first=True))
    assert report.failed == 1
    assert store.stats()["vectors"] == 0


def test_results_are_those_of_an_import_that_embeds_each_batch(
    store: MemoryStore, tmp_path: Path
) -> None:
    notes = write(tmp_path / "notes", **NOTES)
    request = ImportRequest.of_paths(notes)
    store.run_import(ImportJob(request=request, words_first=True))
    words_first = found(store)
    for memory in store.list(limit=20):
        store.delete(memory.id)
    store.run_import(ImportJob(request=request))
    assert sorted(found(store)) == sorted(words_first)


def test_a_search_says_once_how_many_memories_it_finds_by_meaning(
    store: MemoryStore, tmp_path: Path
) -> None:
    store.import_paths([write(tmp_path / "first", **NOTES)])
    assert not [line for line in store.search("pump").degraded if line.startswith("meaning")]
    store.import_paths([write(tmp_path / "later", well="The well is deep.")], embed=False)
    (line,) = (line for line in store.search("pump").degraded if line.startswith("meaning"))
    assert line.startswith("meaning: 12 of 13 memories")
    assert f"memory-store reindex {store.path}" in line
    store.reindex()
    assert not [line for line in store.search("pump").degraded if line.startswith("meaning")]
