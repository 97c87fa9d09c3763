"""Development sets in sealed vaults, and what only measuring needs: every query embedded once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.development_sets import Part
from memory_store.models.embedder import Embedder, load_embedder
from memory_store.records import ModelUnavailableError, Ranking, Reference
from memory_store.search.context import SearchContext
from memory_store.search.fusion import rrf
from memory_store.search.options import search_options
from memory_store.search.pipeline import rank
from memory_store.store import MemoryStore

BATCH = 512
PASSPHRASE = "for measurement only"
EQUAL = "equal RRF"  # plain reciprocal rank fusion of keyword and vector leg: k 60, equal weights


class Ranker:
    """Ranks in one search context. Every query is embedded once, and every ranking made once."""

    def __init__(self, context: SearchContext, references: Sequence[Reference]) -> None:
        self.context = context
        self._references = references
        self._made: dict[tuple[str, int, str], Ranking] = {}

    def references(self) -> Sequence[Reference]:
        return self._references

    def rank(self, query: str, *, depth: int = 100, **options: Any) -> Ranking:
        key = (query, depth, repr(sorted(options.items())))
        if key not in self._made:
            make = self._equal if options.get("mode") == EQUAL else self._rank
            self._made[key] = make(query, depth, options)
        return self._made[key]

    def _rank(self, query: str, depth: int, options: dict[str, Any]) -> Ranking:
        if options == {"rerank": False}:
            found = self.rank(query, depth=depth)
            if not found.opened:  # nothing was read, so fusion alone decided
                return found
        return rank(self.context, query, search_options(**options), depth)

    def _equal(self, query: str, depth: int, options: dict[str, Any]) -> Ranking:
        legs = [self.rank(query, depth=depth, mode=mode) for mode in ("keyword", "vector")]
        scores = rrf([[memory for memory, _ in leg.results] for leg in legs], k=60)
        ordered = sorted(scores.items(), key=lambda item: -item[1])[:depth]  # ties: keywords first
        return Ranking(tuple(ordered), pool=len(scores), opened=0)


class RememberedQueries:
    """An embedder that embeds no query twice; everything else is the real one's."""

    def __init__(self, real: Embedder) -> None:
        self._real = real
        self._known: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def embed_query(self, text: str) -> Any:
        if text not in self._known:
            self._known[text] = self._real.embed_query(text)
        return self._known[text]

    def embed_queries(self, texts: Sequence[str]) -> Any:
        return np.array([self.embed_query(text) for text in texts])


class SealedPart(Ranker):
    """A part of a set in an encrypted vault at ``path``, made there when it is not."""

    def __init__(self, part: Part, path: Path, reranker: str | None = None) -> None:
        self.part = part
        if path.exists():
            self.store = MemoryStore.open(path, passphrase=PASSPHRASE)
        else:
            self.store, _ = MemoryStore.create(path, passphrase=PASSPHRASE)
        self.float32 = self._fill(path.with_suffix(".float32.npz"))
        context = self.store.search_context()
        context = replace(
            context,
            embedder=_remembering(context.embedder),
            reranker=_chosen(context.reranker, reranker),
            expander=None,  # whatever the machine has chosen, nothing is sent anywhere
        )
        super().__init__(context, self.store.references())

    def _fill(self, kept: Path) -> dict[str, Any]:
        """Add what is missing. Returns the vectors as the model made them, by :func:`mark` of
        their text: the vault keeps half their digits.
        """
        present = self.store.stats()["memories"]
        drafts = self.part.records
        if present < len(drafts):
            with recorded() as made:
                for start in range(present, len(drafts), BATCH):
                    self.store.add_many(drafts[start : start + BATCH])
            if not present:
                np.savez(kept, marks=np.array(list(made)), vectors=np.array(list(made.values())))
        if not kept.exists():
            return {}
        with np.load(kept) as arrays:
            return dict(zip(arrays["marks"].tolist(), arrays["vectors"], strict=True))

    def close(self) -> None:
        self.store.close()


@contextmanager
def recorded() -> Iterator[dict[str, Any]]:
    """What the usual model embeds meanwhile: :func:`mark` of each text → float32 vector."""
    embedder = load_embedder()
    real, made = embedder.embed, {}

    def embed(texts: Sequence[str]) -> Any:
        vectors = real(texts)
        made.update(zip(map(mark, texts), vectors, strict=True))
        return vectors

    embedder.embed = embed  # type: ignore[method-assign]
    try:
        yield made
    finally:
        del embedder.embed


def mark(text: str) -> str:
    """A short name for a text: its hash."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _remembering(load: Callable[..., Embedder]) -> Callable[..., Any]:
    known: dict[int, RememberedQueries] = {}

    def loaded(*collection: str) -> Any:
        real = load(*collection)
        return known.setdefault(id(real), RememberedQueries(real))

    return loaded


def _chosen(load: Callable[..., Any], name: str | None) -> Callable[..., Any]:
    """The reranker of that name, unless a run asks for another; none unless one is named."""

    def loaded(asked: str | None) -> Any:
        if asked is None and name is None:
            raise ModelUnavailableError("measured without a reranker", "--reranker NAME")
        return load(asked or name)

    return loaded
