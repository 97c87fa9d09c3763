"""Topics that stand together and lie near each other in meaning, as regions.

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

from memory_store.index.meanings import AT_ONCE, document_means, step_of, unit_rows_of
from memory_store.index.snapshot import Mask, Snapshot
from memory_store.index.topics import TopicGroup, holders

TOGETHER, ALIKE = 0.6, 0.4  # how much it counts that topics stand together, and mean alike
JOINS = 0.3  # nearness from which a topic belongs to a region
BELONGS = 0.35  # cosine from which a document without a topic belongs to one
SAMPLE = 48  # documents that show what a topic means: those of the lowest ids, whatever else comes
USUAL = 0.5  # of all documents may lack a topic, for the others' topics to say where they belong

Vectors = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.intp]


class TopicRegion(Struct, frozen=True, eq=False):
    """Topics by their numbers, the one that it is named by first; documents as ordinals."""

    topics: tuple[int, ...]
    documents: Numbers


class TopicRegions(Struct, frozen=True, eq=False):
    """``near`` is how near topics are to each other, float32 [topics, topics], 0–1; ``loose`` are
    the documents in no region."""

    made: tuple[TopicRegion, ...]
    near: npt.NDArray[np.float32]
    loose: Numbers


def topic_regions(snapshot: Snapshot, mask: Mask, groups: Sequence[TopicGroup]) -> TopicRegions:
    """The regions of the documents in ``mask`` (bool [documents]), by their topics ``groups``.

    Documents without a topic are in the one that they are nearest to in meaning, where most
    documents have topics.
    """
    documents, topics = _carried(snapshot, mask, groups)
    counts = np.bincount(topics, minlength=len(groups))
    means, known = _meanings(snapshot, documents, topics, len(groups))
    near = _nearness(documents, topics, counts, means, known)
    leaders, region_of = _led(near, counts)
    places = _by_document(documents, region_of[topics], len(leaders))
    rest = mask.copy()
    rest[documents] = False
    if np.count_nonzero(rest) <= USUAL * np.count_nonzero(mask):
        places += _by_meaning(snapshot, rest, means, known, leaders, region_of)
    members = [np.concatenate([one[number] for one in places]) for number in range(len(leaders))]
    made = []
    for number, leader in enumerate(leaders):
        others = np.flatnonzero((region_of == number) & (np.arange(len(groups)) != leader))
        inside = sorted(others.tolist(), key=lambda one: (-counts[one], one))
        if len(members[number]):
            made.append(TopicRegion((leader, *inside), np.sort(members[number])))
    loose = mask.copy()
    for one in made:
        loose[one.documents] = False
    return TopicRegions(tuple(made), near, np.flatnonzero(loose))


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
    order = sorted(carried, key=lambda one: (-step_of(int(counts[one])), one))
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
    rest: Mask,
    means: Vectors,
    known: Any,
    leaders: Sequence[int],
    region_of: Numbers,
) -> list[list[Numbers]]:
    """The documents of ``rest``, by the region that they are nearest to in meaning."""
    centres = np.zeros((len(leaders), means.shape[1]), np.float32)
    carried = region_of >= 0
    np.add.at(centres, region_of[carried], means[carried])
    centres = unit_rows_of(centres)
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
