"""Topics: where they stand, and the leg of documents whose topics are the query's words.

Boundary: topics arrive and are held as keyed hashes. Rarity counts only visible collections.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from memory_store.index.columns import Array
from memory_store.index.topic_parents import rows_below

if TYPE_CHECKING:
    from memory_store.index.snapshot import Mask, Part, Snapshot

TopicGroup = Mapping[str, Sequence[bytes]]
"""Collection id → the 16-byte keyed hashes that stand for one topic there."""


class TopicMatches(NamedTuple):
    """Documents, best first: ``ordinals`` int32, ``matched`` int32 (how many of the query's
    topics the document carries), ``rarity`` float64 (the sum of their idf), all [n]."""

    ordinals: npt.NDArray[np.int32]
    matched: npt.NDArray[np.int32]
    rarity: npt.NDArray[np.float64]


def topic_matches(
    snapshot: Snapshot,
    groups: Sequence[TopicGroup],
    mask: Mask | None = None,
    visible: Collection[str] | None = None,
) -> TopicMatches:
    """Documents that ``mask`` lets through and that carry a topic of ``groups``.

    Each group is one topic of the query. Ordered by topics matched, then rarity (a sum of
    ``log(1 + documents / frequency)``), then the newest ``created``, then the id's text.
    """
    seen = snapshot.visible(visible)
    documents = int(np.count_nonzero(seen))
    matched = np.zeros(snapshot.size, dtype=np.int32)
    rarity = np.zeros(snapshot.size)
    holding: dict[int, Mask] = {}  # most words are no topics
    for group, _, part, rows in holders(snapshot, groups):
        if group not in holding:
            holding[group] = np.zeros(snapshot.size, dtype=np.bool_)
        holding[group][part.span][rows] = True
    for _, held in sorted(holding.items()):
        held &= seen
        frequency = int(np.count_nonzero(held))
        if frequency:
            matched += held
            rarity += held * math.log1p(documents / frequency)
    allowed = seen if mask is None else seen & mask
    found = np.flatnonzero((matched > 0) & allowed)
    words = snapshot.id_words[found]
    order = np.lexsort(
        (words[:, 1], words[:, 0], -snapshot.created[found], -rarity[found], -matched[found])
    )
    best = found[order]
    return TopicMatches(best.astype(np.int32), matched[best], rarity[best])


def holders(
    snapshot: Snapshot, groups: Sequence[TopicGroup]
) -> Iterator[tuple[int, int, Part, Array]]:
    """Where topics stand: group, number of the hash within it, part, and the rows there, those of
    dead documents too."""
    wanted: dict[str, list[tuple[int, int, bytes]]] = {
        collection: [
            (group, number, topic)
            for group, hashes in enumerate(groups)
            for number, topic in enumerate(hashes.get(collection, ()))
        ]
        for collection in snapshot.collections
    }
    keys = {one: topic_keys([topic for *_, topic in topics]) for one, topics in wanted.items()}
    for part in snapshot.parts:
        postings = part.segment.topics
        for index, start, end in postings.slices(keys[part.collection]):
            yield *wanted[part.collection][index][:2], part, postings.docs[start:end]


def with_topic(snapshot: Snapshot, group: TopicGroup) -> Mask:
    """bool [size]: documents that hold a topic of ``group`` (dead ones too)."""
    held = np.zeros(snapshot.size, dtype=np.bool_)
    for *_, part, rows in holders(snapshot, [group]):
        held[part.span][rows] = True
    return held


def with_topic_or_below(snapshot: Snapshot, group: TopicGroup) -> Mask:
    """The same, and those that hold one below it: ``home/attic`` is below ``home``."""
    held = with_topic(snapshot, group)
    for part in snapshot.parts:
        for topic in group.get(part.collection, ()):
            held[part.span][rows_below(part.segment, topic)] = True
    return held


def topic_counts(snapshot: Snapshot, group: TopicGroup, among: Mask) -> list[int]:
    """How many documents of ``among`` (bool [size]) hold each topic.

    ``group`` has as many hashes in every collection: those of the same topics, in order.
    """
    counts = [0] * max(map(len, group.values()), default=0)
    for _, number, part, rows in holders(snapshot, [group]):
        counts[number] += int(np.count_nonzero(among[part.span].take(rows)))
    return counts


def topic_keys(hashes: Sequence[bytes]) -> npt.NDArray[np.uint64]:
    """uint64 keys of 16-byte topic hashes: their first half, big-endian."""
    return np.array([int.from_bytes(h[:8], "big") for h in hashes], dtype=np.uint64)


def carriers(snapshot: Snapshot, among: Mask, most: int) -> list[int]:
    """A document of ``among`` for each of the ``most`` topics that most of them carry, collection
    by collection: ordinals, each once."""
    found: dict[int, None] = {}
    for collection in snapshot.collections:
        parts = [part for part in snapshot.parts if part.collection == collection]
        counted = [_carried(part, among) for part in parts]
        keys, where = np.unique(np.concatenate([k for k, _ in counted]), return_inverse=True)
        counts = np.bincount(where, weights=np.concatenate([n for _, n in counted]))
        frequent = np.argsort(-counts, kind="stable")[:most]
        wanted = keys[frequent[counts[frequent] > 0]]
        first: dict[int, int] = {}
        for part in parts:
            postings, chosen = part.segment.topics, among[part.span]
            for topic, start, end in postings.slices(wanted):
                held = postings.docs[start:end]
                if topic not in first and chosen[held].any():
                    first[topic] = part.base + int(held[chosen[held].argmax()])
        found |= dict.fromkeys(first.values())
    return list(found)


def count_topics(snapshot: Snapshot) -> int:
    """How many topics living documents carry, those of each collection on their own."""
    found: dict[str, list[npt.NDArray[np.uint64]]] = {one: [] for one in snapshot.collections}
    for part in snapshot.parts:
        keys, counts = _carried(part, snapshot.alive)
        found[part.collection].append(keys[counts > 0])
    return sum(len(np.unique(np.concatenate(keys))) for keys in found.values() if keys)


def _carried(part: Part, among: Mask) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.intp]]:
    """The topics of a part as keys, and how many documents of ``among`` carry each."""
    postings, chosen = part.segment.topics, among[part.span]
    before = np.append(0, np.cumsum(chosen[postings.docs], dtype=np.intp))
    return postings.keys, np.diff(before[postings.offsets])
