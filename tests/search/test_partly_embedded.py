"""While a vault is still being embedded, what has no vectors yet is judged by its words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memory_store.late_vectors import BackgroundEmbedding
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

EMBEDDED = [f"Page {n} of the log: wind, tide and one sail more or less." for n in range(12)]


@pytest.mark.parametrize("later", [1, 12])
def test_all_the_words_of_a_query_outweigh_a_nearness_that_others_cannot_show(
    store: MemoryStore, tmp_path: Path, later: int
) -> None:
    store.add_many([MemoryDraft(text) for text in EMBEDDED])
    for number in range(later):
        words = "The hydrography of the harbour, page by page" if not number else f"Other {number}"
        (tmp_path / f"{number}.md").write_text(f"{words}: soundings, buoys and wrecks. " * 4)
    store.import_paths([tmp_path / f"{number}.md" for number in range(later)], embed=False)
    found = store.search("hydrography page", limit=3)
    assert any(
        "are found by words" in line or "is found by words" in line for line in found.degraded
    )
    assert found.rows[0].title == "0"
    alone = store.search("hydrography page", mode="keyword", limit=3)
    assert found.rows[0].score > 0.4 * alone.rows[0].score


def test_what_is_missing_is_said_to_be_made_where_it_is(store: MemoryStore) -> None:
    store.add_many([MemoryDraft("The sea wall is checked in spring.")])
    store.add_many([MemoryDraft("The harbour wall is painted.")], embed=False)
    (line,) = [one for one in store.search("wall").degraded if "meaning" in one]
    assert "Try: memory-store reindex" in line
    begun: list[Callable[[], object]] = []
    beside = BackgroundEmbedding(store, pytest.fail, lambda _, work, stop: begun.append(work))
    store.embedded_by(beside)
    (line,) = [one for one in store.search("wall").degraded if "meaning" in one]
    assert line.endswith("What is missing is being embedded now.")
    assert "memory-store" not in line
    (work,) = begun
    work()
    assert not [one for one in store.search("wall").degraded if "meaning" in one]
