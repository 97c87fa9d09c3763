"""More like this: a stored memory as the query.

What is searched for are the keyed hashes of its most telling words, its topics' hashes
and its own vectors. Words and topics are keyed for each collection, so that those find memories of
its own collection; memories of others are compared by meaning alone.

Boundary: reads the snapshot. The memory is not opened, nor is anything else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.errors import BadInputError
from memory_store.index.documents import frequencies, terms_of, topics_of
from memory_store.index.snapshot import HashGroup, Snapshot
from memory_store.index.topics import TopicGroup

LIKE = "like"
"""The kind of the lists that legs make by a memory, and the name of the option."""
MOST_TERMS = 25  # each costs its postings
MOST_REPEATS = 4  # a word counts as often as the memory says it, up to here
MOST_WINDOWS = 8  # of a long memory, spread over it: each costs a search of all vectors
SHARED_BY_MOST = 0.5  # of a collection: what more of its memories hold says nothing (BM25: idf 0)


class Likeness(Struct, frozen=True, eq=False):
    """A memory as a question.

    ``terms`` are its most telling words, ``topics`` its topics, each a group of one hash of its
    ``collection``; ``vectors`` float32 [n, dimensions] are its windows, none if it has no vectors.
    ``model`` is the fingerprint of an earlier model, where they come from one; else empty.
    """

    ordinal: int
    collection: str
    terms: tuple[HashGroup, ...]
    topics: tuple[TopicGroup, ...]
    vectors: npt.NDArray[np.float32]
    model: str = ""

    @property
    def sizes(self) -> dict[str, int]:
        """How many words, topics and windows are searched for."""
        words = {key for term in self.terms for key in term[self.collection]}
        return {"words": len(words), "topics": len(self.topics), "windows": len(self.vectors)}


def likeness(snapshot: Snapshot, memory_id: str) -> Likeness:
    """The memory with that id as a question. Raises :class:`BadInputError` (parameter ``like``)
    when the caller has no such memory."""
    ordinal = snapshot.ordinal_of(memory_id)
    if ordinal is None:
        raise unknown(memory_id)
    collection = snapshot.collection(ordinal)
    model = snapshot.part_of(ordinal).earlier_model
    held = snapshot.with_vectors_of(model) if model else snapshot
    return Likeness(
        ordinal=ordinal,
        collection=collection,
        terms=tuple({collection: [key]} for key in telling_terms(snapshot, ordinal)),
        topics=tuple({collection: [topic]} for topic in topics_of(snapshot, ordinal)),
        vectors=spread(held.document_vectors(ordinal), MOST_WINDOWS),
        model=model,
    )


def unknown(given: str) -> BadInputError:
    """The refusal of a name that no memory has, or none that the caller may search."""
    return BadInputError(
        f"{LIKE}: there is no memory {given!r} in the collections you can search", parameter=LIKE
    )


def telling_terms(snapshot: Snapshot, ordinal: int, most: int = MOST_TERMS) -> list[int]:
    """The hashes of a memory's ``most`` telling words by tf·idf, best first, repeats in a row.

    A word that no other memory of the collection holds finds nothing, and one that most of them
    hold says nothing: neither counts. tf is 1 + log of the count, so that a word said ten times
    does not push the others out.
    """
    held = terms_of(snapshot, ordinal)
    collection = snapshot.collection(ordinal)
    documents = int(np.count_nonzero(snapshot.visible([collection])))
    shared = frequencies(snapshot, collection, held.keys)
    weights = (1.0 + np.log(held.titles + held.bodies)) * np.log((documents + 1) / (shared + 0.5))
    weights[(shared < 2) | (shared > max(1.0, SHARED_BY_MOST * documents))] = 0.0
    best = np.lexsort((held.keys, -weights))[:most]
    counts = np.minimum(held.titles + held.bodies, MOST_REPEATS).astype(int)
    return [
        int(held.keys[place]) for place in best if weights[place] > 0 for _ in range(counts[place])
    ]


def spread(vectors: npt.NDArray[np.float32], most: int) -> npt.NDArray[np.float32]:
    """At most ``most`` rows, the first and the last among them, evenly spread."""
    if len(vectors) <= most:
        return vectors
    places: Sequence[int] = [math.floor(n * (len(vectors) - 1) / (most - 1)) for n in range(most)]
    chosen: npt.NDArray[np.float32] = vectors[list(places)]
    return chosen
