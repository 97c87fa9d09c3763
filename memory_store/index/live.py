"""The index in memory: loaded from sealed segments, following what others write.

Boundary: lives from unlock to lock and holds vectors and keyed hashes only. Searches read an
immutable :class:`Snapshot`; a refresh swaps it for a newer one. Nothing here touches a text.
"""

from __future__ import annotations

import threading
import uuid
import weakref
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.errors import SupersededError, TamperedError
from memory_store.index.codec import decode
from memory_store.index.columns import Array
from memory_store.index.layout import Late, overwrite_parts
from memory_store.index.marks import same_analysis, same_model, wanted_mark
from memory_store.index.segment import Segment, merge
from memory_store.index.snapshot import Snapshot
from memory_store.index.writing import write_index_segment
from memory_store.sqlite import sqlite3
from memory_store.vault.keyring import CollectionKeys, Keyring
from memory_store.vault.manifest import added_up, count_rows, read_manifest, rows_of
from memory_store.vault.segments import (
    PARTS,
    SegmentRow,
    changes_since,
    delete_segments,
    list_segments,
    read_sealed_parts,
    same_content,
    trim_changes,
    unseal_part,
)
from memory_store.vault.settings import Settings, read_settings, stored_revision
from memory_store.vault.transactions import transaction

COUNTED_AT_UNLOCK = 20_000  # memories told apart at unlock (40 ms); above, `verify` does it
TIER_FACTOR = 8  # segments of about one size that are merged into one of the next
MOST_DOCUMENTS = 32_768  # in a segment: its sealed parts stay far below SQLite's blob limit


class _Loaded(Struct):
    """A segment in memory with the mask of entries that are still alive."""

    row: SegmentRow
    segment: Segment
    alive: npt.NDArray[np.bool_]


