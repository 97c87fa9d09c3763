"""The topics of an opened vault's memories.

Boundary: opens heads of memories, no body. The index holds topics as keyed hashes, which say how
many memories carry each; the most frequent ones are named from the heads of a few memories, of
collections that may be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from memory_store.actions.action import Opened, action
from memory_store.actions.collections import collection_ids
from memory_store.actions.reads import open_heads
from memory_store.index.topics import carriers
from memory_store.records import several
from memory_store.text.canonical import normalise_topic
from memory_store.vault.heads import count_topics
from memory_store.vault.settings import FILLING
from memory_store.vault.topic_hashes import asked_epoch

NAMED = 40
"""Topics of each collection that are looked up. One that is frequent only in the sum of many
collections may be missed; those that are told have their true number."""


@action(None, writes=False)
def topics(opened: Opened, *, collection: str | Sequence[str] = ()) -> dict[str, int]:
    """Topic → how many memories carry it, most frequent first. Opens every head, no body."""
    vault = opened.vault
    wanted = collection_ids(vault, several(collection)) or vault.keyring.readable()
    with vault.moment() as (storage, known):
        return count_topics(storage, vault.keyring, set(wanted), known)


@action(None, writes=False)
def frequent_topics(opened: Opened, most: int = 10) -> dict[str, int]:
    """At most so many topics → how many memories carry it, most frequent first.

    Of all that may be read. Opens a head for each topic that is looked up, no body.
    """
    vault = opened.vault
    snapshot, openable = vault.snapshot(), set(vault.keyring.openable())
    seen = snapshot.visible(openable)
    spellings: dict[str, str] = {}
    for head in open_heads(vault, snapshot.ids(carriers(snapshot, seen, NAMED))).values():
        for topic in head.topics.values():
            spellings.setdefault(normalise_topic(topic), topic)
    blinders = {one: vault.keyring.of(one).blinder for one in openable}
    group = {
        one: [blinder.topic(topic) for topic in spellings] for one, blinder in blinders.items()
    }
    counts = snapshot.topic_counts(group, seen)
    ranked = sorted(
        zip(spellings.values(), counts, strict=True), key=lambda item: (-item[1], item[0])
    )
    return dict(ranked[:most])


@action(None, writes=False)
def recent_topics(opened: Opened, memories: int = 500) -> list[str]:
    """The topics of the newest so many memories, most frequent first, each in its first spelling.
    Opens their heads, no body."""
    snapshot = opened.vault.snapshot()
    ordinals = snapshot.alive.nonzero()[0]
    newest = ordinals[(-snapshot.created[ordinals]).argsort(kind="stable")][:memories]
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
