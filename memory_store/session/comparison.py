"""Index entries held against the memories that they are of: whether what is found is what is said.

Boundary: opened memories come in one at a time; what is found different comes out as words such as
"topics", never as contents. Entries are sealed, so what differs was written by a key's holder, or
by a fault of a program: to make the entry anew mends it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, msgpack
from msgspec.structs import replace

from memory_store.code.facts import EARLIER
from memory_store.errors import ModelError, NotFoundError
from memory_store.index.columns import Array
from memory_store.index.layout import Segment
from memory_store.index.names import NAMES, Named
from memory_store.index.segment import IndexEntry, TermCounts
from memory_store.index.snapshot import Part, Snapshot
from memory_store.index.topics import topic_keys
from memory_store.index.trigrams import TRIGRAMS, Trigrams, record_of
from memory_store.records import Memory
from memory_store.session.entries import Indexable, embedded_text, entry_of, epoch, indexable
from memory_store.vault.keyring import Keyring

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder

LEAST_LIKENESS = 0.5
"""The cosine of a vector with that of its text below which it is another text's. A content that
several memories share, or that got another title, keeps the vectors that were made with the first
title: those differ more than rounding does, and less than two texts do (about 0 to 0.3)."""

BOUNDS: Mapping[str, float] = {
    "created": float("nan"),
    "updated": float("nan"),
    "valid_from": float("-inf"),
    "valid_to": float("inf"),
}
"""The moments that an entry has of its memory, and what stands there for none."""

WORDS_COMPARED = 256  # memories whose words are analysed again: about a second
VECTORS_COMPARED = 16  # memories of those that are embedded again: about a second, too

Model = Callable[[str], "Embedder"]


def differences(snapshot: Snapshot, ordinal: int, item: Indexable) -> Iterator[str]:
    """What an entry says otherwise than its memory, besides its words and vectors."""
    memory = item.memory
    if snapshot.tags_of([ordinal]) != [item.content_tag]:
        yield "text"
    if snapshot.type(ordinal) != memory.type:
        yield "type"
    for name, unknown in BOUNDS.items():
        moment = getattr(memory, name)
        if getattr(snapshot, name)[ordinal] != (epoch(moment) if moment else unknown):
            yield name
    part = snapshot.part_of(ordinal)
    topics = part.segment.topics
    rows = (topics.docs[start:end] for _, start, end in topics.slices(topic_keys(item.topics)))
    if sum(ordinal - part.base in docs for docs in rows) != len(set(item.topics)):
        yield "topics"
    if any(end > len(memory.text) for _, end in snapshot.windows(ordinal)):
        yield "passages"


class Compared(Struct):
    """Of how many memories the entries were compared, and of how many the words and the vectors."""

    entries: int = 0
    words: int = 0
    vectors: int = 0
    left: str = ""
    """Why no vectors were, where some might have been."""


class EntryChecks:
    """The entries of a snapshot: of some, or all if ``full``, words and vectors are made again.

    ``model`` loads that of a collection by its id (``None``: no vectors are compared).
    """

    def __init__(
        self, snapshot: Snapshot, keyring: Keyring, model: Model | None, *, full: bool
    ) -> None:
        living = snapshot.alive.nonzero()[0].tolist()
        chosen = living if full else _some(living, WORDS_COMPARED)
        self._snapshot = snapshot
        self._keyring = keyring
        self._model = model
        self._chosen = frozenset(chosen)
        self._embedded = frozenset(chosen if full else _some(chosen, VECTORS_COMPARED))
        self._parts: dict[int, _PartOfChosen] = {}
        self._models: dict[str, Embedder | None] = {}
        self.compared = Compared()

    def differences(self, memory: Memory) -> list[str]:
        """What the index says otherwise of it; nothing where it has no entry."""
        ordinal = self._snapshot.ordinal_of(memory.id)
        if ordinal is None:
            return []
        item = indexable(self._keyring, memory)
        found = [*differences(self._snapshot, ordinal, item)]
        self.compared.entries += 1
        if ordinal not in self._chosen:
            return found
        part = self._snapshot.part_of(ordinal)
        held, row = self._held(part), ordinal - part.base
        if held.topics(row) != len(set(item.topics)) and "topics" not in found:
            found.append("topics")
        if not self._snapshot.stale[ordinal]:
            self.compared.words += 1
            blinder = self._keyring.of(memory.collection).blinder
            language = self._snapshot.language(ordinal)
            made = [entry_of(item, blinder, language, kinds=kinds) for kinds in (None, EARLIER, ())]
            if all(held.differs(row, one) for one in made):
                found.append("words")
            if held.differs_in_trigrams(row, made[0]):
                found.append("trigrams")
            if held.differs_in_names(row, made[0]):
                found.append("names")
            if ordinal in self._embedded and self._vectors_differ(ordinal, memory):
                found.append("vectors")
        return found

    def _held(self, part: Part) -> _PartOfChosen:
        if part.base not in self._parts:
            rows = [one - part.base for one in self._chosen if part.base <= one < part.end]
            self._parts[part.base] = _PartOfChosen(part.segment, rows)
        return self._parts[part.base]

    def _vectors_differ(self, ordinal: int, memory: Memory) -> bool:
        """Whether an entry has vectors of other texts, by the model that made them."""
        spans = self._snapshot.windows(ordinal)
        embedder = self._embedder(memory.collection) if spans else None
        if embedder is None:
            return False
        self.compared.vectors += 1
        held = self._snapshot.document_vectors(ordinal)
        parts = [memory.text[start:end] for start, end in spans]
        alike = np.zeros(len(spans))
        for title in dict.fromkeys([memory.title, ""]):
            made = embedder.embed([embedded_text(title, part) for part in parts])
            nothing = ~held.any(axis=1) & ~made.any(axis=1)  # a text of words that it knows none of
            alike = np.maximum(alike, np.einsum("ij,ij->i", made, held) + nothing)
            if alike.min(initial=1) >= LEAST_LIKENESS:
                return False
        return True

    def _embedder(self, collection: str) -> Embedder | None:
        """The model that a collection's vectors come from, where it is on this machine."""
        if collection not in self._models:
            self._models[collection] = None
            try:
                if self._model is not None:
                    self._models[collection] = self._model(collection)
            except (ModelError, NotFoundError) as error:
                self.compared.left = str(error)
        return self._models[collection]


