"""The index in memory: loaded from sealed segments, following what others write.

Boundary: lives from unlock to lock and holds vectors and keyed hashes only. Searches read an
immutable :class:`Snapshot`; a refresh swaps it for a newer one. Nothing here touches a text.

At each refresh the row tags of all living entries must add up to the accounts, so that entries
which were taken away, put back or kept alive are noticed in a vault of any size. Whether the
rows are those is not seen from this: each is checked when it is opened (``known_rows.py``).
"""

from __future__ import annotations

import threading
import weakref
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.crypto.blinding import SUM_MODULUS
from memory_store.errors import SupersededError, TamperedError
from memory_store.index.columns import Array
from memory_store.index.layout import arrays_in, overwrite, without_vectors
from memory_store.index.segment import Segment
from memory_store.index.snapshot import Snapshot
from memory_store.session.sealed_segments import (
    id_words,
    is_stale,
    living_tags,
    model_of,
    opened_segment,
    same_model,
    wanted_mark,
)
from memory_store.vault.keyring import CollectionKeys, WholeKeyring
from memory_store.vault.manifest import (
    CONTENT_FORMAT,
    Manifest,
    earlier_total,
    open_manifest,
    rows_of,
)
from memory_store.vault.segments import same_content
from memory_store.vault.settings import Settings, read_settings
from memory_store.vault.storage import Storage
from memory_store.vault.storage.segments import Change, SegmentRow

if TYPE_CHECKING:
    from memory_store.index.shard import Part, Spread

SOON = 0.1  # seconds that a look at the settings waits for one that reads the index
COUNTED_AT_UNLOCK = 20_000  # rows compared at unlock (20 ms); above, each when it is opened


class _Loaded(Struct):
    """A segment in memory with the mask of entries that are still alive."""

    row: SegmentRow
    segment: Segment
    alive: npt.NDArray[np.bool_]
    summed: tuple[int, npt.NDArray[np.bool_], int] | None = None

    def total(self, keys: CollectionKeys, epoch: int) -> int:
        """What the row tags of its living entries add up to. Raises TamperedError."""
        if self.summed is None or self.summed[0] != epoch or self.summed[1] is not self.alive:
            total = keys.elements_of(epoch).total(living_tags(self.segment, self.alive))
            self.summed = (epoch, self.alive, total)
        return self.summed[2]


