"""Sealing a collection's rows anew, in the newest epoch of its keys: batch by batch.

Boundary: sealed rows in, sealed rows out; a content is in memory for as long as its batch lasts.
Every value authenticates under the key it was sealed with first: what was tampered with stops the
change of keys and is named, never sealed anew.

Each function works inside the caller's transaction, and does what it finds left of the earlier
epochs: at the end nothing is, and however often it was stopped it goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from memory_store.crypto.blinding import TAG_BYTES
from memory_store.crypto.sealing import sealed_epoch
from memory_store.errors import TamperedError
from memory_store.vault.collection_keys import CollectionKeys
from memory_store.vault.manifest import read_manifest, write_manifest
from memory_store.vault.rows import body_place
from memory_store.vault.segments import reseal_segment
from memory_store.vault.storage import Storage
from memory_store.vault.trash import resealed

BATCH = 256  # rows in a transaction: about 10 ms of other writers' time

Done = tuple["int | None", int]
Step = Callable[[Storage, CollectionKeys, int], Done]
"""Seals some rows behind a rowid anew: the rowid to go on from (None: none was left), how many."""


def reseal_heads(storage: Storage, keys: CollectionKeys, after: int) -> Done:
    """Heads of memories."""
    rows = storage.memories.sealed_before(keys.collection, _epoch(keys), after, BATCH)
    fresh = []
    for _, row, version, sealed in rows:
        place = keys.place("memories", "head", row, version)
        fresh.append((keys.seal("head", place, keys.unseal("head", place, sealed)), row))
    storage.memories.replace_heads(fresh)
    return (rows[-1][0] if rows else None), len(rows)


def reseal_bodies(storage: Storage, keys: CollectionKeys, after: int) -> Done:
    """Bodies, with the tags that they are found by."""
    rows = storage.memories.bodies_sealed_before(keys.collection, _epoch(keys), after, BATCH)
    fresh = []
    for _, content, tag, sealed in rows:
        before = body_place(keys, content, tag)
        text = keys.unseal("body", before, sealed, earliest=keys.earliest)
        stored = keys.exchanged(tag, sealed_epoch(sealed, before), keys.epoch)
        resealed = keys.seal("body", body_place(keys, content, stored), text)
        fresh.append((stored, resealed, content))
    storage.memories.replace_bodies(fresh)
    return (rows[-1][0] if rows else None), len(rows)


def reseal_segments(storage: Storage, keys: CollectionKeys, after: int) -> Done:
    """One part of the index at a time: it may be large."""
    for row in storage.segments.rows():
        if row.collection == keys.collection and row.epoch != keys.epoch:
            reseal_segment(storage, keys, row)
            return after, 1
    return None, 0


def reseal_trash(storage: Storage, keys: CollectionKeys, after: int) -> Done:
    """Rows of the trash, each with the head and the body in it."""
    rows = storage.trash.sealed_before(keys.collection, _epoch(keys), after, BATCH)
    storage.trash.replace([(*resealed(keys, number, *cells), number) for number, *cells in rows])
    return (rows[-1][0] if rows else None), len(rows)


STEPS: tuple[Step, ...] = (
    reseal_segments,
    reseal_heads,
    reseal_bodies,
    reseal_trash,
)
"""What a collection's rows are, in the order they are done."""


def rows_of(storage: Storage, collection: str) -> int:
    """About how many steps a change of the collection's key takes, for a progress line."""
    return 1 + storage.memories.size(collection)


def new_account(
    storage: Storage,
    keys: CollectionKeys,
    upcoming: CollectionKeys,
    tags: bytes,
    revision: int,
) -> None:
    """Close the account of the collection and open one in the upcoming epoch.

    ``tags`` are the row tags of what lives in its index, side by side: they stay as they are.
    ``revision`` is that of the settings, whatever those who shared the collection have written.
    Raises TamperedError unless they are those that the account knows, and as many rows are there.
    """
    account = read_manifest(storage, keys)
    count = len(tags) // TAG_BYTES
    known = (count, keys.elements_of(account.epoch).total(tags)) == (account.count, account.total)
    if not known or storage.memories.counts([keys.collection]).get(keys.collection, 0) != count:
        raise TamperedError(
            f"collection {keys.collection}: its account knows {account.count} memories, others "
            "are there; memory-store verify shows which"
        )
    total = upcoming.elements_of(upcoming.epoch).total(tags)
    fresh = replace(account, counter=account.counter + 1, total=total, revision=revision)
    write_manifest(storage, upcoming, fresh)


def _epoch(keys: CollectionKeys) -> bytes:
    """The newest epoch, as it stands in a sealed value."""
    return keys.epoch.to_bytes(4, "big")