class _PartOfChosen:
    """What some rows of a segment hold, row by row: the segment itself knows who holds what."""

    def __init__(self, segment: Segment, rows: Sequence[int]) -> None:
        self._segment = segment
        self._wanted = np.zeros(segment.count, dtype=bool)
        self._wanted[np.array(rows, dtype=np.intp)] = True

    def differs(self, row: int, entry: IndexEntry) -> bool:
        """Whether one of those rows has other words than an entry."""
        titles, bodies = map(_summed, (entry.title_terms, entry.body_terms))
        wanted = {term: (titles[term], bodies[term]) for term in {*titles, *bodies}}
        keys, *counts = self._of(row, self._terms)
        (pairs,) = self._of(row, self._pairs)
        return (
            dict(zip(keys, zip(*counts, strict=True), strict=True)) != wanted
            or set(pairs) != {pair >> 32 for pair in entry.pairs.tolist()}
            or int(self._segment.lengths[row]) != entry.length
        )

    def differs_in_trigrams(self, row: int, entry: IndexEntry) -> bool:
        """Whether one of those rows has trigrams, and others than an entry."""
        if self._trigrams is None or not self._trigrams.written[row]:
            return False
        (hashes,) = self._of(row, self._stretches)
        return bool(hashes != record_of(entry.extras[TRIGRAMS.name]).tolist())

    def differs_in_names(self, row: int, entry: IndexEntry) -> bool:
        """Whether one of those rows is called otherwise than an entry."""
        extra = self._segment.extra(NAMES.name)
        held = NAMES.record(extra, row) if extra is not None else None
        if held is None:
            return False
        made = msgpack.decode(entry.extras[NAMES.name], type=Named)
        return held != replace(made, links=held.links)  # as links were read when it was written

    @cached_property
    def _trigrams(self) -> Trigrams | None:
        extra = self._segment.extra(TRIGRAMS.name)
        return extra if isinstance(extra, Trigrams) else None

    @cached_property
    def _stretches(self) -> tuple[Array, ...]:
        assert self._trigrams is not None
        hashes, rows = self._trigrams.of(self._wanted)
        return self._by_row(rows, hashes)

    @staticmethod
    def _of(row: int, rows: Sequence[Array]) -> list[list[int]]:
        """The columns of one row, of columns that come after the rows they belong to."""
        docs, *columns = rows
        span = slice(*docs.searchsorted([row, row + 1]))
        return [column[span].tolist() for column in columns]

    def topics(self, row: int) -> int:
        """How many topics it has."""
        return int(np.count_nonzero(self._segment.topics.docs == row))

    @cached_property
    def _terms(self) -> tuple[Array, ...]:
        terms = self._segment.terms
        keys = np.repeat(terms.keys, np.diff(terms.offsets))
        counts = (self._segment.title_counts, self._segment.body_counts)
        return self._by_row(terms.docs, keys, *counts)

    @cached_property
    def _pairs(self) -> tuple[Array, ...]:
        return self._by_row(self._segment.pairs.docs, self._segment.pairs.hashes)

    def _by_row(self, docs: Array, *columns: Array) -> tuple[Array, ...]:
        """Those columns for the wanted rows alone, in the order of the rows; these come first."""
        (places,) = self._wanted[docs.astype(np.intp)].nonzero()
        places = places[docs[places].argsort(kind="stable")]
        return (docs[places].astype(np.int64), *(column[places] for column in columns))


def _summed(terms: TermCounts) -> Counter[int]:
    found = Counter[int]()
    for hashed, count in zip(terms.hashes.tolist(), terms.counts.tolist(), strict=True):
        found[hashed] += count
    return found


def _some(ordinals: list[int], most: int) -> list[int]:
    return random.SystemRandom().sample(ordinals, min(most, len(ordinals)))
