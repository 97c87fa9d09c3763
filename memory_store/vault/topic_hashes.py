"""The hashes of topics as they stand in the file, and how a change of keys replaces them.

Boundary: keyed hashes in, keyed hashes out; no topic is opened.

A reader asks the file for one hash of a topic, and must never find half of its memories. So a
change of keys first *fills*: beside each hash it puts the one of the new epoch, batch by batch,
while everybody goes on asking for the former ones, which are all there. Then it *drains*: from one
moment on everybody asks for the new ones, which are all there by then, and the former are deleted.
A row of ``vault_settings`` says in clear that a collection is being filled, and which epoch to ask
for; a memory that is written meanwhile gets both hashes. Nothing is believed of that row but this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from memory_store.crypto.blinding import TAG_BYTES
from memory_store.errors import TamperedError
from memory_store.vault.collection_keys import CollectionKeys
from memory_store.vault.storage import Storage
from memory_store.vault.storage.memories import TopicRow

END = 2**63 - 1  # behind the last row
BATCH = 512  # rows of topics that are looked at in a transaction: about 10 ms of others' time
FILLING = "topics "  # before the collection's id: the name of the row that says so

Done = tuple["int | None", int]


def write_topics(
    storage: Storage, keys: CollectionKeys, topics: Mapping[str, Iterable[bytes]]
) -> None:
    """Store the topics of memories, by id and their tags (inside the caller's transaction)."""
    epochs = dict.fromkeys((keys.epoch, asked_epoch(storage, keys)))
    storage.topics.insert(
        [
            (memory, keys.stored(tag, epoch))
            for memory, tags in topics.items()
            for tag in tags
            for epoch in epochs
        ]
    )


def asked_epoch(storage: Storage, keys: CollectionKeys) -> int:
    """The epoch whose hashes of a collection's topics are all there."""
    if keys.epoch == 0:
        return 0
    epoch = storage.settings.number(FILLING + keys.collection)
    if epoch is None or epoch not in keys.bundles():  # as one that was left is not
        return keys.epoch
    return epoch


def begin_filling(storage: Storage, collection: str, epoch: int) -> None:
    """Note that hashes are asked for in that epoch until all are there in the next."""
    storage.settings.write_clear({FILLING + collection: str(epoch)})


def end_filling(storage: Storage, collection: str) -> None:
    """Note that the hashes of a collection are those of its newest epoch."""
    storage.settings.delete(FILLING + collection)


def fill(storage: Storage, keys: CollectionKeys, below: int) -> Done:
    """Add the new epoch's hashes to some rows, from the end of the table to its beginning.

    New rows come behind those that were looked at. Returns where to go on, ``None`` at the end, and
    how many were added.
    """
    former, newest = asked_epoch(storage, keys), keys.epoch
    if former == newest:
        return None, 0
    place, rows = _some(storage, keys, below)
    if place is None:
        end_filling(storage, keys.collection)
        return None, 0
    exchanged = cache(keys.exchanged)
    present = storage.topics.of({memory for memory, _ in rows})
    missing = [
        (memory, exchanged(topic, former, newest))
        for memory, topic in rows
        if (memory, exchanged(topic, newest, former)) not in present  # else it is a new one
    ]
    added = [row for row in missing if row not in present]
    storage.topics.insert(added)
    return place, len(added)


def drain(storage: Storage, keys: CollectionKeys, below: int) -> Done:
    """Delete former epochs' hashes from some rows, beside which the new one's stand.

    As :func:`fill`, after it: while others fill, nothing is done.
    """
    newest = keys.epoch
    formers = [epoch for epoch in keys.bundles() if epoch != newest]
    if not formers or asked_epoch(storage, keys) != newest:
        return None, 0
    place, rows = _some(storage, keys, below)
    exchanged = cache(keys.exchanged)
    present = storage.topics.of({memory for memory, _ in rows})
    left = [
        (memory, topic)
        for memory, topic in rows
        if any((memory, exchanged(topic, former, newest)) in present for former in formers)
    ]
    storage.topics.delete(left)
    return place, len(left)


STEPS = (fill, drain)
"""What replaces the hashes of a collection, in this order."""


def _some(storage: Storage, keys: CollectionKeys, below: int) -> tuple[int | None, list[TopicRow]]:
    place, rows = storage.topics.before(below, BATCH, keys.collection)
    for memory, topic in rows:
        if not isinstance(topic, bytes) or len(topic) != TAG_BYTES:  # a thief may have written it
            raise TamperedError(f"memory_topics of {memory}: not a hash")
    return place, rows
