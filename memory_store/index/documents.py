"""What one document holds: postings read the other way round, from the document to its keys.

Boundary: keyed hashes and counts. No word can be read from them, and nothing is opened.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memory_store.index.layout import Postings
from memory_store.index.snapshot import Snapshot


class DocumentTerms(NamedTuple):
    """The terms of one document: ``keys`` uint64 hashes, and how often each stands in its title
    and in its body (float64), all [n]."""

    keys: npt.NDArray[np.uint64]
    titles: npt.NDArray[np.float64]
    bodies: npt.NDArray[np.float64]


def terms_of(snapshot: Snapshot, ordinal: int) -> DocumentTerms:
    """The terms of a document. Looks through the postings of its segment: about a millisecond for
    each million of them."""
    part = snapshot.part_of(ordinal)
    segment = part.segment
    places = _places(segment.terms, ordinal - part.base)
    return DocumentTerms(
        _keys(segment.terms, places),
        segment.title_counts[places].astype(np.float64),
        segment.body_counts[places].astype(np.float64),
    )


def topics_of(snapshot: Snapshot, ordinal: int) -> list[bytes]:
    """The first halves (8 bytes) of the keyed hashes of a document's topics: all that an index
    looks at."""
    part = snapshot.part_of(ordinal)
    topics = part.segment.topics
    return [
        int(key).to_bytes(8, "big") for key in _keys(topics, _places(topics, ordinal - part.base))
    ]


def frequencies(
    snapshot: Snapshot, collection: str, keys: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """int64 [n]: how many documents of a collection hold each key, deleted ones included as long
    as their segment is not merged."""
    counts = np.zeros(len(keys), dtype=np.int64)
    for part in snapshot.parts:
        if part.collection == collection:
            for index, start, end in part.segment.terms.slices(keys):
                counts[index] += end - start
    return counts


def _places(postings: Postings, row: int) -> npt.NDArray[np.intp]:
    return np.flatnonzero(postings.docs == row)


def _keys(postings: Postings, places: npt.NDArray[np.intp]) -> npt.NDArray[np.uint64]:
    """The keys that places of ``docs`` belong to."""
    owners = np.searchsorted(postings.offsets, places, side="right") - 1
    keys: npt.NDArray[np.uint64] = postings.keys[owners]
    return keys
