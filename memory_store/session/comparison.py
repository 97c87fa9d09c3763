"""Index entries held against the memories that they are of: whether what is found is what is said.

Boundary: opened memories come in one at a time; what is found different comes out as words such as
"topics", never as contents. Entries are sealed, so what differs was written by a key's holder, or
by a fault of a program: to make the entry anew mends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from memory_store.crypto.blinding import Blinder
from memory_store.index.layout import Segment
from memory_store.index.snapshot import Part, Snapshot, topic_keys
from memory_store.records import Memory
from memory_store.session.entries import Indexable, embedded_text, entry_of, epoch

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder

LEAST_LIKENESS = 0.5
"""The cosine of a vector with that of its text below which it is another text's. A content that
several memories share, or that got another title, keeps the vectors that were made with the first
title: those differ more than rounding does, and less than two texts do (about 0 to 0.3)."""

Terms = dict[int, tuple[int, int]]
"""The hash of a term → how often it stands in the title, and in the body."""


class Comparison:
    """Entries of a snapshot, to be compared with memories; ``chosen`` are the ordinals whose words
    are compared, too."""

    def __init__(self, snapshot: Snapshot, chosen: Sequence[int]) -> None:
        self.snapshot = snapshot
        self.chosen = frozenset(chosen)
        self._parts: dict[int, _PartOfChosen] = {}

    def differences(self, ordinal: int, item: Indexable) -> Iterator[str]:
        """What an entry says otherwise than its memory, besides its words."""
        snapshot, memory = self.snapshot, item.memory
        if snapshot.tags_of([ordinal]) != [item.content_tag]:
            yield "text"
        if snapshot.type(ordinal) != memory.type:
            yield "type"
        for name, unknown in BOUNDS.items():
            moment = getattr(memory, name)
            if getattr(snapshot, name)[ordinal] != (epoch(moment) if moment else unknown):
                yield name
        part = snapshot.part_of(ordinal)
        topics = part.segment.topics.slices(topic_keys(item.topics))
        held = self._of(part).topics(ordinal - part.base) if ordinal in self.chosen else None
        rows = (part.segment.topics.docs[start:end] for _, start, end in topics)
        found = sum(ordinal - part.base in docs for docs in rows)
        if found != len(set(item.topics)) or held not in (None, found):
            yield "topics"
        if any(end > len(memory.text) for _, end in snapshot.windows(ordinal)):
            yield "passages"

    def words_differ(self, ordinal: int, item: Indexable, blinder: Blinder) -> bool:
        """Whether an entry of ``chosen`` has other words than the text has, analysed again."""
        part = self.snapshot.part_of(ordinal)
        entry = entry_of(item, blinder, self.snapshot.language(ordinal))
        titles, bodies = entry.title_terms, entry.body_terms
        wanted = {term: (titles.get(term, 0), bodies.get(term, 0)) for term in {*titles, *bodies}}
        row, held = ordinal - part.base, self._of(part)
        pairs = {pair >> 32 for pair in entry.pairs}
        return (
            held.terms(row) != wanted
            or held.pairs(row) != pairs
            or int(part.segment.lengths[row]) != entry.length
        )

    def vectors_differ(self, ordinal: int, memory: Memory, embedder: Embedder) -> bool:
        """Whether an entry has vectors of other texts, by the model that made them."""
        spans, held = self.snapshot.windows(ordinal), self.snapshot.document_vectors(ordinal)
        parts = [memory.text[start:end] for start, end in spans]
        alike = np.zeros(len(spans))
        for title in dict.fromkeys([memory.title, ""]):
            made = embedder.embed([embedded_text(title, part) for part in parts])
            nothing = ~held.any(axis=1) & ~made.any(axis=1)  # a text of words that it knows none of
            alike = np.maximum(alike, np.einsum("ij,ij->i", made, held) + nothing)
            if alike.min(initial=1) >= LEAST_LIKENESS:
                return False
        return True

    def _of(self, part: Part) -> _PartOfChosen:
        if part.base not in self._parts:
            rows = [one - part.base for one in self.chosen if part.base <= one < part.end]
            self._parts[part.base] = _PartOfChosen(part.segment, rows)
        return self._parts[part.base]


BOUNDS: Mapping[str, float] = {
    "created": float("nan"),
    "updated": float("nan"),
    "valid_from": float("-inf"),
    "valid_to": float("inf"),
}
"""The moments that an entry has of its memory, and what stands there for none."""


class _PartOfChosen:
    """What some rows of a segment hold, row by row: the segment itself knows who holds what."""

    def __init__(self, segment: Segment, rows: Sequence[int]) -> None:
        self._segment = segment
        self._wanted = np.zeros(segment.count, dtype=bool)
        self._wanted[np.array(rows, dtype=np.intp)] = True

    def terms(self, row: int) -> Terms:
        """The terms of one of those rows."""
        docs, keys, titles, bodies = self._terms
        span = slice(*docs.searchsorted([row, row + 1]))
        counts = zip(titles[span].tolist(), bodies[span].tolist(), strict=True)
        return dict(zip(keys[span].tolist(), counts, strict=True))

    def pairs(self, row: int) -> set[int]:
        """The upper halves of the hashes of its pairs of terms."""
        docs, hashes = self._pairs
        return set(hashes[slice(*docs.searchsorted([row, row + 1]))].tolist())

    def topics(self, row: int) -> int:
        """How many topics it has."""
        return int(np.count_nonzero(self._segment.topics.docs == row))

    @cached_property
    def _terms(self) -> tuple[npt.NDArray[np.generic], ...]:
        terms = self._segment.terms
        keys = np.repeat(terms.keys, np.diff(terms.offsets))
        counts = (self._segment.title_counts, self._segment.body_counts)
        return self._by_row(terms.docs, keys, *counts)

    @cached_property
    def _pairs(self) -> tuple[npt.NDArray[np.generic], ...]:
        return self._by_row(self._segment.pairs.docs, self._segment.pairs.hashes)

    def _by_row(
        self, docs: npt.NDArray[np.generic], *columns: npt.NDArray[np.generic]
    ) -> tuple[npt.NDArray[np.generic], ...]:
        """Those columns for the wanted rows alone, in the order of the rows; these come first."""
        (places,) = self._wanted[docs.astype(np.intp)].nonzero()
        places = places[docs[places].argsort(kind="stable")]
        return (docs[places].astype(np.int64), *(column[places] for column in columns))
