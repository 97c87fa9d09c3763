"""What documents mean, one vector each, and which of them belong together by it: clusters.

Boundary: vectors and ids of visible documents come in, ordinals come out. Copies of vectors that a
function makes for itself are overwritten before it returns.

The oldest documents decide which clusters there are: as many as the largest half power of two that
is not more than all. So a memory more joins a cluster, or waits outside, and changes none, until
there are 41 % more. Clusters are those of average linkage: two are one as long as their documents
are nearer to each other than documents usually are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.index.snapshot import Snapshot

DECIDING = 1_024  # documents that decide at most, those of the lowest ids: each is held to each
NEARER = (1.0, 0.75, 0.5, 0.25)  # deviations above the usual cosine; fewer where clusters are many
WIDEST = 0.3  # cosine that counts as a deviation at most: of a few themes, all are far from usual
JOINS = 0.5  # deviations from which a document that did not decide belongs to a cluster
FEWEST = 3  # documents of a cluster
MOST = 16  # clusters, where fewer deviations make fewer
AT_ONCE = 8_192  # documents whose vectors are looked at together

Numbers = npt.NDArray[np.intp]
Vectors = npt.NDArray[np.float32]


class Clusters(Struct, frozen=True, eq=False):
    """Documents by cluster, as ordinals, and those that are in none."""

    members: tuple[Numbers, ...]
    loose: Numbers


def clusters(snapshot: Snapshot, ordinals: Numbers, among: Numbers) -> Clusters:
    """The clusters of some documents by their vectors, the largest first.

    What is usual, and what stands out from it, show the documents they are ``among``.
    """
    deciding = deciding_of(snapshot, ordinals)
    vectors, embedded = document_means(snapshot, deciding)
    others, known = document_means(snapshot, deciding_of(snapshot, among))
    deciding = deciding[embedded]
    if len(deciding) < FEWEST:
        return Clusters((), ordinals)
    around = unit_rows_of(others[known])
    usual = around.mean(axis=0)
    around = unit_rows_of(around - usual)
    units = unit_rows_of(unit_rows_of(vectors[embedded]) - usual)
    spread = min(WIDEST, float((around @ around.T)[np.triu_indices(len(around), 1)].std()))
    cosines = (units @ units.T).astype(np.float64)
    label = _cut(_merges(cosines), len(units), spread)
    centres = np.zeros((label.max() + 1, units.shape[1]), np.float32)
    np.add.at(centres, label[label >= 0], units[label >= 0])
    centres = unit_rows_of(centres)
    found = _joined(snapshot, ordinals, (deciding, label), (usual, centres), JOINS * spread)
    for copies in (vectors, others, around, units, cosines, centres, usual):
        copies.fill(0)
    members = [ordinals[found == number] for number in range(len(centres))]
    words = snapshot.id_words
    members.sort(key=lambda one: (-len(one), words[one].min(axis=0).tolist()))
    return Clusters(tuple(members), ordinals[found < 0])


def deciding_of(snapshot: Snapshot, ordinals: Numbers) -> Numbers:
    """The documents that decide on clusters of some, in the order of their ids."""
    words = snapshot.id_words[ordinals]
    order = np.lexsort((words[:, 1], words[:, 0], snapshot.created[ordinals]))
    oldest = ordinals[order[: int(2 ** (step_of(len(ordinals)) / 2))]]
    return lowest(snapshot, oldest, DECIDING)


def step_of(count: int) -> int:
    """A count in steps of half a power of two; -1 for none."""
    return int(np.floor(2 * np.log2(count))) if count else -1


def lowest(snapshot: Snapshot, ordinals: Numbers, most: int) -> Numbers:
    """At most so many of some documents, those of the lowest ids: ids are random, so it is a fair
    choice, and the same one tomorrow."""
    words = snapshot.id_words[ordinals]
    return ordinals[np.lexsort((words[:, 1], words[:, 0]))[:most]]


def _merges(near: npt.NDArray[np.float64]) -> list[tuple[float, int, int]]:
    """Average linkage, by chains of nearest neighbours: (nearness, one, other) of each merge.
    ``near`` is used up."""
    count = len(near)
    np.fill_diagonal(near, -np.inf)
    sizes = np.ones(count)
    left, chain, merges = set(range(count)), list[int](), list[tuple[float, int, int]]()
    while len(left) > 1:
        if not chain:
            chain.append(min(left))
        one = chain[-1]
        other = int(near[one].argmax())
        if len(chain) < 2 or near[one, chain[-2]] < near[one, other]:
            chain.append(other)
            continue
        other = chain[-2]
        del chain[-2:]
        merges.append((float(near[one, other]), one, other))
        row = (sizes[one] * near[one] + sizes[other] * near[other]) / (sizes[one] + sizes[other])
        near[one], near[:, one] = row, row
        near[other], near[:, other], near[one, one] = -np.inf, -np.inf, -np.inf
        sizes[one] += sizes[other]
        left.discard(other)
    return merges


def _cut(merges: list[tuple[float, int, int]], count: int, spread: float) -> Numbers:
    """The cluster of each document, numbered; -1 where it would have fewer than ``FEWEST``."""
    for deviations in NEARER:
        parent = np.arange(count)
        for nearness, one, other in merges:
            if nearness >= deviations * spread:
                parent[other] = one
        while not (parent[parent] == parent).all():
            parent = parent[parent]
        _, numbers, sizes = np.unique(parent, return_inverse=True, return_counts=True)
        large = sizes >= FEWEST
        if np.count_nonzero(large) <= MOST:
            break
    renumbered = np.where(large, np.cumsum(large) - 1, -1)
    label: Numbers = renumbered[numbers].astype(np.intp)
    return label


def _joined(
    snapshot: Snapshot,
    ordinals: Numbers,
    decided: tuple[Numbers, Numbers],
    meanings: tuple[Vectors, Vectors],
    least: float,
) -> Numbers:
    """The cluster of each document: as decided, else the nearest one, or -1."""
    usual, centres = meanings
    found = np.full(len(ordinals), -1, np.intp)
    for start in range(0, len(ordinals) if len(centres) else 0, AT_ONCE):
        vectors, embedded = document_means(snapshot, ordinals[start : start + AT_ONCE])
        units = unit_rows_of(unit_rows_of(vectors) - usual)
        near = units @ centres.T
        best = near.argmax(axis=1)
        close = embedded & (near[np.arange(len(best)), best] >= least)
        found[start : start + AT_ONCE] = np.where(close, best, -1)
        vectors.fill(0)
        units.fill(0)
    deciding, label = decided
    places = np.argsort(ordinals, kind="stable")
    at = places[np.searchsorted(ordinals, deciding, sorter=places)]
    found[at[label >= 0]] = label[label >= 0]
    return found


def centre(snapshot: Snapshot, ordinals: Numbers) -> Vectors:
    """The mean of the vectors of some documents, each of length 1; zeros where none has any."""
    vectors, embedded = document_means(snapshot, ordinals)
    found: Vectors = unit_rows_of(vectors).sum(axis=0) / max(1, np.count_nonzero(embedded))
    vectors.fill(0)
    return found.astype(np.float32)


def unit_rows_of(vectors: Vectors) -> Vectors:
    """Those of length 1; zeros stay zero."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return (vectors / np.where(lengths > 0, lengths, 1)[:, None]).astype(np.float32)


