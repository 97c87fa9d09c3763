"""The landscape of an opened vault: which memories belong together, and what stands there.

Boundary: opens a head for each topic that it names, and the newest memories of each region; reads
the sealed places and words of collections that the key may open. Of what was worked out only
numbers are kept, with the snapshot, and wiped with it. Collections that the key cannot read have no
part in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from memory_store.actions.action import Opened, action
from memory_store.actions.reads import open_all, open_heads
from memory_store.dates import format_epoch, validity
from memory_store.index.folders import path_of
from memory_store.index.landscape import FOLDER, TOPIC, Numbers, Region, Regions, regions
from memory_store.index.lexicon import Lexicon
from memory_store.index.places import PLACES, Place
from memory_store.index.snapshot import Filters, Mask, Part, Snapshot
from memory_store.index.telling_words import WordPlace, telling_words, word_at
from memory_store.index.topics import TopicGroup, carriers, topic_counts
from memory_store.records import base_type
from memory_store.records.landscape import Landmark, Landscape, LandscapeRegion
from memory_store.session.extras import lexicons, record_of, rows
from memory_store.session.opened_vault import OpenVault
from memory_store.text.canonical import normalise_topic
from memory_store.titles import shown_title
from memory_store.vault.audit_events import READ

NAMED = 400  # topics of each collection, the most frequent ones
TOPICS = 12  # of a region that are listed
TYPES = 6
WORDS, NAMING = 6, 3  # telling words of a region, and those that name one without topic and folder
NEWEST = 2
OTHERS = 24  # topics of regions that are too small to be shown
KEPT = "landscape"


def _opened(found: Landscape) -> tuple[int, int]:
    marks = sum(len(one.newest) for one in found.regions)
    return marks, marks


@action(READ, writes=False, counts=_opened)
def landscape(opened: Opened, *, as_of: str | None = None) -> Landscape:
    """The memories that belong together, by topics, else by folder or meaning, and what is there.

    Of all that may be read and is valid, or was ``as_of`` a day. The same memories give the same
    landscape, and one more changes it only where it belongs. Opens heads, and the newest of each.
    """
    vault = opened.vault
    snapshot, openable = vault.snapshot(), set(vault.keyring.openable())
    mask = snapshot.mask(Filters(collections=tuple(openable), **validity(as_of, superseded=False)))
    names, groups = _names(vault, snapshot, mask, openable)
    held = [*lexicons(vault, snapshot)]
    found, words = _regions(vault, snapshot, mask, names, groups, held)
    together = {one: [group[one][0] for group in groups] for one in openable}
    counts = topic_counts(snapshot, together, mask) or [0] * len(names)
    newest = [_newest(snapshot, one) for one in found.shown]
    marks = _landmarks(vault, snapshot, [ordinal for some in newest for ordinal in some])
    leading = [one.topics[0] for one in found.others if one.topics][:OTHERS]
    return Landscape(
        memories=int(np.count_nonzero(mask)),
        regions=tuple(
            _shown(
                one,
                snapshot,
                _name(
                    vault,
                    snapshot,
                    one,
                    names,
                    (spelled := [word_at(held, place) for place in places]),
                ),
                {names[topic]: counts[topic] for topic in one.topics[:TOPICS]},
                tuple(spelled),
                tuple(marks[ordinal] for ordinal in some if ordinal in marks),
            )
            for one, places, some in zip(found.shown, words, newest, strict=True)
        ),
        others=sum(len(one.documents) for one in found.others),
        other_topics={names[topic]: counts[topic] for topic in leading},
        without=found.without,
    )


def _landmarks(
    vault: OpenVault, snapshot: Snapshot, ordinals: Sequence[int]
) -> dict[int, Landmark]:
    ids = dict(zip(snapshot.ids(ordinals), ordinals, strict=True))
    return {
        ids[one.id]: Landmark(
            one.id, shown_title(one.title, one.text), _day(snapshot.created[ids[one.id]])
        )
        for one in open_all(vault, [*ids])
    }


def _name(
    vault: OpenVault, snapshot: Snapshot, one: Region, names: Sequence[str], words: Sequence[str]
) -> str:
    """Its first topic; the folder's path, its source for its top; else its first words."""
    if one.kind == TOPIC:
        return names[one.topics[0]]
    said = ", ".join(words[:NAMING])
    if one.folder is None:
        return said
    ordinal, depth = one.folder
    place = record_of(vault, PLACES, snapshot.id(ordinal)) or Place()
    source, *folder = path_of(place)[:depth] or ("",)
    path = "/".join(folder) or source.rstrip("/").rpartition("/")[2]
    return path if one.kind == FOLDER or not said else f"{path}: {said}"