class LiveIndex:
    """What is loaded of a vault's index, and how it is brought up to date."""

    def __init__(self, keyring: WholeKeyring, storage: Storage) -> None:
        """``connection`` is read by this index alone, so that SQLite shows it what others,
        our own writer among them, committed."""
        self._keyring = keyring
        self._connection = storage
        self._loaded: dict[str, _Loaded] = {}
        self._sequence = 0
        self._left: list[weakref.finalize[..., Segment]] = []
        self._lock = threading.RLock()
        self.spread: Spread | Part | None = None
        """Whose words and vectors it holds, where not all: to be set before it is read."""
        self._snapshot: Snapshot | None = None
        self._state: tuple[int, Settings] | None = None
        self._settings: Settings | None = None
        self._made_of: list[tuple[SegmentRow, npt.NDArray[np.bool_]]] = []
        self._accounts: dict[str, Manifest] = {}
        self._counted = False
        self._compared = False

    @property
    def untouched(self) -> bool:
        """Whether nothing was read of it yet."""
        return self._snapshot is None

    def refresh(
        self,
        settings: Settings,
        *,
        whole: bool = False,
        counted: bool = True,
        at: int | None = None,
        late: bool = False,
    ) -> tuple[Snapshot, Settings, int]:
        """The newest committed state, the settings it was made by (newer ones, if there are), and
        its revision.

        The settings say which model's vectors count in each collection, and which analysis.
        Cheap when nothing was committed since the last call. ``counted`` counts the rows, too, so
        that none is missing; ``whole`` holds each row's id and version against the entries, which
        is done at unlock for all but large vaults. ``at``: the revision as another connection just
        saw it. ``late``: with the parts that are usually read when first asked for, unless they are
        on shards.
        Raises TamperedError when segments, change log, account and rows disagree, LockedError
        after a lock.
        """
        with self._lock:
            self._keyring.check_open()
            lacking = self._snapshot is None or whole or late or (counted and not self._counted)
            if lacking or self._state != (version := self._revision(at), settings):
                self._state = self._reload(settings, whole=whole, counted=counted, late=late)
                self._counted = counted
                self._compared |= counted
                version, settings = self._state
            assert self._snapshot is not None
            return self._snapshot, settings, version

    def settings_revision(self) -> int | None:
        """That of the settings, asked by the connection of the index, so that a thread that wants
        no more needs none of its own; None while the index is being read."""
        if not self._lock.acquire(timeout=SOON):
            return None
        try:
            return self._connection.settings.revision()
        finally:
            self._lock.release()

    def _revision(self, at: int | None) -> int:
        return self._connection.revision() if at is None else at

    def _reload(
        self, settings: Settings, *, whole: bool, counted: bool, late: bool
    ) -> tuple[int, Settings]:
        """Make the snapshot anew. Returns the revision and the settings that it is of."""
        with self._connection.reading() as storage:
            version, written = storage.revisions()
            if written != settings.revision:  # another process wrote them
                settings = read_settings(storage, self._keyring)
            readable = set(self._keyring.readable())
            rows = [row for row in storage.segments.rows() if row.collection in readable]
            stored = storage.accounts.of(readable)
            accounts = {one: open_manifest(self._keyring.of(one), stored) for one in readable}
            self._check_age(accounts, settings)
            self._settings = settings
            self._load_missing(storage, rows, accounts)
            if late and self.spread is None:
                self._load_late()
            self._bury(storage)
            self._check_accounts(storage, accounts, whole=whole, counted=counted)
            self._accounts = accounts
        made_of = [(row, self._loaded[row.id].alive) for row in rows]
        if self._snapshot is None or not self._same_as_before(made_of, settings):
            self._snapshot = self._snapshot_of(rows, settings)
        self._made_of = made_of
        return version, settings

    def _same_as_before(
        self, made_of: Sequence[tuple[SegmentRow, npt.NDArray[np.bool_]]], settings: Settings
    ) -> bool:
        """Whether what was committed is nothing to the index, so that its caches hold."""
        same = self._state is not None and self._state[1].indexing == settings.indexing
        if not same or len(made_of) != len(self._made_of):
            return False
        pairs = zip(made_of, self._made_of, strict=True)
        return all(same_content(row, old) and alive is held for (row, alive), (old, held) in pairs)

    def _snapshot_of(self, rows: Sequence[SegmentRow], settings: Settings) -> Snapshot:
        parts, stale, earlier_models = [], [], []
        asked = {one.fingerprint for one in settings.earlier} if self.spread is None else set()
        for row in rows:
            loaded = self._loaded[row.id]
            wanted = wanted_mark(settings, self._keyring.of(row.collection))
            fits = same_model(row.model, wanted)
            segment = loaded.segment if fits else without_vectors(loaded.segment)
            parts.append((segment, loaded.alive, row.collection))
            stale.append(is_stale(row.model, wanted, loaded.segment.windows))
            made_by = "" if fits else model_of(row.model)
            earlier_models.append(made_by if made_by in asked else "")
        earlier = [one for one, it in self._accounts.items() if it.format < CONTENT_FORMAT]
        shards = None if self.spread is None else self.spread.shards
        return Snapshot(
            parts, stale=stale, earlier_models=earlier_models, untagged=earlier, shards=shards
        )

    def _load_missing(
        self, storage: Storage, rows: Sequence[SegmentRow], accounts: Mapping[str, Manifest]
    ) -> None:
        wanted = {
            row.id
            for row in rows
            if accounts[row.collection].format < CONTENT_FORMAT
            or row.id not in self._loaded
            or self._loaded[row.id].segment.row_tags is not None  # else it was upgraded meanwhile
        }
        for gone in [known for known in self._loaded if known not in wanted]:
            self._leave(self._loaded.pop(gone).segment)
        missing = {row.id: row for row in rows if row.id not in self._loaded}
        spread = self.spread
        kept = None if spread is None else spread.kept
        parts = ["main", "vectors"] if spread is None or spread.shards is None else ["main"]
        for part in storage.segments.parts([*missing], parts, kept=True):
            row = missing[part[0]]
            keys = self._keyring.of(row.collection)
            earliest = partial(self._earliest, row.collection)
            late = partial(self._sealed_pairs, row.id), partial(self._sealed_extra, row.id)
            segment = opened_segment(keys, row, part[1], *late, earliest, kept)
            alive = np.ones(segment.count, dtype=np.bool_)
            self._loaded[row.id] = _Loaded(row, segment, alive)
            # changes between the segment's writing and now apply to it
            self._sequence = min(self._sequence, row.sequence)
        if not missing.keys() <= self._loaded.keys():
            raise TamperedError("vault_segments: a segment is not found by its own id")

    def _earliest(self, collection: str) -> int:
        """The earliest epoch that a part may be sealed in, by the settings that were read last: who
        had the key of before may have sealed another one since."""
        assert self._settings is not None
        return self._settings.epoch_of(collection).earliest

    def _load_late(self) -> None:
        for loaded in self._loaded.values():
            try:
                loaded.segment.load_late()
            except ValueError as error:
                raise TamperedError(f"vault_segments of {loaded.row.id}: {error}") from None

    def _sealed_pairs(self, segment: str) -> bytes:
        """The pairs of a segment, when a search first asks for a phrase: they are two fifths of an
        index, and few searches do. Raises SupersededError where it is gone by then.
        """
        with self._lock:
            self._keyring.check_open()
            found = dict(self._connection.segments.parts([segment], ["pairs"], kept=True))
        if segment not in found:
            raise _superseded()
        return found[segment]["pairs"]

    def _sealed_extra(self, segment: str, kind: str) -> bytes | None:
        """An extra part of a segment, when it is first asked for; ``None`` where the segment is
        there and the part is not. Raises SupersededError where the segment is gone by then."""
        with self._lock:
            self._keyring.check_open()
            with self._connection.reading() as storage:
                found = storage.segments.extra(segment, kind, kept=True)
                if found is None and not storage.segments.is_there(segment):
                    raise _superseded()
        return found

    def _leave(self, segment: Segment) -> None:
        """Overwrite a segment that was replaced once no search uses it any more, or at the lock."""
        left = weakref.finalize(segment, lambda parts: overwrite(arrays_in(parts)), vars(segment))
        self._left = [*(one for one in self._left if one.alive), left]

    def _bury(self, storage: Storage) -> None:
        """Mark entries dead that a later change replaced or removed."""
        changes = storage.segments.changes_since(self._sequence)
        if not changes:
            return
        changed: dict[str, list[Change]] = defaultdict(list)
        for change in changes:
            changed[change.collection].append(change)
        by_collection = self._by_collection()
        for collection, some in changed.items():
            ids = id_words(one.memory for one in some)
            sequences = np.array([one.sequence for one in some])
            for loaded in by_collection[collection]:
                rows = loaded.segment.rows_of_all(ids[sequences > loaded.row.sequence])
                if loaded.alive[rows].any():
                    loaded.alive = loaded.alive.copy()
                    loaded.alive[rows] = False
        self._sequence = changes[-1].sequence

    def _by_collection(self) -> dict[str, list[_Loaded]]:
        held: dict[str, list[_Loaded]] = defaultdict(list)
        for one in self._loaded.values():
            held[one.row.collection].append(one)
        return held

    def _check_age(self, accounts: Mapping[str, Manifest], settings: Settings) -> None:
        """Refuse accounts that are older than what was read before, or than the settings: a key
        that was replaced opens for a while, and who had it may have written one."""
        for collection, account in accounts.items():
            before = self._accounts.get(collection, account)
            left = account.epoch not in settings.epoch_of(collection).read
            if left or account.counter < before.counter or account.format < settings.format:
                raise TamperedError(
                    f"vault_manifests of {collection}: an older account was put back"
                )

    def _check_accounts(
        self,
        storage: Storage,
        accounts: Mapping[str, Manifest],
        *,
        whole: bool,
        counted: bool,
    ) -> None:
        """Hold the living entries against the accounts and the rows: that they add up to them, how
        many there are, and at unlock and if ``whole`` which. Or a row that was taken away would be
        left out without a word."""
        held = self._by_collection()
        asked: dict[str, int] = {}
        for collection, account in accounts.items():
            keys, loaded = self._keyring.of(collection), held[collection]
            count = sum(int(np.count_nonzero(one.alive)) for one in loaded)
            agrees, earlier = count == account.count, account.format < CONTENT_FORMAT
            if agrees and not earlier:
                total = sum(one.total(keys, account.epoch) for one in loaded)
                agrees = total % SUM_MODULUS == account.total
            _refuse_unless(agrees, collection, account, count)
            small = count <= COUNTED_AT_UNLOCK
            if (counted or earlier) and (whole or small or not self._compared):
                asked[collection] = count
        compared = {
            one: rows_of(storage, one)
            for one, count in asked.items()
            if whole or (count <= COUNTED_AT_UNLOCK and not self._compared)
        }
        there = {one: len(rows) for one, rows in compared.items()}
        if len(there) < len(asked):
            there |= storage.memories.counts(asked.keys() - there.keys())
        for collection, count in asked.items():
            account, agrees = accounts[collection], count == there.get(collection, 0)
            if agrees and collection in compared:
                rows = compared[collection]
                if account.format < CONTENT_FORMAT:
                    total = earlier_total(self._keyring.of(collection), rows, account.epoch)
                    agrees = total == account.total
                agrees = agrees and _lives(held[collection], rows)
            _refuse_unless(agrees, collection, account, count)

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
            if self.spread is not None and self.spread.shards is not None:
                self.spread.shards.close()
            self._connection.close()