def document_means(snapshot: Snapshot, ordinals: Numbers) -> tuple[Vectors, npt.NDArray[np.bool_]]:
    """The mean vector of each document, float32 [n, dimensions], and which have one (bool [n]).

    Of the model that made most of them: others cannot be compared.
    """
    sizes = [0, *(p.segment.dimensions for p in snapshot.parts if p.segment.windows)]
    dimensions = max(set(sizes), key=sizes.count) if len(sizes) > 1 else 0
    dimensions = dimensions or max(sizes)
    made = np.zeros((len(ordinals), dimensions), np.float32)
    embedded = np.zeros(len(ordinals), np.bool_)
    for part in snapshot.parts:
        segment = part.segment
        if not segment.windows or segment.dimensions != dimensions:
            continue
        places = np.flatnonzero((ordinals >= part.base) & (ordinals < part.end))
        rows = ordinals[places] - part.base
        offsets = segment.window_offsets.astype(np.intp)
        has = offsets[rows + 1] > offsets[rows]
        places, rows = places[has], rows[has]
        if not len(rows):
            continue
        widths = offsets[rows + 1] - offsets[rows]
        begins = np.append(0, np.cumsum(widths)[:-1])
        windows = np.arange(int(widths.sum())) - np.repeat(begins - offsets[rows], widths)
        sums = np.add.reduceat(segment.vectors[windows].astype(np.float32), begins, axis=0)
        made[places], embedded[places] = sums / widths[:, None], True
    return made, embedded