class LiveIndex:
    """What is loaded of a vault's index, and how it is brought up to date."""

    def __init__(self, keyring: Keyring, connection: sqlite3.Connection) -> None:
        """``connection`` is read by this index alone, so that SQLite can tell it what others,
        our own writer among them, committed."""
        self._keyring = keyring
        self._connection = connection
        self._loaded: dict[str, _Loaded] = {}
        self._sequence = 0
        self._left: list[weakref.finalize[..., Segment]] = []
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None
        self._state: tuple[int, Settings] | None = None
        self._made_of: list[tuple[SegmentRow, npt.NDArray[np.bool_]]] = []

    @property
    def untouched(self) -> bool:
        """Whether nothing was read of it yet."""
        return self._snapshot is None

    def refresh(self, settings: Settings, *, whole: bool = False) -> tuple[Snapshot, Settings]:
        """The newest committed state, and the settings it was made by: newer ones, if there are.

        The settings say which model's vectors count in each collection, and which analysis.
        Cheap when nothing was committed since the last call. ``whole`` checks every entry against
        the accounts, which is done at unlock for all but large vaults. Raises TamperedError when
        segments, change log and account disagree, LockedError after a lock.
        """
        with self._lock:
            self._keyring.check_open()
            (version,) = self._connection.execute("pragma data_version").fetchone()
            if whole or self._snapshot is None or self._state != (version, settings):
                self._snapshot, settings = self._reload(self._connection, settings, whole=whole)
                self._state = (version, settings)
            return self._snapshot, settings

    def _reload(
        self, connection: sqlite3.Connection, settings: Settings, *, whole: bool
    ) -> tuple[Snapshot, Settings]:
        connection.execute("begin")
        try:
            if stored_revision(connection) != settings.revision:  # another process wrote them
                settings = read_settings(connection, self._keyring)
            readable = set(self._keyring.readable())
            rows = [row for row in list_segments(connection) if row.collection in readable]
            self._load_missing(connection, rows)
            self._bury(connection)
            self._check_accounts(connection, readable, whole=whole)
        finally:
            connection.execute("rollback")
        made_of = [(row, self._loaded[row.id].alive) for row in rows]
        if self._snapshot is None or not self._same_as_before(made_of, settings):
            self._snapshot = self._snapshot_of(rows, settings)
        self._made_of = made_of
        return self._snapshot, settings

    def _same_as_before(
        self, made_of: Sequence[tuple[SegmentRow, npt.NDArray[np.bool_]]], settings: Settings
    ) -> bool:
        """Whether what was committed is nothing to the index, so that its caches hold."""
        if self._state is None or self._state[1].indexing != settings.indexing:
            return False
        if len(made_of) != len(self._made_of):
            return False
        pairs = zip(made_of, self._made_of, strict=True)
        return all(same_content(row, old) and alive is held for (row, alive), (old, held) in pairs)

    def _snapshot_of(self, rows: Sequence[SegmentRow], settings: Settings) -> Snapshot:
        parts, stale = [], []
        for row in rows:
            loaded = self._loaded[row.id]
            wanted = wanted_mark(settings, self._keyring.of(row.collection))
            fits = same_model(row.model, wanted)
            segment = loaded.segment if fits else _unembedded(loaded.segment)
            parts.append((segment, loaded.alive, row.collection))
            foreign = not fits and loaded.segment.windows > 0
            stale.append(foreign or not same_analysis(row.model, wanted))
        return Snapshot(parts, stale=stale)

    def _load_missing(self, connection: sqlite3.Connection, rows: Sequence[SegmentRow]) -> None:
        wanted = {row.id for row in rows}
        for gone in [known for known in self._loaded if known not in wanted]:
            self._leave(self._loaded.pop(gone).segment)
        for row in rows:
            if row.id not in self._loaded:
                segment = self._load(connection, row)
                alive = np.ones(segment.count, dtype=np.bool_)
                self._loaded[row.id] = _Loaded(row, segment, alive)
                # changes between the segment's writing and now apply to it
                self._sequence = min(self._sequence, row.sequence)

    def _load(self, connection: sqlite3.Connection, row: SegmentRow) -> Segment:
        """A segment whose pairs are read when a search first asks for a phrase: they are two
        fifths of an index, and few searches do. Raises SupersededError where it is gone by then.
        """

        def sealed_pairs() -> bytes:
            with self._lock:
                self._keyring.check_open()
                sealed = read_sealed_parts(connection, row, ["pairs"])
            if sealed is None:
                raise SupersededError("the index is being written too often to be searched")
            return sealed["pairs"]

        return load_segment(connection, self._keyring.of(row.collection), row, sealed_pairs)

    def _leave(self, segment: Segment) -> None:
        """Overwrite a segment that was replaced once no search uses it any more, or at the lock."""
        left = weakref.finalize(segment, overwrite_parts, vars(segment))
        self._left = [*(one for one in self._left if one.alive), left]

    def _bury(self, connection: sqlite3.Connection) -> None:
        """Mark entries dead that a later change replaced or removed."""
        changes = changes_since(connection, self._sequence)
        by_collection: dict[str, list[_Loaded]] = defaultdict(list)
        for loaded in self._loaded.values():
            by_collection[loaded.row.collection].append(loaded)
        for change in changes:
            high, low = _id_words(change.memory)
            for loaded in by_collection[change.collection]:
                if loaded.row.sequence < change.sequence:
                    for row in loaded.segment.rows_of(high, low):
                        if loaded.alive[row]:
                            loaded.alive = loaded.alive.copy()
                            loaded.alive[row] = False
        if changes:
            self._sequence = changes[-1].sequence

    def _check_accounts(
        self, connection: sqlite3.Connection, readable: set[str], *, whole: bool
    ) -> None:
        """Hold the living entries against the accounts and the rows: their number, and at unlock
        and if ``whole`` which. Or a row that was taken away would be left out without a word."""
        alive: dict[str, int] = dict.fromkeys(readable, 0)
        for loaded in self._loaded.values():
            alive[loaded.row.collection] += int(np.count_nonzero(loaded.alive))
        for collection, count in alive.items():
            keys = self._keyring.of(collection)
            account = read_manifest(connection, keys)
            unlocking, small = self._snapshot is None, count <= COUNTED_AT_UNLOCK
            agrees = count == account.count
            if agrees and (whole or unlocking or small):
                agrees = count == count_rows(connection, collection)
            if agrees and (whole or (unlocking and small)):
                rows = list(rows_of(connection, collection))
                agrees = added_up(keys, rows, account.epoch) == (count, account.total)
                agrees = agrees and self._lives(collection, rows)
            if not agrees:
                raise TamperedError(
                    f"collection {collection}: its account knows {account.count} memories, its "
                    f"index holds {count}, or others; memory-store verify shows which"
                )

    def _lives(self, collection: str, rows: Sequence[tuple[str, int]]) -> bool:
        """Whether the living entries of a collection are those of its rows, in any order.

        The rows are those of the account, so each id is written as ids are.
        """
        if not rows:  # and as many entries
            return True
        held = [one for one in self._loaded.values() if one.row.collection == collection]
        ids = np.frombuffer(bytes.fromhex("".join([i for i, _ in rows]).replace("-", "")), ">u8")
        living = [one.segment.id_words[one.alive] for one in held]
        versions = [one.segment.versions[one.alive] for one in held]
        there = _in_order(ids.reshape(-1, 2), np.array([v for _, v in rows], dtype=np.int64))
        return np.array_equal(there, _in_order(np.concatenate(living), np.concatenate(versions)))

    def compact(self, connection: sqlite3.Connection) -> int:
        """Merge small segments and drop dead entries. Returns how many segments went away."""
        merged = 0
        while True:
            with transaction(connection, self._keyring):
                rows = list_segments(connection)
                group = _next_merge(rows, set(self._keyring.readable()))
                if not group:
                    return merged
                self._merge(connection, group)
                merged += len(group) - 1

    def _merge(self, connection: sqlite3.Connection, group: Sequence[SegmentRow]) -> None:
        keys = self._keyring.of(group[0].collection)
        parts = [
            (segment, _alive_rows(connection, row, segment))
            for row in group
            for segment in [load_segment(connection, keys, row)]
        ]
        try:
            together = merge(parts)
        finally:
            for segment, _ in parts:
                segment.wipe()
        if together.count:
            write_index_segment(connection, keys, together, group[0].model)
        delete_segments(connection, [row.id for row in group])
        trim_changes(connection)

    def drop(self, connection: sqlite3.Connection, ids: Sequence[str]) -> None:
        """Rewrite the segments that still hold entries of deleted memories, without them.

        Inside the caller's transaction, the one that deletes: whoever is killed between two of
        them would leave words and vectors of a memory that is gone.
        """
        for row in list_segments(connection):
            if row.collection in self._keyring.readable():
                segment = load_segment(connection, self._keyring.of(row.collection), row)
                if any(segment.rows_of(*_id_words(memory)) for memory in ids):
                    self._merge(connection, [row])
                segment.wipe()

    def wipe(self) -> None:
        """Overwrite every vector and hash in memory."""
        with self._lock:
            for loaded in self._loaded.values():
                loaded.segment.wipe()
            for left in self._left:
                left()
            self._loaded.clear()
            if self._snapshot is not None:
                self._snapshot.wipe()
            self._snapshot = None
            self._made_of = []
            self._connection.close()


