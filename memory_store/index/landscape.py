"""The landscape: all documents in regions, by their topics, else by their folder or their meaning.

Boundary: keyed hashes, vectors and numbers of visible documents come in, and the sealed places of
those without topics for one call; regions come out, by number. What is kept of them has no word
in it.

The same documents make the same landscape in any order, and one more changes it only where it
belongs: see the modules of each kind of region.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from memory_store.index.folders import folders
from memory_store.index.map_layout import laid_out
from memory_store.index.meanings import centre, clusters, deciding_of, lowest, step_of, unit_rows_of
from memory_store.index.places import Place
from memory_store.index.snapshot import Mask, Snapshot
from memory_store.index.topic_regions import SAMPLE, topic_regions
from memory_store.index.topics import TopicGroup

MOST_REGIONS = 24  # on the map; smaller ones are counted
TOPIC, FOLDER, MEANING = "topic", "folder", "meaning"

Numbers = npt.NDArray[np.intp]
PlacesOf = Callable[[Numbers], Mapping[int, Place]]
"""From documents to the places of those that have one."""


class Region(Struct, frozen=True, eq=False):
    """Documents as ordinals, and what keeps them together.

    ``topics`` by their numbers, the one that it is named by first. ``folder``: a document in it,
    and how deep it is, the source counting as 1. ``x`` (0 … ``WIDTH``), ``y`` (0 … ``HEIGHT``) and
    ``radius`` are its place on the map, which comes from its ``seed``.
    """

    kind: str
    documents: Numbers
    seed: bytes
    topics: tuple[int, ...] = ()
    folder: tuple[int, int] | None = None
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
    snapshot: Snapshot,
    mask: Mask,
    groups: Sequence[TopicGroup],
    seeds: Sequence[bytes],
    places_of: PlacesOf = lambda _: {},
) -> Regions:
    """The regions of the documents in ``mask`` (bool [documents]), by their topics ``groups``.

    ``seeds`` are eight bytes or more for each topic, the same wherever it stands. ``places_of`` is
    asked for the places of documents that topics say nothing of.
    """
    by_topic = topic_regions(snapshot, mask, groups)
    made = [Region(TOPIC, one.documents, seeds[one.topics[0]], one.topics) for one in by_topic.made]
    made += _untagged(snapshot, np.flatnonzero(mask), by_topic.loose, places_of)
    made.sort(key=lambda one: (-step_of(len(one.documents)), *_order(one)))
    placed = sum(len(one.documents) for one in made)
    shown = sorted(made[:MOST_REGIONS], key=lambda one: (-len(one.documents), *_order(one)))
    near = _nearness(snapshot, shown, by_topic.near)
    circles = laid_out([len(one.documents) for one in shown], near, [one.seed for one in shown])
    return Regions(
        tuple(
            replace(one, x=x, y=y, radius=radius)
            for one, (x, y, radius) in zip(shown, circles, strict=True)
        ),
        tuple(made[MOST_REGIONS:]),
        int(np.count_nonzero(mask)) - placed,
    )


def _order(region: Region) -> tuple[bool, tuple[int, ...], bytes]:
    return not region.topics, region.topics[:1], region.seed


def _untagged(
    snapshot: Snapshot, every: Numbers, loose: Numbers, places_of: PlacesOf
) -> list[Region]:
    """Regions of the ``loose`` documents of ``every``, of which topics say nothing: by folder, else
    by meaning."""
    made: list[Region] = []
    rest = np.zeros(snapshot.size, np.bool_)
    rest[loose] = True
    for folder in folders(places_of(loose)) if len(loose) else []:
        inside = np.array(folder.documents, np.intp)
        rest[inside] = False
        at = (folder.documents[0], len(folder.path))
        if folder.large:
            apart = clusters(snapshot, inside, inside)
            made += _by_meaning(snapshot, apart.members, at)
            inside = apart.loose
        if len(inside):
            seed = hashlib.sha256("\n".join(folder.path).encode()).digest()[:8]
            made.append(Region(FOLDER, inside, seed, folder=at))
    return made + _by_meaning(snapshot, clusters(snapshot, np.flatnonzero(rest), every).members)


def _by_meaning(
    snapshot: Snapshot, members: Sequence[Numbers], folder: tuple[int, int] | None = None
) -> list[Region]:
    first = [snapshot.id_words[deciding_of(snapshot, some)[0]].tobytes() for some in members]
    return [
        Region(MEANING, some, hashlib.sha256(one).digest()[:8], folder=folder)
        for some, one in zip(members, first, strict=True)
    ]


def _nearness(
    snapshot: Snapshot, shown: Sequence[Region], near: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """How near regions are to each other, float32 [regions, regions], 0–1: as their first topics
    are where both have some, else as their documents are in meaning."""
    if not shown:
        return np.zeros((0, 0), np.float32)
    centres = np.stack([centre(snapshot, lowest(snapshot, r.documents, SAMPLE)) for r in shown])
    centres -= centres.mean(axis=0)
    units = unit_rows_of(centres)
    alike = np.clip(units @ units.T, 0, 1)
    with_topics = [at for at, one in enumerate(shown) if one.topics]
    leaders = [shown[at].topics[0] for at in with_topics]
    alike[np.ix_(with_topics, with_topics)] = near[np.ix_(leaders, leaders)]
    found: npt.NDArray[np.float32] = alike.astype(np.float32)
    return found
