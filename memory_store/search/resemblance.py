"""Which memories say nearly the same as a text: by sealed shingles, without opening any.

A shingle is two neighbouring words (Broder, "On the resemblance and containment of documents",
1997). The index holds those of each memory as keyed hashes: its pairs of terms.

Boundary: plain text of the question comes in; ordinals and shares go out. Nothing is opened.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from memory_store.dates import validity
from memory_store.index.snapshot import Filters, HashGroup
from memory_store.index.terms import has_term, pairs_held
from memory_store.search.context import SearchContext
from memory_store.session.entries import TermHashes
from memory_store.text.tokens import terms

SAMPLE = 1_024  # of a long text's shingles, those of the least hashes: .7 is said as .69 ± .02
LEAST = 0.5  # of the shingles of two texts, that they must share to be named


def resembling(context: SearchContext, title: str, text: str, most: int) -> list[tuple[int, float]]:
    """At most so many memories that are valid now, by ordinal, each with the share of all shingles
    of both that both hold: the largest first, none below ``LEAST``.

    How many distinct ones a memory has follows from its length: it repeats itself as the text does.
    """
    snapshot = context.snapshot
    group: dict[str, list[int]] = {}
    distinct, length = 1, len(terms(title, "")) + len(terms(text, ""))
    for collection, pairs in _shingles(context, title, text):
        distinct = max(distinct, len(pairs))
        group.setdefault(collection, []).extend(pairs[:SAMPLE].tolist())
    if any(group.values()):
        held = pairs_held(snapshot, [group]) * (distinct / min(distinct, SAMPLE))
    else:
        held = has_term(snapshot, _only_word(context, text)).astype(float)
    held[~snapshot.mask(Filters(**validity(None, superseded=False)))] = 0.0
    (found,) = held.nonzero()
    shared = np.minimum(held[found], distinct)
    theirs = np.maximum(snapshot.lengths[found] * (distinct / max(1, length)), shared)
    shares = shared / (distinct + theirs - shared)
    best = np.argsort(-shares, kind="stable")[:most]
    return [(int(found[one]), float(shares[one])) for one in best if shares[one] >= LEAST]


def _shingles(
    context: SearchContext, title: str, text: str
) -> Iterator[tuple[str, npt.NDArray[np.uint64]]]:
    """The keyed shingles of a text as they stand in each collection, in each of its languages."""
    for collection in context.snapshot.collections:
        hashes = TermHashes(context.blinder(collection))
        for language in context.snapshot.languages_in(collection):
            words = [hashes.of(terms(said, language), language) for said in (title, text)]
            yield collection, hashes.pairs(np.concatenate(words), len(words[0]))


def _only_word(context: SearchContext, text: str) -> HashGroup:
    """What stands for the one word of a text that has no two."""
    return {
        collection: [
            context.blinder(collection).term(language, one)
            for language in context.snapshot.languages_in(collection)
            for one in terms(text, language)[:1]
        ]
        for collection in context.snapshot.collections
    }