def load_segment(
    connection: sqlite3.Connection,
    keys: CollectionKeys,
    row: SegmentRow,
    sealed_pairs: Callable[[], bytes] | None = None,
) -> Segment:
    """Open and decode one segment; its pairs stay sealed until a phrase is asked for.

    ``sealed_pairs`` reads them then (default: they are read at once). Raises TamperedError when
    its bytes are not a segment.
    """
    parts = ["main", "vectors"] if sealed_pairs else PARTS
    sealed = read_sealed_parts(connection, row, parts)
    if sealed is None:
        raise TamperedError(f"vault_segments of {row.id}: is gone")
    main = unseal_part(keys, row, "main", sealed["main"])
    vectors = unseal_part(keys, row, "vectors", sealed["vectors"])
    pairs = sealed.get("pairs", b"")  # not the whole of `sealed`, whose other parts are free to go

    def open_pairs() -> memoryview:
        return unseal_part(keys, row, "pairs", sealed_pairs() if sealed_pairs else pairs)

    try:
        segment = decode(main, vectors, open_pairs)
    except ValueError as error:
        raise TamperedError(f"vault_segments of {row.id}: {error}") from None
    if segment.count != row.documents:
        raise TamperedError(f"vault_segments of {row.id}: holds {segment.count} documents")
    return segment


def _alive_rows(
    connection: sqlite3.Connection, row: SegmentRow, segment: Segment
) -> npt.NDArray[np.bool_]:
    alive = np.ones(segment.count, dtype=np.bool_)
    for change in changes_since(connection, row.sequence):
        for dead in segment.rows_of(*_id_words(change.memory)):
            alive[dead] = False
    return alive


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


def _in_order(ids: npt.NDArray[np.uint64], versions: npt.NDArray[np.int64]) -> Array:
    """uint64 [n, 3]: ids and versions, ascending."""
    rows = np.column_stack((ids.astype(np.uint64), versions.view(np.uint64)))
    return rows[np.lexsort(rows.T)]


def _id_words(memory: str) -> tuple[int, int]:
    """The upper and lower 64 bits of a memory's id."""
    try:
        number = uuid.UUID(memory).int
    except (TypeError, ValueError, AttributeError):  # a damaged file may hold anything
        raise TamperedError("vault_changes: names what is no memory's id") from None
    return number >> 64, number & (2**64 - 1)


def _tier(documents: int) -> int:
    tier = 0
    while documents >= TIER_FACTOR:
        documents //= TIER_FACTOR
        tier += 1
    return tier


def _unembedded(segment: Segment) -> Segment:
    """The same segment as if it had not been embedded: its vectors come from another model."""
    nothing = np.empty((0, segment.dimensions), dtype=np.float16)
    return replace(
        segment,
        window_offsets=np.zeros(segment.count + 1, dtype=np.int64),
        window_starts=np.empty(0, dtype=np.uint32),
        window_ends=np.empty(0, dtype=np.uint32),
        late_vectors=Late(None, nothing),
        origin=segment,
    )
