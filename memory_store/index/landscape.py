"""The landscape: topics that stand together and lie near each other in meaning, as regions.

Boundary: keyed hashes, vectors and numbers of visible documents come in; which topics and documents
make a region comes out, by number. No word is seen.

What is near is decided topic by topic, the most carried first: a topic joins the region whose first
topic it is nearest to, or begins one. How often topics are carried counts in steps of half a power
of two, and equals go by their number. So one memory more changes what its own topics are near to,
and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.index.snapshot import Mask, Snapshot
from memory_store.index.topics import TopicGroup, holders

TOGETHER, ALIKE = 0.6, 0.4  # how much it counts that topics stand together, and mean alike
JOINS = 0.3  # nearness from which a topic belongs to a region
BELONGS = 0.35  # cosine from which a document without a topic belongs to one
SAMPLE = 48  # documents that show what a topic means: those of the lowest ids, whatever else comes
AT_ONCE = 8_192  # documents whose vectors are looked at together
STEPS = 2  # of how often a topic is carried, to each power of two
MOST_REGIONS = 24  # on the map; smaller ones are counted
WIDTH, HEIGHT = 1_000.0, 640.0  # of the map
LARGEST, SMALLEST = 105.0, 26.0  # radii
PULL, LOOSE, DRAWN = 0.8, 0.15, 30  # how strongly regions are drawn to near ones, and how often
ROUNDS = 240  # in which what overlaps is moved apart

Vectors = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.intp]


class Region(Struct, frozen=True, eq=False):
    """Topics by their numbers, the one that it is named by first; documents as ordinals; a place
    on the map (0 … ``WIDTH``, 0 … ``HEIGHT``) and a radius there."""

    topics: tuple[int, ...]
    documents: Numbers
    x: float = 0.0
    y: float = 0.0
    radius: float = 0.0


class Regions(Struct, frozen=True, eq=False):
    """``shown``: those on the map, the largest first. ``others`` are too small for it, ``without``
    how many documents are in none."""

    shown: tuple[Region, ...]
    others: tuple[Region, ...]
    without: int


def regions(
    snapshot: Snapshot, mask: Mask, groups: Sequence[TopicGroup], seeds: Sequence[bytes]
) -> Regions:
    """The regions of the documents in ``mask`` (bool [documents]), by their topics ``groups``.

    ``seeds`` are eight bytes or more for each topic, the same wherever it stands: from them comes
    its place on the map.
    """
    documents, topics = _carried(snapshot, mask, groups)
    counts = np.bincount(topics, minlength=len(groups))
    means, known = _meanings(snapshot, documents, topics, len(groups))
    near = _nearness(documents, topics, counts, means, known)
    leaders, region_of = _led(near, counts)
    places = _by_document(documents, region_of[topics], len(leaders))
    places += _by_meaning(snapshot, mask, documents, means, known, leaders, region_of)
    members = [np.concatenate([one[number] for one in places]) for number in range(len(leaders))]
    made = []
    for number, leader in enumerate(leaders):
        others = np.flatnonzero((region_of == number) & (np.arange(len(groups)) != leader))
        inside = sorted(others.tolist(), key=lambda one: (-counts[one], one))
        made.append(Region((leader, *inside), np.sort(members[number])))
    made.sort(key=lambda one: (-_step(len(one.documents)), one.topics[0]))
    made = [one for one in made if len(one.documents)]
    placed = sum(len(one.documents) for one in made)
    shown = sorted(made[:MOST_REGIONS], key=lambda one: (-len(one.documents), one.topics[0]))
    return Regions(
        _laid_out(shown, near, seeds),
        tuple(made[MOST_REGIONS:]),
        int(np.count_nonzero(mask)) - placed,
    )


def unit_rows_of(vectors: Vectors) -> Vectors:
    """Those of length 1; zeros stay zero."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return (vectors / np.where(lengths > 0, lengths, 1)[:, None]).astype(np.float32)


def _step(count: int) -> int:
    return int(np.floor(STEPS * np.log2(count))) if count else -1


