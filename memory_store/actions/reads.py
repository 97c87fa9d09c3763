"""Reading an opened vault: a memory by what names it, a list by filters, all by reference.

Boundary: opens what it returns, where the keys do; memories of collections that may be searched and
not read come out sealed. Memories of collections that the key cannot read are not found.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from memory_store.actions.collections import collection_ids
from memory_store.dates import epoch, parse_moment
from memory_store.errors import BadInputError, NotFoundError, TamperedError
from memory_store.index.snapshot import Filters, Mask, Snapshot
from memory_store.records import STATUSES, Memory, MemoryHead, Reference
from memory_store.session.opened_vault import OpenVault
from memory_store.text.canonical import normalise_topic
from memory_store.vault.damage import vault_faults
from memory_store.vault.heads import find_by_ref, read_refs
from memory_store.vault.keyring import CollectionKeys
from memory_store.vault.rows import (
    open_bodies,
    open_head,
    open_memories,
    read_rows,
    resolve_id,
    topic_tags,
)

AT_ONCE = 64  # memories that are open at a time where all are asked for
Ordinals = npt.NDArray[np.int64]


def resolve(vault: OpenVault, given: str, *, refs: bool = True) -> str:
    """The id of the memory that an id, its beginning or (``refs``) a ref names; opens no text.

    Raises NotFoundError, also for memories of collections that this key may not read.
    """
    try:
        return resolve_id(vault.reader(), vault.keyring, given)
    except NotFoundError:
        if not refs:
            raise
    with vault.moment() as (connection, known):
        return find_by_ref(connection, vault.keyring, given, known)


def open_all(vault: OpenVault, ids: Sequence[str]) -> list[Memory]:
    """The memories of those ids as they are kept, under their collection's id."""
    with vault.moment() as (connection, known):
        return list(open_memories(connection, vault.keyring, ids, known))


def open_one(vault: OpenVault, given: str, *, refs: bool = True) -> Memory:
    """The memory that :func:`resolve` finds, as it is kept. Raises NotFoundError."""
    opened = open_all(vault, [resolve(vault, given, refs=refs)])
    if not opened:  # somebody deleted it since it was resolved
        raise NotFoundError(f"no memory {given!r}")
    return opened[0]


def shown(vault: OpenVault, memories: Sequence[Memory]) -> list[Memory]:
    """Memories as callers see them: with their collection's name for its id."""
    names = vault.collections.names()
    for memory in memories:
        if memory.collection not in names:
            raise TamperedError(f"collections of {memory.collection}: its name is missing")
    return [replace(memory, collection=names[memory.collection]) for memory in memories]


def get(vault: OpenVault, given: str, *, refs: bool = True) -> Memory:
    """The memory that :func:`resolve` finds, as callers see it. Raises NotFoundError."""
    return shown(vault, [open_one(vault, given, refs=refs)])[0]


def heads(vault: OpenVault, ids: Sequence[str]) -> dict[str, MemoryHead]:
    """Id → head of those memories, less those that are gone or not this key's to read."""
    names = vault.collections.names()
    openable = names.keys() & set(vault.keyring.openable())
    opened = {}
    with vault.moment() as (connection, known):
        for row in read_rows(connection, ids).values():
            if row.collection in openable:
                head = open_head(vault.keyring, row, known)
                hashes = _topics_by_hash(vault.keyring.of(row.collection), head["topics"])
                opened[row.id] = MemoryHead(
                    row.id, names[row.collection], head["title"], row.content, hashes
                )
    return opened


def _topics_by_hash(keys: CollectionKeys, topics: Sequence[str]) -> dict[str, str]:
    """The forms in which topics stand in the file, in hex → the topic."""
    return {
        form.hex(): topic
        for topic in topics
        if normalise_topic(topic)
        for form in keys.stored_forms(topic_tags(keys, [topic])[0])
    }


