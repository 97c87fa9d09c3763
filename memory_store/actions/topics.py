"""Which topics there are: by how many memories, in which spelling, and as which hash.

Boundary: topics stand in the index as keyed hashes. For how one is written a head is opened of a
memory that carries it, in collections that the key may open; no body.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from memory_store.actions.action import Opened, action
from memory_store.actions.collections import collection_ids
from memory_store.actions.reads import newest_first, open_heads
from memory_store.index.snapshot import Mask, Snapshot
from memory_store.index.topics import carriers, topic_counts, with_topic_or_below
from memory_store.records import several
from memory_store.session.opened_vault import OpenVault
from memory_store.text.canonical import normalise_topic
from memory_store.vault.settings import FILLING
from memory_store.vault.storage.table import parts
from memory_store.vault.topic_hashes import asked_epoch

NAMED = 40
"""Topics of each collection that are looked up. One that is frequent only in the sum of many
collections may be missed; those that are listed have their true number."""


@action(None, writes=False)
def topics(opened: Opened, *, collection: str | Sequence[str] = ()) -> dict[str, int]:
    """Topic → how many memories carry it, most frequent first, in a spelling that one of them has.
    Opens at most a head for each topic, no body."""
    vault = opened.vault
    wanted = set(collection_ids(vault, several(collection)) or vault.keyring.readable())
    with vault.moment(counted=True) as (_, known):
        snapshot, openable = known.snapshot, wanted & set(vault.keyring.openable())
        seen = snapshot.visible(openable)
        spellings = _spellings(vault, snapshot, seen, snapshot.size)
        blinders = {one: vault.keyring.of(one).blinder for one in openable}
    group = {one: [*map(blinder.topic, spellings)] for one, blinder in blinders.items()}
    counts = zip(spellings, topic_counts(snapshot, group, seen), strict=True)
    ranked = sorted(counts, key=lambda item: (-item[1], item[0]))
    return {spellings[topic]: count for topic, count in ranked}


@action(None, writes=False)
def frequent_topics(opened: Opened, most: int = 10) -> dict[str, int]:
    """At most so many topics → how many memories ``topic:`` finds by it, most frequent first.

    Of all that may be read. Opens a head for each topic that is looked up, no body.
    """
    vault = opened.vault
    snapshot, openable = vault.snapshot(), set(vault.keyring.openable())
    seen = snapshot.visible(openable)
    blinders = {one: vault.keyring.of(one).blinder for one in openable}
    counts = {}
    for topic, shown in _spellings(vault, snapshot, seen, NAMED).items():
        group = {one: [blinder.topic(topic)] for one, blinder in blinders.items()}
        counts[shown] = int(np.count_nonzero(with_topic_or_below(snapshot, group) & seen))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return dict(ranked[:most])


def _spellings(vault: OpenVault, snapshot: Snapshot, seen: Mask, most: int) -> dict[str, str]:
    """Topics, normalised → as they were written: the ``most`` frequent ones of each collection."""
    found: dict[str, str] = {}
    for some in parts(carriers(snapshot, seen, most)):
        for head in open_heads(vault, snapshot.ids(some)).values():
            for topic in head.topics.values():
                found.setdefault(normalise_topic(topic), topic)
    return found


@action(None, writes=False)
def recent_topics(opened: Opened, memories: int = 500) -> list[str]:
    """The topics of the newest so many memories, most frequent first, each in its first spelling.
    Opens their heads, no body."""
    snapshot = opened.vault.snapshot()
    newest = newest_first(snapshot, snapshot.alive.nonzero()[0], memories)
    spellings: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for head in open_heads(opened.vault, snapshot.ids(newest)).values():
        for topic in head.topics.values():
            counts[normalise_topic(topic)] += 1
            spellings.setdefault(normalise_topic(topic), topic)
    return [spellings[topic] for topic, _ in counts.most_common()]


@action(None, writes=False)
def topic_hash(opened: Opened, text: str, collection: str | None = None) -> str | None:
    """The keyed hash of a topic as ``memory_topics`` stores it, in hex.

    ``None`` while ``set_topics`` fills that table: a comparison with it would find nothing, or
    everything. Where topics are kept in memory alone the table is empty, and the hash finds
    nothing.
    """
    vault = opened.vault
    vault.follow_settings()  # or the hash might be one of before a change of the key
    held = vault.collections.find(collection)
    if vault.settings.topics_kept == FILLING:
        return None
    keys = vault.keyring.of(held)
    tag = keys.blinder.topic(normalise_topic(text))
    return keys.stored(tag, asked_epoch(vault.reader(), keys)).hex()