def _carried(
    snapshot: Snapshot, mask: Mask, groups: Sequence[TopicGroup]
) -> tuple[Numbers, Numbers]:
    """Documents and the topics that they carry: pairs, in the order of the documents."""
    documents = [np.empty(0, np.intp)]
    topics = [np.empty(0, np.intp)]
    for group, _, part, rows in holders(snapshot, groups):
        found = rows.astype(np.intp) + part.base
        found = found[mask[found]]
        documents.append(found)
        topics.append(np.full(len(found), group, np.intp))
    pairs = np.unique(np.concatenate(documents) * max(1, len(groups)) + np.concatenate(topics))
    return pairs // max(1, len(groups)), pairs % max(1, len(groups))


def _meanings(
    snapshot: Snapshot, documents: Numbers, topics: Numbers, count: int
) -> tuple[Vectors, npt.NDArray[np.bool_]]:
    """What topics mean: the direction from all of them to each, float32 [topics, dimensions] of
    length 1, and which of them have any (bool [topics])."""
    order = np.lexsort((snapshot.id_words[documents, 0], topics))
    starts = np.searchsorted(topics[order], np.arange(count))
    rank = np.arange(len(order)) - starts[topics[order]]
    sampled = order[rank < SAMPLE]
    vectors, embedded = document_means(snapshot, documents[sampled])
    sums = np.zeros((count, vectors.shape[1]), np.float32)
    present, begins = np.unique(topics[sampled], return_index=True)
    if len(present):
        sums[present] = np.add.reduceat(vectors, begins, axis=0)
    numbers = np.bincount(topics[sampled], weights=embedded, minlength=count)
    known = numbers > 0
    means: Vectors = (sums / np.maximum(numbers, 1)[:, None]).astype(np.float32)
    if known.any():
        means -= means[known].mean(axis=0)
    means[~known] = 0
    return unit_rows_of(means), known


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


def _nearness(
    documents: Numbers, topics: Numbers, counts: Numbers, means: Vectors, known: Any
) -> npt.NDArray[np.float32]:
    """How near topics are to each other, float32 [topics, topics], 0–1."""
    count = len(counts)
    pairs = np.zeros(count * count, np.intp)
    for apart in range(1, len(documents)):
        same = documents[apart:] == documents[:-apart]
        if not same.any():
            break
        both = topics[:-apart][same] * count + topics[apart:][same]
        pairs += np.bincount(both, minlength=count * count)
    together = pairs.reshape(count, count).astype(np.float32)
    together += together.T
    scale = np.sqrt(np.maximum(counts, 1)).astype(np.float32)
    together /= scale[:, None] * scale[None, :]
    alike = np.clip(means @ means.T, 0, 1)
    both = known[:, None] & known[None, :]
    near: npt.NDArray[np.float32] = np.where(both, TOGETHER * together + ALIKE * alike, together)
    np.fill_diagonal(near, 1)
    return near.astype(np.float32)


def _led(near: npt.NDArray[np.float32], counts: Numbers) -> tuple[list[int], Numbers]:
    """The first topic of each region, and the region of each topic."""
    carried = np.flatnonzero(counts).tolist()
    order = sorted(carried, key=lambda one: (-_step(int(counts[one])), one))
    leaders: list[int] = []
    region_of = np.full(len(counts), -1, np.intp)
    for topic in order:
        distances = near[topic, leaders] if leaders else np.empty(0, np.float32)
        best = int(distances.argmax()) if len(distances) else -1
        if best < 0 or distances[best] < JOINS:
            best = len(leaders)
            leaders.append(topic)
        region_of[topic] = best
    return leaders, region_of


def _by_document(documents: Numbers, places: Numbers, count: int) -> list[list[Numbers]]:
    """Documents by region: each in the one that most of its topics are in."""
    pairs, numbers = np.unique(documents * max(1, count) + places, return_counts=True)
    found, region = pairs // max(1, count), pairs % max(1, count)
    order = np.lexsort((region, -numbers, found))
    first = np.append(True, found[order][1:] != found[order][:-1])[: len(order)]
    chosen = order[first]
    return [[found[chosen][region[chosen] == number] for number in range(count)]]


