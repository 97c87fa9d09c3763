"""The landscape of an opened vault: which topics stand together, and what stands there.

Boundary: opens a head for each topic that it names, and the newest memories of each region. Of what
was worked out only numbers are kept, with the snapshot, and wiped with it. Collections that the key
cannot read have no part in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from memory_store.actions.action import Opened, action
from memory_store.actions.reads import open_all, open_heads
from memory_store.dates import format_epoch, validity
from memory_store.index.landscape import Region, Regions, regions
from memory_store.index.snapshot import Filters, Mask, Snapshot
from memory_store.index.topics import TopicGroup, carriers, topic_counts
from memory_store.records import DONE_SUFFIX
from memory_store.records.landscape import Landmark, Landscape, LandscapeRegion
from memory_store.session.opened_vault import OpenVault
from memory_store.text.canonical import normalise_topic
from memory_store.titles import shown_title
from memory_store.vault.audit_events import READ

NAMED = 400  # topics of each collection, the most frequent ones
TOPICS = 12  # of a region that are listed
TYPES = 6
NEWEST = 2
OTHERS = 24  # topics of regions that are too small to be shown
KEPT = "landscape"


def _opened(found: Landscape) -> tuple[int, int]:
    marks = sum(len(one.newest) for one in found.regions)
    return marks, marks


@action(READ, writes=False, counts=_opened)
def landscape(opened: Opened, *, as_of: str | None = None) -> Landscape:
    """The topics that stand together and lie near in meaning, with what stands there.

    Of all that may be read and is valid, or was ``as_of`` a day. The same memories give the same
    landscape, and one more changes it only where it belongs. Opens heads, and the newest of each.
    """
    vault = opened.vault
    snapshot, openable = vault.snapshot(), set(vault.keyring.openable())
    mask = snapshot.mask(Filters(collections=tuple(openable), **validity(as_of, superseded=False)))
    names, groups = _names(vault, snapshot, mask, openable)
    found = _regions(snapshot, mask, names, groups)
    together = {one: [group[one][0] for group in groups] for one in openable}
    counts = topic_counts(snapshot, together, mask) or [0] * len(names)
    shown = [(one, _newest(snapshot, one)) for one in found.shown]
    ids = {ordinal: snapshot.id(ordinal) for _, some in shown for ordinal in some}
    titles = {one.id: shown_title(one.title, one.text) for one in open_all(vault, [*ids.values()])}
    marks = {
        ordinal: Landmark(id_, titles[id_], _day(snapshot.created[ordinal]))
        for ordinal, id_ in ids.items()
        if id_ in titles
    }
    leading = [one.topics[0] for one in found.others[:OTHERS]]
    return Landscape(
        memories=int(np.count_nonzero(mask)),
        regions=tuple(
            _shown(one, snapshot, names, counts, [marks[o] for o in newest if o in marks])
            for one, newest in shown
        ),
        others=sum(len(one.documents) for one in found.others),
        other_topics={names[topic]: counts[topic] for topic in leading},
        without=found.without,
    )


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


def _regions(
    snapshot: Snapshot, mask: Mask, names: Sequence[str], groups: Sequence[TopicGroup]
) -> Regions:
    """The regions, worked out once for the same documents and topics of a snapshot."""
    digest = hashlib.sha256(np.packbits(mask).tobytes())
    for group in groups:
        for collection, hashes in sorted(group.items()):
            digest.update(collection.encode() + b"".join(hashes))
    key = digest.digest()
    kept: tuple[bytes, Regions] | None = snapshot.caches.get(KEPT)
    if kept is None or kept[0] != key:
        seeds = [hashlib.sha256(normalise_topic(name).encode()).digest()[:8] for name in names]
        kept = snapshot.caches[KEPT] = key, regions(snapshot, mask, groups, seeds)
    return kept[1]


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
    names: Sequence[str],
    counts: Sequence[int],
    newest: Sequence[Landmark],
) -> LandscapeRegion:
    types = _types(snapshot, region)
    created = snapshot.created[region.documents]
    return LandscapeRegion(
        name=names[region.topics[0]],
        memories=len(region.documents),
        topics={names[one]: counts[one] for one in region.topics[:TOPICS]},
        open_tasks=types.get("task", 0),
        types=dict([*types.items()][:TYPES]),
        first=_day(created.min()),
        last=_day(created.max()),
        newest=tuple(newest),
        x=region.x,
        y=region.y,
        radius=region.radius,
    )


def _types(snapshot: Snapshot, region: Region) -> Mapping[str, int]:
    """How many documents are of each type, most frequent first; completed ones on their own."""
    codes = snapshot.type_codes[region.documents]
    counts = np.bincount(codes, minlength=len(snapshot.types)).tolist()
    found = [(name, count) for name, count in zip(snapshot.types, counts, strict=True) if count]
    return dict(sorted(found, key=lambda one: (-one[1], one[0].removesuffix(DONE_SUFFIX), one[0])))


def _day(moment: float) -> str:
    return format_epoch(float(moment))[:10]
