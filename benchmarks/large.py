"""What grows with a vault, at 100,000 notes and a million: unlocking, legs, searches, memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.cold import Started, cold_lines
from benchmarks.file_sizes import file_line, index_line
from benchmarks.generated import IntoFts5, draw_vault
from benchmarks.peers import Fts5
from benchmarks.processes import opened_process
from benchmarks.report import Measured
from benchmarks.searches import answered_line, hybrid_lines, keyword_lines, like_lines, unlock_line
from memory_store.models.embedder import Embedder
from memory_store.store import MemoryStore

MOST_TEXTS = 100_000  # notes whose texts are sealed, too; legs open none


def large_lines(folder: Path, notes: int, model: Embedder | None) -> Iterator[Measured]:
    """Everything that is measured on a drawn vault of so many ``notes``."""
    key_file = folder / "keys" / "bench.key"
    key_file.parent.mkdir(parents=True)
    texts = notes <= MOST_TEXTS
    fts5 = folder / "fts5.db"
    with IntoFts5(fts5) as filling:
        drawn = draw_vault(folder / "drawn.db", key_file, notes, model, texts=texts, also=[filling])
    name = "words" if model is None else "words and vectors"
    yield unlock_line(name, drawn.path, key_file, notes)
    queries = drawn.queries
    with MemoryStore.open(drawn.path, key_file=key_file) as store:
        yield from keyword_lines(store, queries, notes, Fts5(fts5))
        if texts:
            yield answered_line(store, queries, notes, Fts5(fts5))
            yield from like_lines(store, queries, notes)
            if model is not None:
                yield from hybrid_lines(store, queries, notes, model)
        yield index_line(name, store, notes, drawn.text_bytes)
    filed = name if texts else f"{name}, no texts"
    for called, path in ((filed, drawn.path), ("plain FTS5", fts5)):
        yield file_line(called, path, notes, drawn.text_bytes)
    for mode in ["keyword"] + ["hybrid"] * (model is not None):
        yield opened_process(notes, drawn.path, key_file, mode, queries, texts=texts)
    if texts:
        vectors = None if model is None else drawn.path
        yield from cold_lines(Started(notes, key_file, drawn.path, queries[0], vectors))
