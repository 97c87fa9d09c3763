"""Order in one's own memories: what to look through, and what can be done with a pair.

Boundary: opens the memories that it shows, where the keys do, and heads of those near to them, for
topics. Pairs are found by vectors and tags in memory. What is done with a pair is an edit or a
deletion as any other: the trash has the way back.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from memory_store.actions.action import Opened, action
from memory_store.actions.attempts import again_if_overtaken, with_succession
from memory_store.actions.edits import change_many, remove_many
from memory_store.actions.reads import open_all, open_one, shown
from memory_store.actions.suggestions import of_neighbours
from memory_store.actions.writes import write
from memory_store.dates import validity
from memory_store.errors import BadInputError
from memory_store.importing import drafts
from memory_store.index.likeness import Ordinals, Pair, newest, untagged
from memory_store.index.snapshot import Filters, Mask, Snapshot
from memory_store.plain_text import without_marks
from memory_store.records import Memory, MemoryChange, Review, Reviewed, ReviewedPair, base_type
from memory_store.records.sync import CONFLICT_OF, CONFLICT_TOPIC
from memory_store.session.opened_vault import OpenVault
from memory_store.text.canonical import normalise_topic
from memory_store.text.identifiers import CODE
from memory_store.titles import shown_title
from memory_store.vault.audit_events import EDIT, READ
from memory_store.vault.trash import Change

SAME, SAME_DEVIATIONS = 0.93, 6.0  # cosine from which two texts say the same; see ``likeness``
EQUAL = 1.0  # of equal texts, which say the same whatever is usual
APART, APART_DEVIATIONS = 0.70, 4.0  # … from which one may replace the other, by topic
ALIKE, LATER = "alike", "later"
"""What a pair may be: of the second, one is a later statement about the topic of the other."""
MAY_REPLACE = frozenset({"fact", "preference", "decision", "note"})
MOST, MOST_LISTED = 20, 100  # of each kind that is shown
LOOKED_AT = 400  # pairs that may be shown: those that are kept both drop out
BEGINNING = 200  # characters of a text
SUGGESTED = 3  # topics
DISTINCT = "distinct_from"  # metadata: ids of memories that this one is kept beside


def _listed(found: Review) -> tuple[int, int]:
    pairs = len(found.conflicts) + len(found.same) + len(found.apart)
    count = 2 * pairs + len(found.over) + len(found.untagged)
    return count, count


@action(READ, writes=False, counts=_listed)
def listed(opened: Opened, *, limit: int = MOST) -> Review:
    """What may want putting in order, at most ``limit`` of each kind, of all that may be read.

    Raises BadInputError.
    """
    if not 1 <= limit <= MOST_LISTED:
        raise BadInputError(f"limit: 1 to {MOST_LISTED} expected", "limit")
    vault = opened.vault
    snapshot = vault.snapshot()
    readable = snapshot.mask(Filters(collections=tuple(vault.keyring.openable())))
    readable &= ~_code(snapshot)
    valid = snapshot.mask(Filters(**validity(None, superseded=False))) & readable
    same, apart, compared = _pairs(vault, snapshot, valid)
    conflicts = _conflicts(vault, snapshot, readable)
    over = _over(vault, snapshot, readable & ~valid)
    without = newest(snapshot, np.flatnonzero(untagged(snapshot, valid)))
    return Review(
        same=_shown_pairs(vault, snapshot, same[:limit]),
        apart=_shown_pairs(vault, snapshot, apart[:limit]),
        over=tuple(map(_short, over[:limit])),
        untagged=_suggested(vault, snapshot, valid, without[:limit]),
        conflicts=tuple(conflicts[:limit]),
        counts={
            "conflicts": len(conflicts),
            "same": len(same),
            "apart": len(apart),
            "over": len(over),
            "untagged": int(np.count_nonzero(untagged(snapshot, valid))),
        },
        compared=compared,
    )


@action(EDIT, writes=True, counts=lambda _: (2, 1))
def keep(opened: Opened, one: str, other: str, *, group: str = "") -> None:
    """Keep both of a pair: they are not shown as one again. ``group`` is what the trash calls this
    change (empty: a random name). Raises NotFoundError."""
    newer, older = _opened_pair(opened.vault, one, other)
    said = [*_kept_ids(newer), older.id]
    change = MemoryChange(newer.id, metadata={**newer.metadata, DISTINCT: said})
    changes = [replace(change, expected_version=newer.version)]
    if CONFLICT_OF in older.metadata:
        kept = {name: value for name, value in older.metadata.items() if name != CONFLICT_OF}
        changes.append(MemoryChange(older.id, metadata=kept, remove_topics=(CONFLICT_TOPIC,)))
    change_many(opened, changes, group=group)


@action(EDIT, writes=True, counts=lambda _: (2, 2))
def merge(opened: Opened, one: str, other: str, *, group: str = "") -> Memory:
    """Make one memory of a pair: the newer, with the topics of both, and with the older's text
    below its own where that says more. The older goes to the trash. ``group`` as in :func:`keep`.

    Raises NotFoundError, and BadInputError for a pair of two collections: a text that a few may
    read must not get among others'.
    """
    newer, older = _opened_pair(opened.vault, one, other)
    if newer.collection != older.collection:
        raise BadInputError("they are in different collections: move one first", "other")
    change_as = Change(group=group) if group else Change()
    topics = tuple(topic for topic in older.topics if topic != CONFLICT_TOPIC)
    change = MemoryChange(newer.id, add_topics=topics, expected_version=newer.version)
    if _words(older.text) not in _words(newer.text):
        change = replace(change, text=f"{newer.text.rstrip()}\n\n{older.text.lstrip()}")
    merged = change_many(opened, [change], group=change_as.group)[0]
    remove_many(opened, {older.id: older.version}, change_as)
    return merged


@action(EDIT, writes=True, counts=lambda _: (2, 2))
def supersede(opened: Opened, older: str, newer: str, *, group: str = "") -> Memory:
    """Let a memory take the place of another, which stays, and is valid until the new one began.

    ``group`` as in :func:`keep`. Raises NotFoundError, BadInputError.
    """
    vault = opened.vault

    def attempt() -> Memory:
        old, new = (open_one(vault, given, refs=False) for given in (older, newer))
        if old.id == new.id:
            raise BadInputError("a memory cannot take its own place", "newer")
        after = drafts.next_version(new, supersedes=old.id)
        write(opened, with_succession(vault, [after]), group=group)
        return shown(vault, [after])[0]

    return again_if_overtaken(vault, attempt)


def _opened_pair(vault: OpenVault, one: str, other: str) -> tuple[Memory, Memory]:
    """The newer and the older of two memories; of a conflict, the one that stayed and the other."""
    both = [open_one(vault, given, refs=False) for given in (one, other)]
    if both[0].id == both[1].id:
        raise BadInputError("two memories expected, not one twice", "other")
    newer, older = sorted(both, key=lambda memory: (memory.created, memory.id), reverse=True)
    return (older, newer) if newer.metadata.get(CONFLICT_OF) == older.id else (newer, older)


def _code(snapshot: Snapshot) -> Mask:
    codes = [n for n, name in enumerate(snapshot.types) if base_type(name) == CODE]
    return np.isin(snapshot.type_codes, codes)


def _pairs(vault: OpenVault, snapshot: Snapshot, valid: Mask) -> tuple[list[Pair], list[Pair], int]:
    """The pairs that say the same, those of which one may replace the other, and how many memories
    were compared. Opens the pairs of which that is not known since they were last changed."""
    kept = vault.likenesses.of(vault, snapshot, valid, (APART, APART_DEVIATIONS), LOOKED_AT)
    found, known = kept.found, kept.kinds
    pairs = {kept.key(pair): pair for pair in found.pairs[:LOOKED_AT]}
    memories = _opened(vault, snapshot, [one for key, one in pairs.items() if key not in known])
    kinds = {key: known.get(key) or _kind(snapshot, pair, memories) for key, pair in pairs.items()}
    kept.kinds = {key: kind for key, kind in kinds.items() if kind}
    bound = min(max(SAME, found.usual + SAME_DEVIATIONS * found.spread), EQUAL)
    listed = [(pair, kinds[key]) for key, pair in pairs.items() if kinds[key] in (ALIKE, LATER)]
    same = [pair for pair, _ in listed if pair.near >= bound]
    apart = [pair for pair, kind in listed if pair.near < bound and kind == LATER]
    return same, apart, found.compared


def _opened(vault: OpenVault, snapshot: Snapshot, pairs: Sequence[Pair]) -> dict[str, Memory]:
    ids = snapshot.ids([one for pair in pairs for one in (pair.newer, pair.older)])
    return {one.id: one for one in shown(vault, open_all(vault, list(dict.fromkeys(ids))))}


def _shown_pairs(
    vault: OpenVault, snapshot: Snapshot, pairs: Sequence[Pair]
) -> tuple[ReviewedPair, ...]:
    memories = _opened(vault, snapshot, pairs)
    both = ((_both(snapshot, pair, memories), pair.near) for pair in pairs)
    return tuple(_pair(*two, near) for two, near in both if two is not None)


def _kind(snapshot: Snapshot, pair: Pair, memories: Mapping[str, Memory]) -> str:
    """What a pair may be listed as; empty where one of it is gone in this moment."""
    both = _both(snapshot, pair, memories)
    if both is None:
        return ""
    if _kept_beside(*both) or any(CONFLICT_OF in one.metadata for one in both):
        return DISTINCT
    return LATER if _may_replace(*both) else ALIKE


def _both(
    snapshot: Snapshot, pair: Pair, memories: Mapping[str, Memory]
) -> tuple[Memory, Memory] | None:
    newer, older = (memories.get(snapshot.id(one)) for one in (pair.newer, pair.older))
    return (newer, older) if newer is not None and older is not None else None


def _kept_beside(newer: Memory, older: Memory) -> bool:
    return older.id in _kept_ids(newer) or newer.id in _kept_ids(older)


def _kept_ids(memory: Memory) -> list[str]:
    """The memories that one is kept beside: its metadata may say anything."""
    said = memory.metadata.get(DISTINCT)
    return [one for one in said if isinstance(one, str)] if isinstance(said, list) else []


def _may_replace(newer: Memory, older: Memory) -> bool:
    """Whether one is a statement about the same as the other, later."""
    common = set(map(normalise_topic, newer.topics)) & set(map(normalise_topic, older.topics))
    kinds = {newer.type, older.type} <= MAY_REPLACE
    return bool(common) and kinds and newer.created > older.created


def _conflicts(vault: OpenVault, snapshot: Snapshot, readable: Mask) -> list[ReviewedPair]:
    """What lost against another device's version and is still beside it, the newest first."""
    topic = normalise_topic(CONFLICT_TOPIC)
    hashes = {one: [vault.keyring.of(one).blinder.topic(topic)] for one in vault.keyring.openable()}
    marked = snapshot.mask(Filters(topics_any=(hashes,))) & readable
    lost = open_all(vault, snapshot.ids(newest(snapshot, np.flatnonzero(marked))[:LOOKED_AT]))
    stayed = {one.id: one for one in open_all(vault, [_stayed(each) for each in lost])}
    pairs = [(stayed[_stayed(one)], one) for one in lost if _stayed(one) in stayed]
    memories = {one.id: one for one in shown(vault, [one for pair in pairs for one in pair])}
    return [_pair(memories[one.id], memories[other.id], 0.0) for one, other in pairs]


