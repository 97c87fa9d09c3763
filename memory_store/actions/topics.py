"""The topics that most memories carry, without opening more than a few of them.

Boundary: the index holds topics as keyed hashes, which tell how many carry each. Names come from
the heads of a few memories that carry the most frequent ones, of collections that may be read.
"""

from __future__ import annotations

from memory_store.actions.reads import heads
from memory_store.index.topics import carriers
from memory_store.session.opened_vault import OpenVault
from memory_store.text.canonical import normalise_topic

NAMED = 40
"""Topics of each collection that are looked up. One that is frequent only in the sum of many
collections may be missed; those that are told have their true number."""


def frequent_topics(vault: OpenVault, most: int) -> dict[str, int]:
    """At most so many topics → how many memories carry it, most frequent first.

    Of all that may be read. Opens a head for each topic that is looked up, no body.
    """
    snapshot, openable = vault.snapshot(), set(vault.keyring.openable())
    seen = snapshot.visible(openable)
    spellings: dict[str, str] = {}
    for head in heads(vault, snapshot.ids(carriers(snapshot, seen, NAMED))).values():
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
