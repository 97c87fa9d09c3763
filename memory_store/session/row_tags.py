"""Giving the rows of an earlier vault their tags: in the index and in the accounts.

Boundary: opens every memory once, for its owner, inside the transaction of the upgrade. Rows are
believed by their accounts of before for the last time, which knew ids and versions alone. So each
is held against its index entry, too: where a row was exchanged for an earlier one of its version,
and the entry was not, the two say different things. Which of them is right is not to be seen:
such a row gets a tag that no row has, and is refused from then on until it is deleted. Where the
entry was exchanged as well, nothing in the file shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from msgspec import structs

from memory_store.crypto.blinding import SUM_MODULUS, TAG_BYTES
from memory_store.errors import MemoryStoreError, TamperedError
from memory_store.index.codec import encode_main
from memory_store.index.snapshot import Snapshot
from memory_store.session.comparison import differences
from memory_store.session.entries import indexable
from memory_store.session.sealed_segments import alive_rows, living_tags, load_segment
from memory_store.vault.keyring import WholeKeyring
from memory_store.vault.manifest import (
    CONTENT_FORMAT,
    Manifest,
    earlier_total,
    read_manifest,
    rows_of,
    write_manifest,
)
from memory_store.vault.rows import open_memories
from memory_store.vault.segments import replace_main
from memory_store.vault.settings import Settings
from memory_store.vault.storage import Storage
from memory_store.vault.storage.damage import UNFORESEEN
from memory_store.vault.storage.memories import MemoryRow
from memory_store.vault.storage.segments import SegmentRow

BATCH = 256


def tag_rows(storage: Storage, keyring: WholeKeyring, settings: Settings) -> Settings:
    """A step of the upgrade to format 3. Raises TamperedError where rows, index and account of a
    collection are not of one mind."""
    keyring.strict = settings.profile == "strict"
    for collection in settings.collections:
        keys = keyring.of(collection)
        account, rows = read_manifest(storage, keys), rows_of(storage, collection)
        known = (account.count, account.total)
        if (len(rows), earlier_total(keys, rows, account.epoch)) != known:
            raise _others(collection, account)
        versions, count, total = dict(rows), 0, 0
        for row in storage.segments.rows():
            if row.collection == collection:
                there, added = _tag_segment(storage, keyring, row, versions)
                count, total = count + there, total + added
        if count != account.count:
            raise _others(collection, account)
        changes = {"counter": account.counter + 1, "total": total % SUM_MODULUS}
        tagged = structs.replace(account, format=CONTENT_FORMAT, **changes)
        write_manifest(storage, keys, tagged)
    return settings


def _others(collection: str, account: Manifest) -> TamperedError:
    return TamperedError(
        f"collection {collection}: its account knows {account.count} memories, others are there; "
        "memory-store verify shows which"
    )


def _tag_segment(
    storage: Storage, keyring: WholeKeyring, row: SegmentRow, versions: dict[str, int]
) -> tuple[int, int]:
    """Write a segment's part ``main`` with tags. Returns how many entries live, and their sum."""
    keys = keyring.of(row.collection)
    segment = load_segment(storage, keys, row)
    alive = alive_rows(storage, row, segment)
    snapshot = Snapshot([(segment, alive, row.collection)], untagged=[row.collection])
    living = alive.nonzero()[0].tolist()
    ids = snapshot.ids(living)
    pairs = zip(ids, segment.versions[alive].tolist(), strict=True)
    if any(versions.pop(memory, None) != version for memory, version in pairs):
        raise TamperedError(f"vault_segments of {row.id}: has entries of other rows than there are")
    places = dict(zip(ids, living, strict=True))
    tags = np.zeros((segment.count, TAG_BYTES), dtype=np.uint8)  # that of no row
    for start in range(0, len(living), BATCH):
        found = _tags(storage, keyring, snapshot, ids[start : start + BATCH])
        for memory, tag in found.items():
            tags[places[memory]] = np.frombuffer(tag, dtype=np.uint8)
    tagged = replace(segment, row_tags=tags)
    main = encode_main(tagged)
    try:
        replace_main(storage, keys, row, main)
    finally:
        main[:] = bytes(len(main))
    total = keys.elements_of(keys.epoch).total(living_tags(tagged, alive))
    snapshot.wipe()
    return len(living), total


def _tags(
    storage: Storage, keyring: WholeKeyring, snapshot: Snapshot, ids: Sequence[str]
) -> dict[str, bytes]:
    """The row tags of memories that are what their entries say; others are left out."""
    noted = _NotedTags()
    try:
        memories = list(open_memories(storage, keyring, ids, noted))
    except (MemoryStoreError, *UNFORESEEN):
        if len(ids) == 1:  # damaged: refused when it is opened, and named by `verify`
            return {}
        half = len(ids) // 2
        first = _tags(storage, keyring, snapshot, ids[:half])
        return {**first, **_tags(storage, keyring, snapshot, ids[half:])}
    found = {}
    for memory in memories:
        ordinal = snapshot.ordinal_of(memory.id)
        item = indexable(keyring, memory)
        if ordinal is not None and not any(differences(snapshot, ordinal, item)):
            found[memory.id] = noted.tags[memory.id]
    return found


class _NotedTags:
    """Believes every row, and notes its tag."""

    def __init__(self) -> None:
        self.tags: dict[str, bytes] = {}

    def check(self, row: MemoryRow, tag: bytes | None) -> None:
        """Note the tag."""
        if tag is not None:
            self.tags[row.id] = tag

    def check_absent(self, memory: str, elsewhere: str = "") -> None:
        """Nothing: the account was asked."""

    def earliest(self, collection: str) -> int:
        """The first: there was none before."""
        return 0
