"""The same search with nothing sealed: what encryption costs in ranking is measured against it.

The search code is the product's own, from analysis to the order of fusion. What it reads is made
here, from the opened memories and the vectors that the model gave: terms, pairs and topics carry
numbers in place of keyed hashes (no key, no collision, nothing cut to 64 or 32 bits), and vectors
are scanned in float32, one by one. No cipher, no vault. It lives among the benchmarks because
nothing in the product may be able to do this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from benchmarks.remembering import mark
from benchmarks.sealed import Ranker, SealedPart
from memory_store.crypto.blinding import GRAM_BITS
from memory_store.index.numpy_vectors import best_windows
from memory_store.index.segment import IndexEntry, build
from memory_store.index.snapshot import Part, Snapshot
from memory_store.index.vectors import VectorHits
from memory_store.records import Memory
from memory_store.session.entries import (
    Indexable,
    Making,
    TermHashes,
    Windows,
    embedded_text,
    index_entries,
)
from memory_store.text.canonical import normalise_topic
from memory_store.vault.settings import CollectionSettings


class PlainNumbers:
    """What stands for words where nothing is sealed: numbers, in the order they are first seen."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], int] = {}

    def _number(self, *what: Any) -> int:
        return self._known.setdefault(what, len(self._known) + 1)

    def term(self, language: str, stem: str) -> int:
        return self._number("term", language, stem)

    def pair(self, first: int, second: int) -> int:
        return self._number("pair", first, second) << 32  # the index looks at the upper half

    def pairs(self, terms: Sequence[int]) -> npt.NDArray[np.uint64]:
        return np.array([self.pair(*two) for two in pairwise(terms)], dtype=np.uint64)

    def grams(self, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
        return (numbers & np.uint64((1 << GRAM_BITS) - 1)).astype(np.uint32)

    def topic(self, normalised: str) -> bytes:
        return self._number("topic", normalised).to_bytes(8, "big") + bytes(8)


class ExactVectors:
    """Every window against the query in float32, exhaustively."""

    kind = "exact"
    reason = "to compare with"

    def __init__(self, snapshot: Snapshot, vectors: Sequence[npt.NDArray[np.float32]]) -> None:
        self._snapshot = snapshot
        self._matrix = np.concatenate(vectors)
        counts = [len(rows) for rows in vectors]
        self._ordinals = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        self._places = np.concatenate([np.arange(n, dtype=np.int32) for n in counts])

    def search(
        self, query: npt.NDArray[Any], k: int, mask: npt.NDArray[np.bool_] | None = None, **_: Any
    ) -> VectorHits:
        unit = np.asarray(query, np.float32) / np.linalg.norm(query)
        # einsum adds every row in one order, so that equal texts get equal cosines
        cosines = np.einsum("ij,j->i", self._matrix, unit)
        kept = np.flatnonzero((self._snapshot.alive if mask is None else mask)[self._ordinals])
        return best_windows(
            self._snapshot, self._ordinals[kept], cosines[kept], self._places[kept], k
        )

    def wipe(self) -> None:
        """There is nothing secret here."""


class PlainPart(Ranker):
    """The memories of a sealed part, ranked with nothing sealed.

    ``float32`` is the share of vectors that are the model's own; the others are the vault's.
    """

    def __init__(self, sealed: SealedPart) -> None:
        numbers = PlainNumbers()
        self._hashes = TermHashes(numbers)  # type: ignore[arg-type]
        self._sealed = sealed
        self._exact: list[npt.NDArray[np.float32]] = []
        self._from_model = 0
        parts = []
        for part in sealed.context.snapshot.parts:  # as the vault divides them, sealed or not
            segment = build(list(self._entries(part, numbers)), part.segment.dimensions)
            parts.append((segment, np.ones(segment.count, dtype=np.bool_), part.collection))
        snapshot = Snapshot(parts)
        context = replace(
            sealed.context,
            snapshot=snapshot,
            vector_index=ExactVectors(snapshot, self._exact),
            blinder=lambda collection: numbers,  # type: ignore[arg-type, return-value]
        )
        super().__init__(context, sealed.references())
        self.float32 = self._from_model / max(1, sum(len(rows) for rows in self._exact))

    def _entries(self, part: Part, numbers: PlainNumbers) -> Iterator[IndexEntry]:
        """The index entries of a segment's memories, in the languages that the vault found."""
        context = self._sealed.context
        snapshot = context.snapshot
        ordinals = [part.base + int(row) for row in np.flatnonzero(part.alive)]
        for ordinal, memory in zip(ordinals, context.open_memories(ordinals), strict=True):
            topics = dict.fromkeys(filter(None, map(normalise_topic, memory.topics)))
            content = memory.text if memory.text.strip() else memory.title
            item = Indexable(
                memory,
                numbers.topic(f"content {content}"),  # equal contents, equal tags
                tuple(numbers.topic(topic) for topic in topics),
            )
            windows = self._windows(memory, ordinal)
            made_with = {
                "analyser": snapshot.language(ordinal),
                "dimensions": max(snapshot.all_dimensions, default=0),
            }
            yield from index_entries(
                [item],
                Making(None, self._hashes, CollectionSettings("", **made_with)),  # type: ignore[arg-type]
                reuse=lambda _, windows=windows: windows,
            )

    def _windows(self, memory: Memory, ordinal: int) -> Windows:
        """A memory's windows with the model's own vectors, where they were kept."""
        snapshot, known = self._sealed.context.snapshot, self._sealed.float32
        spans = tuple(snapshot.windows(ordinal))
        vectors = snapshot.document_vectors(ordinal)
        for place, (start, end) in enumerate(spans):
            exact = known.get(mark(embedded_text(memory.title, memory.text[start:end])))
            if exact is not None:
                vectors[place] = exact
                self._from_model += 1
        self._exact.append(vectors)
        return Windows(spans, vectors)