def _superseded() -> SupersededError:
    return SupersededError("the index is being written too often to be searched")


def _refuse_unless(agrees: bool, collection: str, account: Manifest, count: int) -> None:
    if not agrees:
        raise TamperedError(
            f"collection {collection}: its account knows {account.count} memories, its "
            f"index holds {count}, or others; memory-store verify shows which"
        )


def _lives(held: Sequence[_Loaded], rows: Sequence[tuple[str, int]]) -> bool:
    """Whether the living entries of a collection are those of its rows, in any order."""
    if not rows:  # and as many entries
        return True
    try:
        written = bytes.fromhex("".join([memory for memory, _ in rows]).replace("-", ""))
        ids = np.frombuffer(written, ">u8").reshape(-1, 2)
        there = _in_order(ids, np.array([version for _, version in rows], dtype=np.int64))
    except (TypeError, ValueError, OverflowError):  # no ids, or no versions, as we write them
        return False
    living = [one.segment.id_words[one.alive] for one in held]
    versions = [one.segment.versions[one.alive] for one in held]
    return np.array_equal(there, _in_order(np.concatenate(living), np.concatenate(versions)))


def _in_order(ids: npt.NDArray[np.uint64], versions: npt.NDArray[np.int64]) -> Array:
    """uint64 [n, 3]: ids and versions, ascending."""
    rows = np.column_stack((ids.astype(np.uint64), versions.view(np.uint64)))
    return rows[np.lexsort(rows.T)]
