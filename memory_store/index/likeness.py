"""Likeness: which memories of a snapshot are near each other, and what a memory is nearest to.

Boundary: vectors, tags and ordinals; no word is seen. Copies of vectors are overwritten before a
function returns.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.index.meanings import document_means, unit_rows_of
from memory_store.index.snapshot import Mask, Snapshot

MOST_COMPARED = 12_000  # memories: each with each is 28 billion multiplications, some seconds
AT_ONCE = 1_024  # rows of the table of cosines
FEW = 8  # of so many documents one may have changed, and not all are compared again
HELD = 4  # times as many pairs are held as are wanted: some will go
SAMPLE = 4_000  # pairs picked at random: what is usual between any two
_SEED = 20_071

Ordinals = npt.NDArray[np.intp]


class Pair(Struct, frozen=True):
    """Two documents, the newer first, and their cosine."""

    newer: int
    older: int
    near: float


class Likeness(Struct, frozen=True, eq=False):
    """The pairs, nearest first. ``usual`` and ``spread`` are the mean and the deviation of cosines
    between any two, by which a model that calls all texts alike is judged.

    ``rows`` are the documents, by what changes with them (id, version, number of
    vectors). ``whole``: whether there are no more pairs. ``changed`` counts the documents that were
    compared since all of them were.
    """

    pairs: tuple[Pair, ...]
    usual: float
    spread: float
    compared: int
    rows: Mapping[bytes, int]
    whole: bool
    changed: int = 0


def likeness(
    snapshot: Snapshot,
    mask: Mask,
    least: float,
    deviations: float,
    most: int,
    before: Likeness | None = None,
    unread: Mask | None = None,
) -> Likeness:
    """The nearest pairs among the newest documents of ``mask``: at least ``most`` of them, where
    there are so many. Vectors of ``unread`` ones say nothing.

    Near is a cosine of ``least``, and so many ``deviations`` above the usual. Where few documents
    are others than ``before``, those alone are compared with all.
    """
    chosen = newest(snapshot, np.flatnonzero(mask))
    same = dict.fromkeys(_same_content(snapshot, chosen), 1.0)
    keys = _keys(snapshot, chosen)
    rows = dict(zip(keys, chosen.tolist(), strict=True))
    vectors, embedded = document_means(snapshot, chosen)
    if unread is not None:
        embedded &= ~unread[chosen]
    units, chosen = unit_rows_of(vectors[embedded]), chosen[embedded]
    vectors.fill(0)
    kept = _kept(before, rows, most) if before else None
    if before is None or kept is None:
        pairs, changed = dict[tuple[int, int], float](), 0
        fresh = np.arange(len(chosen))
        usual, spread = _usual(units)
    else:
        pairs, usual, spread = kept, before.usual, before.spread
        fresh = np.flatnonzero(np.array([key not in before.rows for key in keys])[embedded])
        changed = before.changed + len(fresh)
    bound = max(least, usual + deviations * spread)
    for start in range(0, len(fresh), AT_ONCE):
        some = fresh[start : start + AT_ONCE]
        first = start if kept is None else 0  # those before were compared with these
        cosines = units[some] @ units[first:].T
        if kept is None:
            cosines = np.triu(cosines, 1)
        else:
            cosines[np.arange(len(some)), some] = 0  # itself
        left, right = np.nonzero(cosines >= bound)
        found = cosines[left, right]
        for place in np.argsort(-found, kind="stable")[: HELD * most].tolist():
            a, b = chosen[some[left[place]]], chosen[first + right[place]]
            pairs.setdefault(_newer_first(snapshot, int(a), int(b)), float(found[place]))
    units.fill(0)
    ordered = sorted((pairs | same).items(), key=lambda one: (-one[1], one[0]))
    held = tuple(Pair(*pair, min(near, 1.0)) for pair, near in ordered[: HELD * most])
    whole = len(held) < HELD * most and (before is None or kept is None or before.whole)
    return Likeness(held, usual, spread, len(chosen), rows, whole, changed)


def _keys(snapshot: Snapshot, ordinals: Ordinals) -> list[bytes]:
    """What each document is known by, as long as neither it nor its vectors change."""
    words = snapshot.id_words[ordinals].view(np.int64)
    parts = (words, snapshot.versions[ordinals, None], snapshot.window_counts[ordinals, None])
    return [row.tobytes() for row in np.hstack(parts)]


def _kept(
    before: Likeness, rows: Mapping[bytes, int], most: int
) -> dict[tuple[int, int], float] | None:
    """The pairs of before whose documents are both unchanged; ``None``: compare all again."""
    others = len(rows.keys() - before.rows.keys()) + len(before.rows.keys() - rows.keys())
    if (before.changed + others) * FEW > len(rows):
        return None
    now = {old: rows[key] for key, old in before.rows.items() if key in rows}
    kept = {
        (now[one.newer], now[one.older]): one.near
        for one in before.pairs
        if one.newer in now and one.older in now
    }
    return kept if before.whole or len(kept) >= most else None


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