def _by_meaning(
    snapshot: Snapshot,
    mask: Mask,
    documents: Numbers,
    means: Vectors,
    known: Any,
    leaders: Sequence[int],
    region_of: Numbers,
) -> list[list[Numbers]]:
    """Documents without a topic, by the region that they are nearest to in meaning."""
    centres = np.zeros((len(leaders), means.shape[1]), np.float32)
    carried = region_of >= 0
    np.add.at(centres, region_of[carried], means[carried])
    centres = unit_rows_of(centres)
    rest = mask.copy()
    rest[documents] = False
    places = []
    left = np.flatnonzero(rest)
    if not known.any() or not len(leaders):
        return []
    for start in range(0, len(left), AT_ONCE):
        some = left[start : start + AT_ONCE]
        vectors, _ = document_means(snapshot, some)
        similar = unit_rows_of(vectors) @ centres.T
        best = similar.argmax(axis=1)
        near = similar[np.arange(len(some)), best] >= BELONGS
        places.append([some[near & (best == number)] for number in range(len(leaders))])
    return places


def _laid_out(
    made: Sequence[Region], near: npt.NDArray[np.float32], seeds: Sequence[bytes]
) -> tuple[Region, ...]:
    """Regions with places: near ones beside each other, none over another.

    Each has an anchor on the map by the seed of its first topic, so it stays where it was, and is
    drawn from there to those that it is near to.
    """
    if not made:
        return ()
    leaders = [one.topics[0] for one in made]
    anchors = np.array([_anchor(seeds[leader]) for leader in leaders])
    pull = near[np.ix_(leaders, leaders)].astype(np.float64)
    np.fill_diagonal(pull, 0)
    pull /= pull.sum(axis=1, keepdims=True) + LOOSE
    points = anchors
    for _ in range(DRAWN):
        points = (1 - PULL) * anchors + PULL * (
            pull @ points + (1 - pull.sum(axis=1, keepdims=True)) * anchors
        )
    points = points - points.mean(axis=0)
    points = np.tanh(points / np.maximum(1e-9, points.std(axis=0)) / 1.2)
    points = (points + 1) / 2 * (WIDTH, HEIGHT)
    counts = np.array([len(one.documents) for one in made], dtype=float)
    radii = np.maximum(SMALLEST, LARGEST * np.sqrt(counts / counts.max()))
    radii *= min(1.0, float(np.sqrt(0.5 * WIDTH * HEIGHT / (np.pi * (radii**2).sum()))))
    points = _apart(points, radii)
    return tuple(
        Region(one.topics, one.documents, float(x), float(y), float(radius))
        for one, (x, y), radius in zip(made, points.round(1), radii.round(1), strict=True)
    )


def _anchor(seed: bytes) -> tuple[float, float]:
    """A place between -1 and 1 by what stands for a topic."""
    x, y = (int.from_bytes(seed[at : at + 4], "big") / 2**31 - 1 for at in (0, 4))
    return x, y


def _apart(points: npt.NDArray[np.float64], radii: npt.NDArray[np.float64]) -> Any:
    """Points moved until circles of those radii do not overlap, and are on the map."""
    gap = 6.0
    points = points + np.arange(len(points))[:, None] * (0.01, 0.007)  # none lies on another
    low, high = radii[:, None], np.array([WIDTH, HEIGHT]) - radii[:, None]
    for _ in range(ROUNDS):
        lines = points[:, None, :] - points[None, :, :]
        lengths = np.maximum(1e-6, np.sqrt((lines**2).sum(axis=2)))
        over = np.maximum(0, radii[:, None] + radii[None, :] + gap - lengths)
        np.fill_diagonal(over, 0)
        if not over.any():
            break
        points = points + (lines / lengths[:, :, None] * over[:, :, None] / 2).sum(axis=1) * 0.6
        points = np.clip(points, low, high)
    return points