def _names(
    vault: OpenVault, snapshot: Snapshot, mask: Mask, openable: set[str]
) -> tuple[list[str], list[TopicGroup]]:
    """The most frequent topics in the order of their names, and their hashes in each collection."""
    spellings: dict[str, str] = {}
    for head in open_heads(vault, snapshot.ids(carriers(snapshot, mask, NAMED))).values():
        for topic in head.topics.values():
            normalised = normalise_topic(topic)
            spellings[normalised] = min(topic, spellings.get(normalised, topic))
    ordered = sorted(spellings)
    blinders = {one: vault.keyring.of(one).blinder for one in openable}
    groups: list[TopicGroup] = [
        {one: [blinder.topic(t)] for one, blinder in blinders.items()} for t in ordered
    ]
    return [spellings[topic] for topic in ordered], groups


Found = tuple[Regions, list[tuple[WordPlace, ...]]]
"""The regions, and the telling words of those that are shown."""


def _regions(
    vault: OpenVault,
    snapshot: Snapshot,
    mask: Mask,
    names: Sequence[str],
    groups: Sequence[TopicGroup],
    held: Sequence[tuple[Part, Lexicon]],
) -> Found:
    """Worked out once for the same documents and topics of a snapshot."""
    digest = hashlib.sha256(np.packbits(mask).tobytes())
    for group in groups:
        for collection, hashes in sorted(group.items()):
            digest.update(collection.encode() + b"".join(hashes))
    key = digest.digest()
    kept: tuple[bytes, Found] | None = snapshot.caches.get(KEPT)
    if kept is None or kept[0] != key:
        seeds = [hashlib.sha256(normalise_topic(name).encode()).digest()[:8] for name in names]
        found = regions(snapshot, mask, groups, seeds, lambda some: _places(vault, snapshot, some))
        words = telling_words(snapshot, held, [one.documents for one in found.shown], WORDS)
        kept = snapshot.caches[KEPT] = key, (found, words)
    return kept[1]


def _places(vault: OpenVault, snapshot: Snapshot, ordinals: Numbers) -> dict[int, Place]:
    wanted = set(ordinals.tolist())
    return {at: place for at, place in rows(vault, snapshot, PLACES) if at in wanted}


def _newest(snapshot: Snapshot, region: Region) -> list[int]:
    """The ordinals of its newest documents, the newest first."""
    ordinals = region.documents
    words = snapshot.id_words[ordinals]
    order = np.lexsort((words[:, 1], words[:, 0], -snapshot.created[ordinals]))
    newest: list[int] = ordinals[order[:NEWEST]].tolist()
    return newest


def _shown(
    region: Region,
    snapshot: Snapshot,
    name: str,
    topics: Mapping[str, int],
    words: tuple[str, ...],
    newest: tuple[Landmark, ...],
) -> LandscapeRegion:
    types = _types(snapshot, region)
    created = snapshot.created[region.documents]
    return LandscapeRegion(
        name=name or (newest[0].title if newest else ""),
        memories=len(region.documents),
        topics=topics,
        open_tasks=types.get("task", 0),
        types=dict([*types.items()][:TYPES]),
        first=_day(created.min()),
        last=_day(created.max()),
        newest=newest,
        x=region.x,
        y=region.y,
        radius=region.radius,
        kind=region.kind,
        words=words,
    )


def _types(snapshot: Snapshot, region: Region) -> Mapping[str, int]:
    """How many documents are of each type, most frequent first; completed ones on their own."""
    codes = snapshot.type_codes[region.documents]
    counts = np.bincount(codes, minlength=len(snapshot.types)).tolist()
    found = [(name, count) for name, count in zip(snapshot.types, counts, strict=True) if count]
    return dict(sorted(found, key=lambda one: (-one[1], base_type(one[0]), one[0])))


def _day(moment: float) -> str:
    return format_epoch(float(moment))[:10]
