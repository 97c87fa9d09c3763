"""Searches of one opened vault, each beside the plain way to do the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.legs import leg_lines
from benchmarks.measuring import in_a_row, side_by_side
from benchmarks.peers import Fts5, NumpyPostings, decrypt_bytes
from benchmarks.qmd import Qmd
from benchmarks.report import Line, Proportion
from memory_store.models.embedder import Embedder
from memory_store.records import SearchRequest
from memory_store.search.pipeline import rank
from memory_store.search.query.more_like_this import likeness
from memory_store.store import MemoryStore

NEAREST = 64
UNLOCKS = 9
TOLD_UP_TO = 100_000  # notes: beyond it only the vector leg has a target
IN_A_ROW = "keyword ranking, in a row"
KEYWORD_TARGET = "< 1 ms at 10 k, < 5 ms at 100 k"
HYBRID_TARGET = "< 25 ms at 10 k, < 40 ms at 100 k"
UNLOCK_TARGET = "< 0.3 s at 100 k"


def unlock_line(name: str, path: Path, key_file: Path, size: int) -> Line:
    """From key file to an index that answers, beside decrypting as many bytes in one piece."""

    def unlock(_: object) -> None:
        with MemoryStore.open(path, key_file=key_file) as store:
            store.search_context()

    with MemoryStore.open(path, key_file=key_file) as store:
        sealed = int(store.stats()["index_bytes"])
    taken = side_by_side({"ours": unlock, "aes": decrypt_bytes(sealed)}, range(UNLOCKS))
    return Line(
        f"unlock, {name}",
        size,
        taken["ours"],
        "AES-GCM of the bytes",
        taken["aes"],
        UNLOCK_TARGET,
        0.3 if size <= TOLD_UP_TO else None,
    )


def keyword_lines(
    store: MemoryStore, queries: Sequence[str], size: int, fts5: Fts5, qmd: Qmd | None = None
) -> Iterator[Line]:
    """Eight words: the ranking alone, beside each peer's, in turn with them and in a row."""
    context = store.search_context()
    works: dict[str, Callable[[Any], object]] = {
        "ours": lambda query: rank(context, SearchRequest(query, mode="keyword"), NEAREST),
        "FTS5 bm25": fts5.rank,
        "NumPy postings": NumpyPostings(context, queries).rank,
    }
    if qmd is not None:
        works[f"QMD {qmd.version}"] = qmd.search
    limit = None
    if size <= TOLD_UP_TO:
        limit = max(0.001, 0.001 if size <= 10_000 else 0.005 * size / TOLD_UP_TO)
    in_turn, rows = side_by_side(works, queries), in_a_row(works, queries)
    for name, taken in (("keyword ranking, 8 words", in_turn), (IN_A_ROW, rows)):
        for peer in works:
            if peer != "ours":
                ours, theirs = taken["ours"], taken[peer]
                yield Line(name, size, ours, peer, theirs, KEYWORD_TARGET, limit)


def answered_line(store: MemoryStore, queries: Sequence[str], size: int, fts5: Fts5) -> Line:
    """Eight words, and the whole answer: opened, with its previews."""
    works = {"ours": lambda query: store.search(query, mode="keyword"), "fts5": fts5.answer}
    taken = side_by_side(works, queries)
    ours, theirs = taken["ours"], taken["fts5"]
    return Line("keyword search, answered", size, ours, "FTS5 with snippets", theirs)


def hybrid_lines(
    store: MemoryStore, queries: Sequence[str], size: int, model: Embedder
) -> Iterator[Line | Proportion]:
    """Query embedding, three legs, fusion, opening and previews; no reranker."""
    works = {
        "ours": lambda query: store.search(query, rerank=False),
        "model": model.embed_query,
    }
    taken = side_by_side(works, queries)
    yield Line(
        "hybrid search, answered",
        size,
        taken["ours"],
        "embedding the query",
        taken["model"],
        HYBRID_TARGET,
        0.025 if size <= 10_000 else 0.040,
        "wall",
    )
    yield from leg_lines(store, queries, size)


def like_lines(store: MemoryStore, queries: Sequence[str], size: int) -> Iterator[Line]:
    """More like this: what a memory is searched by, looked up, and the ranking by its words."""
    context = store.search_context()
    found = [rank(context, SearchRequest(query, mode="keyword"), 1) for query in queries]
    ids = [one.results[0][0] for one in found if one.results]
    options = {one: SearchRequest(mode="keyword", like=one) for one in ids}
    works = {
        "looked up": lambda one: likeness(context.snapshot, one),
        "ranked": lambda one: rank(context, options[one], NEAREST),
    }
    taken = side_by_side(works, ids)
    yield Line("more like this, words and topics looked up", size, taken["looked up"])
    yield Line("more like this, ranked by words", size, taken["ranked"])
