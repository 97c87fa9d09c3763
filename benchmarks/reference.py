"""What sealed search is held against: FTS5 over plain terms, and an exhaustive vector scan."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import numpy as np

from memory_store.records import SearchOptions
from memory_store.search.analysis import analyse
from memory_store.search.pipeline import rank
from memory_store.search.query import parse
from memory_store.store import MemoryStore
from memory_store.text.tokens import term, terms


class PlainKeywords:
    """An FTS5 index over the same memories' stems, each written as one plain token."""

    def __init__(self, store: MemoryStore) -> None:
        self._context = store.search_context()
        snapshot = self._context.snapshot
        self._languages = sorted(
            {code for c in snapshot.collections for code in snapshot.languages_in(c)}
        )
        self._fts = sqlite3.connect(":memory:")
        self._fts.execute("create virtual table plain using fts5(ref unindexed, title, body)")
        self.contents: dict[str, tuple[str, str]] = {}
        for memory in store.list(limit=snapshot.total):
            self.contents[str(memory.ref)] = (memory.title, memory.text)
            ordinal = snapshot.ordinal_of(memory.id)
            assert ordinal is not None
            language = snapshot.language(ordinal)
            columns = [
                " ".join(_token(language, stem) for stem in terms(text, language))
                for text in (memory.title, memory.text)
            ]
            self._fts.execute("insert into plain values (?, ?, ?)", (memory.ref, *columns))

    def ranked_scores(self, query: str) -> tuple[dict[str, float], list[float]]:
        """The scores of :meth:`scores`, and those of distinct contents, best first."""
        scores = self.scores(query)
        distinct = {self.contents[ref]: score for ref, score in scores.items()}
        return scores, sorted(distinct.values())

    def scores(self, query: str) -> dict[str, float]:
        """Reference → bm25() (smaller is better) of every memory that holds a query word.

        A word that has one stem in each language of the vault is one term to ours and several to
        FTS5, so vaults of several languages are scored word by word from FTS5's own statistics.
        """
        options = SearchOptions()
        keywords = analyse(parse(query, options), self._context, options).keywords
        totals: dict[str, float] = {}
        for word in keywords:
            stems = dict.fromkeys(_token(code, term(word, code)) for code in self._languages)
            found: dict[str, float] = {}
            match = " OR ".join(f'"{stem}"' for stem in stems)
            held = self._matching(match)
            for stem in stems:
                for ref, score in self._fts.execute(
                    "select ref, bm25(plain, 0, 1, 1) from plain where plain match ?",
                    (f'"{stem}"',),
                ):
                    found[ref] = found.get(ref, 0.0) + score * self._idf_ratio(stem, held)
            for ref, score in found.items():
                totals[ref] = totals.get(ref, 0.0) + score
        return totals

    def _matching(self, match: str) -> int:
        return int(
            self._fts.execute(
                "select count(*) from plain where plain match ?", (match,)
            ).fetchone()[0]
        )

    def _idf_ratio(self, stem: str, held: int) -> float:
        """The idf of the word over that of this one spelling of it (1 where there is one)."""
        alone = self._matching(f'"{stem}"')
        if alone == held:
            return 1.0
        total = int(self._fts.execute("select count(*) from plain").fetchone()[0])
        return _idf(total, held) / _idf(total, alone)


def is_plain(query: str) -> bool:
    """Whether a query is words alone: no phrase, exclusion or filter narrows what is ranked."""
    parsed = parse(query, SearchOptions())
    narrowed = (parsed.required, parsed.excluded, parsed.topics, parsed.types, parsed.collections)
    return not any((*narrowed, parsed.since, parsed.until))


def _idf(total: int, held: int) -> float:
    """FTS5's inverse document frequency (fts5_aux.c): never below 1e-6."""
    return max(1e-6, float(np.log((total - held + 0.5) / (held + 0.5))))


def _token(language: str, stem: str) -> str:
    return f"{language}x{stem.encode('utf-8', 'surrogatepass').hex()}"


def exhaustive_nearest(store: MemoryStore, queries: Sequence[str], depth: int = 10) -> float:
    """The mean share of the true nearest ``depth`` memories that the vector leg returns."""
    context = store.search_context()
    snapshot = context.snapshot
    ordinals = [int(i) for i in np.flatnonzero(snapshot.alive)]
    rows = [snapshot.document_vectors(i) for i in ordinals]
    counts = [len(vectors) for vectors in rows]
    matrix = np.concatenate(rows)
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    embedder = store.embedder()
    shares = []
    for query in queries:
        similarities = matrix @ embedder.embed_query(query)
        best = np.maximum.reduceat(similarities, starts)
        nearest = np.sort(best)[::-1][:depth]
        found = rank(context, query, SearchOptions(mode="vector"), depth=depth)
        place = {snapshot.id(o): best[n] for n, o in enumerate(ordinals)}
        least = nearest[-1] - 1e-3
        shares.append(np.mean([place[memory] >= least for memory, _ in found[:depth]]))
    return float(np.mean(shares))
