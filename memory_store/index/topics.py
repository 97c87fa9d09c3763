"""The topic leg: documents whose tags match the query's words, by exact keyed hash.

Boundary: topics arrive and are held as keyed hashes. Rarity counts only visible collections.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memory_store.index.snapshot import Mask, Part, Snapshot, TopicGroup


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
    for rows in snapshot.topic_rows(groups):
        if not len(rows):  # most words are no topics
            continue
        held = np.zeros(snapshot.size, dtype=np.bool_)
        held[rows] = True
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
