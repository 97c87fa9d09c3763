"""What the sealed keyword leg is held against: SQLite's FTS5 over the same plain terms."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import numpy as np

from memory_store.records import search_request
from memory_store.search.context import SearchContext
from memory_store.search.query.analysis import analyse
from memory_store.search.query.language import parse
from memory_store.text.identifiers import CODE, file_name, path_terms
from memory_store.text.tokens import term, terms


class PlainKeywords:
    """An FTS5 index over the same memories' stems, each written as one plain token."""

    def __init__(self, context: SearchContext) -> None:
        self._context = context
        snapshot = context.snapshot
        self._languages = sorted(
            {code for c in snapshot.collections for code in snapshot.languages_in(c)}
        )
        self._fts = sqlite3.connect(":memory:")
        self._fts.execute("create virtual table plain using fts5(id unindexed, title, body)")
        self._contents: dict[str, str] = {}
        self._ids = [""] * len(snapshot.alive)
        ordinals = [int(ordinal) for ordinal in np.flatnonzero(snapshot.alive)]
        for ordinal, memory in zip(ordinals, context.open_memories(ordinals), strict=True):
            self._ids[ordinal] = memory.id
            self._contents[memory.id] = memory.text if memory.text.strip() else memory.title
            language = snapshot.language(ordinal)
            title, body = terms(memory.title, language), terms(memory.text, language)
            if language == CODE:
                body = [*body, *path_terms(memory.source, memory.ref)]
            else:
                named = terms(file_name(memory.ref), language)
                body = [*body, *{*named}.difference(title, body)]
            columns = [" ".join(_token(language, stem) for stem in one) for one in (title, body)]
            self._fts.execute("insert into plain values (?, ?, ?)", (memory.id, *columns))
        self._fts.execute("create virtual table words using fts5vocab(plain, row)")
        self._held = dict(self._fts.execute("select term, doc from words").fetchall())
        self._total = len(self._contents)

    def agrees(self, query: str, ranked: Sequence[str]) -> bool:
        """Whether memories are ``ranked`` as FTS5 ranks them. Equal scores may swap.

        Memories that share one content count once, as in every search.
        """
        scores = self.scores(query)
        best: dict[str, float] = {}
        for memory, score in scores.items():
            content = self._contents[memory]
            best[content] = min(score, best.get(content, 0.0))
        expected = sorted(best.values())[: len(ranked)]
        ours = [scores.get(memory, 0.0) for memory in ranked]
        return len(expected) == len(ours) and np.allclose(expected, ours, rtol=1e-4)

    def scores(self, query: str) -> dict[str, float]:
        """Memory id → bm25() (smaller is better) of every memory that holds a query word and may be
        an answer: what is superseded may not.

        A word that has one stem in each language of the vault is one term to ours and several to
        FTS5, so vaults of several languages are scored word by word from FTS5's own statistics.
        """
        options = search_request(query)
        asked = analyse(parse(options), self._context, options)
        wanted = {self._ids[ordinal] for ordinal in np.flatnonzero(asked.mask)}
        totals: dict[str, float] = {}
        for word in asked.keywords:
            stems = {_token(code, term(word, code)) for code in self._languages} & self._held.keys()
            found: dict[str, float] = {}
            held = self._holding(stems)
            for stem in sorted(stems):
                ratio = _idf(self._total, held) / _idf(self._total, self._held[stem])
                for memory, score in self._fts.execute(
                    "select id, bm25(plain, 0, 1, 1) from plain where plain match ?",
                    (f'"{stem}"',),
                ):
                    found[memory] = found.get(memory, 0.0) + score * ratio
            for memory, score in found.items():
                totals[memory] = totals.get(memory, 0.0) + score
        return {memory: score for memory, score in totals.items() if memory in wanted}

    def _holding(self, stems: set[str]) -> int:
        """How many memories hold any of the spellings."""
        if len(stems) < 2:
            return sum(self._held[stem] for stem in stems)
        match = " OR ".join(f'"{stem}"' for stem in stems)
        counted = self._fts.execute("select count(*) from plain where plain match ?", (match,))
        return int(counted.fetchone()[0])


def is_plain(query: str) -> bool:
    """Whether a query is words alone: no phrase, exclusion or filter narrows what is ranked."""
    parsed = parse(search_request(query))
    narrowed = (parsed.required, parsed.excluded, parsed.topics, parsed.types, parsed.collections)
    return not any((*narrowed, parsed.since, parsed.until))


def _idf(total: int, held: int) -> float:
    """FTS5's inverse document frequency (fts5_aux.c): never below 1e-6."""
    return max(1e-6, float(np.log((total - held + 0.5) / (held + 0.5))))


def _token(language: str, stem: str) -> str:
    return f"{language}x{stem.encode('utf-8', 'surrogatepass').hex()}"
