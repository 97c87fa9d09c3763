"""Segments merged and rewritten in the vault, so that they stay few and hold no deleted memory.

Boundary: what is opened here is overwritten before a function returns. Keys of some collections
alone merge the segments of these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from memory_store.index.segment import merge
from memory_store.session.sealed_segments import (
    alive_rows,
    id_words,
    load_segment,
    write_index_segment,
)
from memory_store.vault.keyring import Keyring
from memory_store.vault.storage import Storage
from memory_store.vault.storage.segments import SegmentRow

TIER_FACTOR = 8  # segments of about one size that are merged into one of the next
MOST_DOCUMENTS = 32_768  # in a segment: its sealed parts stay far below SQLite's blob limit


def compact(storage: Storage, keyring: Keyring) -> int:
    """Merge small segments and drop dead entries. Returns how many segments went away."""
    merged = 0
    readable = set(keyring.readable())
    while _next_merge(storage.segments.rows(), readable):
        with storage.transaction(keyring):
            group = _next_merge(storage.segments.rows(), set(keyring.readable()))
            if not group:  # another process was faster
                return merged
            _merge(storage, keyring, group)
            merged += len(group) - 1
    return merged


def _merge(storage: Storage, keyring: Keyring, group: Sequence[SegmentRow]) -> None:
    keys = keyring.of(group[0].collection)
    parts = [
        (segment, alive_rows(storage, row, segment))
        for row in group
        for segment in [load_segment(storage, keys, row)]
    ]
    try:
        together = merge(parts)
    finally:
        for segment, _ in parts:
            segment.wipe()
    if together.count:
        write_index_segment(storage, keys, together, group[0].model)
    storage.segments.delete([row.id for row in group])
    storage.segments.trim_changes()


def drop(storage: Storage, keyring: Keyring, ids: Sequence[str]) -> None:
    """Rewrite the segments that still hold entries of deleted memories, without them.

    Inside the transaction that deletes: a process killed between two of them would leave words
    and vectors of a memory that is gone.
    """
    for row in storage.segments.rows():
        if row.collection in keyring.readable():
            segment = load_segment(storage, keyring.of(row.collection), row)
            if any(segment.rows_of(*id_words(memory)) for memory in ids):
                _merge(storage, keyring, [row])
            segment.wipe()


def _next_merge(rows: Sequence[SegmentRow], readable: set[str]) -> list[SegmentRow]:
    """The oldest segments of one collection, model and size tier that are due to be merged."""
    tiers: dict[tuple[str, str, int], list[SegmentRow]] = defaultdict(list)
    for row in rows:
        if row.collection in readable and row.documents < MOST_DOCUMENTS:
            tier = _tier(row.documents)
            tiers[row.collection, row.model, tier].append(row)
    for group in tiers.values():
        if len(group) >= TIER_FACTOR:
            chosen: list[SegmentRow] = []
            for row in group:
                if sum(r.documents for r in chosen) + row.documents > MOST_DOCUMENTS:
                    break
                chosen.append(row)
            if len(chosen) > 1:
                return chosen
    return []


def _tier(documents: int) -> int:
    tier = 0
    while documents >= TIER_FACTOR:
        documents //= TIER_FACTOR
        tier += 1
    return tier
