"""Topics for a memory, as memories near to it in meaning have them: suggested, never given.

Boundary: neighbours are found by vectors in memory, of collections that the key may read; their
heads are opened for their topics.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from memory_store.actions.action import Opened, action
from memory_store.actions.reads import open_heads, resolve
from memory_store.dates import validity
from memory_store.errors import NotFoundError
from memory_store.index.likeness import Ordinals, nearest, untagged
from memory_store.index.snapshot import Filters, Mask, Snapshot
from memory_store.records.review import SuggestedTopic
from memory_store.session.likenesses import unread
from memory_store.session.opened_vault import OpenVault
from memory_store.text.canonical import normalise_topic
from memory_store.vault.audit_events import READ

NEAR, SHARED = 8, 2  # neighbours whose topics count, and how many of them must have one
AMONG = 4 * NEAR
"""Of so many nearest memories, with topics or without: in a vault with few topics, the nearest that
have some may be far away."""
MOST = 5


@action(READ, writes=False, counts=lambda found: (0, len(found)))
def suggested_topics(opened: Opened, memory_id: str, *, refs: bool = True) -> list[SuggestedTopic]:
    """Topics that several memories near to one in meaning have, and it has not.

    By id, the beginning of an id, or (``refs``) ref. Opens heads, no text. Raises NotFoundError.
    """
    vault = opened.vault
    memory = resolve(vault, memory_id, refs=refs)
    snapshot, openable = vault.snapshot(), tuple(vault.keyring.openable())
    ordinal, own = snapshot.ordinal_of(memory), open_heads(vault, [memory]).get(memory)
    if ordinal is None or own is None:
        raise NotFoundError(f"no memory {memory_id!r}")
    mask = snapshot.mask(Filters(collections=openable, **validity(None, superseded=False)))
    (found,) = of_neighbours(vault, snapshot, mask, np.array([ordinal]))
    has = set(map(normalise_topic, own.topics.values()))
    fresh = [one for one in found if normalise_topic(one.topic) not in has]
    return fresh[:MOST]


def of_neighbours(
    vault: OpenVault, snapshot: Snapshot, mask: Mask, asked: Ordinals
) -> list[list[SuggestedTopic]]:
    """For each document asked for the topics that its neighbours in ``mask`` share, the most
    frequent first. Of what its model does not read nothing is near."""
    silent = unread(snapshot, vault.settings.indexing)
    tagged = mask & ~untagged(snapshot, mask)
    near = []
    every = nearest(snapshot, asked, np.flatnonzero(mask & ~silent), AMONG + 1)
    for ordinal, others in zip(asked.tolist(), every, strict=True):
        others = others[others != ordinal][: 0 if silent[ordinal] else AMONG]
        near.append(others[tagged[others]][:NEAR])
    heads = open_heads(vault, snapshot.ids(np.unique(np.concatenate([*near, asked[:0]]))))
    answers = []
    for others in near:
        counts: Counter[str] = Counter()
        spelled: dict[str, str] = {}
        for one in snapshot.ids(others):
            topics = set(heads[one].topics.values()) if one in heads else set[str]()
            for name, topic in {normalise_topic(topic): topic for topic in sorted(topics)}.items():
                counts[name] += 1
                spelled.setdefault(name, topic)
        ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
        answers.append([SuggestedTopic(spelled[n], c) for n, c in ordered if c >= SHARED])
    return answers
