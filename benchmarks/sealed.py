"""Development sets in sealed vaults, ranked there. Every query is embedded once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from benchmarks.development_sets import Part
from benchmarks.remembering import keep_vectors, kept_vectors, recorded, remembering
from memory_store.errors import ModelUnavailableError
from memory_store.records import Ranking, Reference, search_request
from memory_store.search.context import SearchContext
from memory_store.search.fusion.rank_fusion import rrf
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

    def forget(self) -> None:
        """Rank anew what was ranked, as after a change of the context."""
        self._made.clear()

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
        return rank(self.context, search_request(query, **options), depth)

    def _equal(self, query: str, depth: int, options: dict[str, Any]) -> Ranking:
        legs = [self.rank(query, depth=depth, mode=mode) for mode in ("keyword", "vector")]
        scores = rrf([[memory for memory, _ in leg.results] for leg in legs], k=60)
        ordered = sorted(scores.items(), key=lambda item: -item[1])[:depth]  # ties: keywords first
        return Ranking(tuple(ordered), pool=len(scores), opened=0)


class SealedPart(Ranker):
    """A part of a set in an encrypted vault at ``path``, made there when it is not.

    ``known`` are vectors of its texts as another part's ``float32``: they are not made again. What
    was embedded, queries too, is kept beside the vault for the next run. Only the first documents,
    the share ``embedded`` of all, get vectors.
    """

    def __init__(
        self,
        part: Part,
        path: Path,
        reranker: str | None = None,
        known: Mapping[str, Any] | None = None,
        embedded: float = 1.0,
    ) -> None:
        self.part = part
        if path.exists():
            self.store = MemoryStore.open(path, passphrase=PASSPHRASE)
        else:
            self.store, _ = MemoryStore.create(path, passphrase=PASSPHRASE, device_key=False)
        self.float32 = self._fill(path.with_suffix(".float32.npz"), known or {}, embedded)
        self._queries_kept = path.with_suffix(".queries.npz")
        self._queries = kept_vectors(self._queries_kept)
        self._queries_known = len(self._queries)
        context = self.store.search_context()
        context = replace(
            context,
            embedder=remembering(context.embedder, self._queries),
            reranker=_chosen(context.reranker, reranker),
            expander=None,  # whatever the machine has chosen, nothing is sent anywhere
        )
        super().__init__(context, self.store.references())

    def _fill(self, kept: Path, known: Mapping[str, Any], embedded: float) -> dict[str, Any]:
        """Add what is missing. Returns the vectors as the model made them, by the mark of their
        text: the vault keeps half their digits.
        """
        present = self.store.stats()["memories"]
        drafts = self.part.records
        last = round(len(drafts) * embedded)
        if present < len(drafts):
            with recorded(known) as made:
                for start in range(present, last, BATCH):
                    self.store.add_many(drafts[start : min(start + BATCH, last)])
                self.store.add_many(drafts[max(present, last) :], embed=False)
            if not present:
                keep_vectors(kept, made)
        return kept_vectors(kept)

    def close(self) -> None:
        if len(self._queries) > self._queries_known:
            keep_vectors(self._queries_kept, self._queries)
        self.store.close()


def _chosen(load: Callable[..., Any], name: str | None) -> Callable[..., Any]:
    """The reranker of that name, unless a run asks for another; none unless one is named."""

    def loaded(asked: str | None) -> Any:
        if asked is None and name is None:
            raise ModelUnavailableError("measured without a reranker", "--reranker NAME")
        return load(asked or name)

    return loaded
