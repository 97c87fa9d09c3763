"""Likeness: which memories of a snapshot are near each other, and what a memory is nearest to.

Boundary: vectors, tags and ordinals; no word is seen. Copies of vectors are overwritten before a
function returns.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.index.meanings import document_means, unit_rows_of
from memory_store.index.snapshot import Mask, Snapshot

MOST_COMPARED = 12_000  # memories: each with each is 28 billion multiplications, some seconds
AT_ONCE = 1_024  # rows of the table of cosines
SAMPLE = 4_000  # pairs picked at random: what is usual between any two
_SEED = 20_071

Ordinals = npt.NDArray[np.intp]


class Pair(Struct, frozen=True):
    """Two documents, the newer first, and their cosine."""

    newer: int
    older: int
    near: float


class Likeness(Struct, frozen=True):
    """The pairs, nearest first. ``usual`` and ``spread`` are the mean and the deviation of cosines
    between any two, by which a model that calls all texts alike is judged."""

    pairs: tuple[Pair, ...]
    usual: float
    spread: float
    compared: int


def likeness(
    snapshot: Snapshot, mask: Mask, least: float, deviations: float, most: int
) -> Likeness:
    """The nearest pairs among the newest documents of ``mask``, at most ``most``.

    Near is a cosine of ``least``, and so many ``deviations`` above the usual.
    """
    chosen = newest(snapshot, np.flatnonzero(mask))
    pairs = dict.fromkeys(_same_content(snapshot, chosen), 1.0)
    vectors, embedded = document_means(snapshot, chosen)
    units, chosen = unit_rows_of(vectors[embedded]), chosen[embedded]
    vectors.fill(0)
    usual, spread = _usual(units)
    bound = max(least, usual + deviations * spread)
    for start in range(0, len(chosen), AT_ONCE):
        cosines = units[start : start + AT_ONCE] @ units[start:].T
        left, right = np.nonzero(np.triu(cosines, 1) >= bound)
        found = cosines[left, right]
        for place in np.argsort(-found, kind="stable")[:most].tolist():
            a, b = chosen[start + left[place]], chosen[start + right[place]]
            pairs.setdefault(_newer_first(snapshot, int(a), int(b)), float(found[place]))
    units.fill(0)
    ordered = sorted(pairs.items(), key=lambda one: (-one[1], one[0]))[:most]
    return Likeness(
        tuple(Pair(*pair, min(near, 1.0)) for pair, near in ordered), usual, spread, len(chosen)
    )


def nearest(snapshot: Snapshot, asked: Ordinals, among: Ordinals, k: int) -> list[Ordinals]:
    """For each document asked for the ``k`` nearest of others, nearest first."""
    among = newest(snapshot, among)
    theirs, embedded = document_means(snapshot, among)
    mine, known = document_means(snapshot, asked)
    units, among = unit_rows_of(theirs[embedded]), among[embedded]
    cosines = unit_rows_of(mine) @ units.T
    for copies in (theirs, mine, units):
        copies.fill(0)
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    return [among[row] if has else among[:0] for row, has in zip(order, known, strict=True)]


def newest(snapshot: Snapshot, ordinals: Ordinals) -> Ordinals:
    """The newest of some documents, as many as are compared."""
    order = np.lexsort((ordinals, -snapshot.created[ordinals]))
    return ordinals[order[:MOST_COMPARED]]


def untagged(snapshot: Snapshot, mask: Mask) -> Mask:
    """The documents of ``mask`` that carry no topic."""
    found = mask.copy()
    for part in snapshot.parts:
        found[part.base + part.segment.topics.docs.astype(np.intp)] = False
    return found


def _same_content(snapshot: Snapshot, chosen: Ordinals) -> list[tuple[int, int]]:
    """Neighbours, in time, of those with the same words."""
    tags = snapshot.content_tags[chosen].copy().view(np.uint64)
    order = np.lexsort((snapshot.created[chosen], tags[:, 1], tags[:, 0]))
    same = (tags[order][1:] == tags[order][:-1]).all(axis=1)
    places = np.flatnonzero(same)
    return [
        _newer_first(snapshot, int(chosen[order[at]]), int(chosen[order[at + 1]]))
        for at in places.tolist()
    ]


def _newer_first(snapshot: Snapshot, a: int, b: int) -> tuple[int, int]:
    keys = [(float(snapshot.created[one]), *snapshot.id_words[one].tolist()) for one in (a, b)]
    return (a, b) if keys[0] >= keys[1] else (b, a)


def _usual(units: npt.NDArray[np.float32]) -> tuple[float, float]:
    """Mean and deviation of the cosines of pairs picked at random; 0 and 0 of too few."""
    count = len(units)
    if count < 30:
        return 0.0, 0.0
    rng = np.random.default_rng(_SEED)
    left = rng.integers(0, count, SAMPLE)
    right = (left + rng.integers(1, count, SAMPLE)) % count
    cosines = np.einsum("ij,ij->i", units[left], units[right])
    return float(cosines.mean()), float(cosines.std())