def texts(vault: OpenVault, contents: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Id of a body → a memory that holds it, and its text; less those not this key's to read."""
    with vault.moment() as (connection, known):
        return open_bodies(connection, vault.keyring, contents, known)


def present(vault: OpenVault, ids: Sequence[str]) -> frozenset[str]:
    """Those of some ids that are memories this key may read; opens nothing."""
    readable = set(vault.keyring.readable())
    rows = read_rows(vault.reader(), ids).values()
    return frozenset(row.id for row in rows if row.collection in readable)


def found_again(vault: OpenVault, ids: Sequence[str]) -> list[Memory]:
    """The memories of those ids, in that order, less those deleted meanwhile."""
    opened = {memory.id: memory for memory in open_all(vault, ids)}
    return [opened[one] for one in ids if one in opened]


def newest_first(
    vault: OpenVault,
    *,
    collections: Sequence[str],
    types: Sequence[str],
    topics: Sequence[str],
    status: str,
    since: str | None,
    until: str | None,
    limit: int,
    offset: int,
    after: tuple[str, str] | None = None,
) -> list[Memory]:
    """What the filters let through, with texts, newest first, of one moment by id.

    ``after`` is the ``created`` and the id of a memory: only what comes behind it, whether or not
    it is still there. Raises BadInputError, NotFoundError for a collection that is not there.
    """
    if status not in STATUSES:
        raise BadInputError(f"no status {status!r}; there is: {', '.join(STATUSES)}", "status")
    if limit < 0 or offset < 0:
        raise BadInputError("limit and offset are 0 or more", "limit")
    snapshot = vault.snapshot()
    mask = snapshot.mask(
        Filters(
            collections=collection_ids(vault, collections),
            types=tuple(types),
            topics_any=tuple(_topic_group(vault, name) for name in topics),
            status=status,
            since=parse_moment(since, parameter="since") if since else None,
            until=parse_moment(until, parameter="until", end=True) if until else None,
        )
    )
    if after is not None:
        mask &= _behind(snapshot, *after)
    newest = _newest_first(snapshot, mask.nonzero()[0])
    return shown(vault, open_all(vault, snapshot.ids(newest[offset : offset + limit])))


def every(vault: OpenVault) -> Iterator[Memory]:
    """Every memory, newest first, of one moment by id; a few of them at a time are in memory.

    To be asked by one thread, which holds the vault open until the last one.
    """
    with (
        vault_faults(vault.path),
        vault.gate.entered(),
        vault.moment(counted=True) as (connection, known),
    ):
        snapshot = known.snapshot.limited_to(vault.keyring.readable())
        newest = _newest_first(snapshot, snapshot.alive.nonzero()[0])
        for start in range(0, len(newest), AT_ONCE):
            ids = snapshot.ids(newest[start : start + AT_ONCE])
            some = shown(vault, list(open_memories(connection, vault.keyring, ids, known)))
            vault.access.check_unchanged(vault.path)
            yield from some


def _newest_first(snapshot: Snapshot, ordinals: Ordinals) -> Ordinals:
    high, low = snapshot.id_words[ordinals].T
    return ordinals[np.lexsort((low, high, -snapshot.created[ordinals]))]


def recent_topics(vault: OpenVault, memories: int) -> list[str]:
    """The topics of the newest so many memories, most frequent first, each in its first spelling.
    Opens their heads, no body."""
    snapshot = vault.snapshot()
    ordinals = snapshot.alive.nonzero()[0]
    newest = ordinals[(-snapshot.created[ordinals]).argsort(kind="stable")][:memories]
    spellings: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for head in heads(vault, snapshot.ids(newest)).values():
        for topic in head.topics.values():
            counts[normalise_topic(topic)] += 1
            spellings.setdefault(normalise_topic(topic), topic)
    return [spellings[topic] for topic, _ in counts.most_common()]


def _behind(snapshot: Snapshot, created: str, memory_id: str) -> Mask:
    """bool [size]: what comes behind a place in the order of :func:`newest_first`."""
    moment = epoch(created, parameter="after")
    number = uuid.UUID(memory_id).int
    high, low = np.uint64(number >> 64), np.uint64(number & 0xFFFF_FFFF_FFFF_FFFF)
    highs, lows = snapshot.id_words.T
    later_id = (highs > high) | ((highs == high) & (lows > low))
    behind: Mask = (snapshot.created < moment) | ((snapshot.created == moment) & later_id)
    return behind


def references(vault: OpenVault) -> list[Reference]:
    """Every memory's id, ref and content. Opens every head, no body."""
    snapshot = vault.snapshot()
    with vault.moment() as (connection, known):
        refs = read_refs(connection, vault.keyring, set(vault.keyring.readable()), known)
    contents: dict[bytes, int] = {}
    return [
        Reference(
            memory := snapshot.id(int(ordinal)),
            refs.get(memory),
            contents.setdefault(snapshot.content_tags[ordinal].tobytes(), len(contents)),
        )
        for ordinal in snapshot.alive.nonzero()[0]
    ]


def _topic_group(vault: OpenVault, topic: str) -> dict[str, list[bytes]]:
    """A topic's hashes in every collection that the key can read."""
    normalised = normalise_topic(topic)
    if not normalised:
        raise BadInputError(f"{topic!r} is no topic", "topic")
    return {
        collection: [vault.keyring.of(collection).blinder.topic(normalised)]
        for collection in vault.keyring.readable()
    }