def _stayed(lost: Memory) -> str:
    return str(lost.metadata.get(CONFLICT_OF, ""))


def _over(vault: OpenVault, snapshot: Snapshot, mask: Mask) -> list[Memory]:
    """What is valid no longer and has no successor, the last that ended first."""
    ended = np.flatnonzero(mask & (snapshot.valid_to < time.time()))
    ended = ended[np.argsort(-snapshot.valid_to[ended], kind="stable")][:LOOKED_AT]
    opened = {one.id: one for one in shown(vault, open_all(vault, snapshot.ids(ended)))}
    in_order = (opened.get(one) for one in snapshot.ids(ended))
    return [one for one in in_order if one is not None and one.superseded_by is None]


def _suggested(
    vault: OpenVault, snapshot: Snapshot, valid: Mask, asked: Ordinals
) -> tuple[Reviewed, ...]:
    """Memories without a topic, with the topics that several of their neighbours have."""
    if not len(asked):
        return ()
    topics = of_neighbours(vault, snapshot, valid, asked)
    opened = {one.id: one for one in shown(vault, open_all(vault, snapshot.ids(asked)))}
    found = []
    for ordinal, near in zip(asked.tolist(), topics, strict=True):
        memory = opened.get(snapshot.id(ordinal))
        if memory is not None:
            suggested = tuple(one.topic for one in near[:SUGGESTED])
            found.append(replace(_short(memory), suggested=suggested))
    return tuple(found)


def _pair(newer: Memory, older: Memory, near: float) -> ReviewedPair:
    return ReviewedPair(_short(newer), _short(older), round(near, 3))


def _short(memory: Memory) -> Reviewed:
    return Reviewed(
        id=memory.id,
        title=shown_title(memory.title, memory.text),
        type=memory.type,
        created=memory.created,
        collection=memory.collection,
        topics=memory.topics,
        begins=_beginning(memory.text),
        valid_to=memory.valid_to,
        ref=memory.ref,
    )


def _words(text: str) -> str:
    return " ".join(text.split())


def _beginning(text: str) -> str:
    """The first words, without the marks of Markdown."""
    words = _words(without_marks(text[: 4 * BEGINNING], ())[0])
    return words if len(words) <= BEGINNING else words[:BEGINNING].rpartition(" ")[0] + " …"
