"""Connections that read a vault's file, one for each thread, and what a thread reads at one moment.

Boundary: no keys. Rows are sealed; what the index knows of them at that moment goes with them:
keyed tags, ids and versions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memory_store.errors import SupersededError, TamperedError
from memory_store.index.snapshot import Snapshot
from memory_store.sqlite import FileAccess
from memory_store.vault.settings import Settings
from memory_store.vault.storage import Storage
from memory_store.vault.storage.memories import MemoryRow

Newest = Callable[[int | None], tuple[Snapshot, Settings, int]]
"""The index as last committed, the settings and the revision that it is of; given the one that
there is."""
MOST_MOMENTS = 64  # tries to read rows and index of one moment, beside a busy writer


class KnownRows:
    """What the index knows of the rows at one moment: each row that is opened is held against it.

    The index is held against the accounts when it is loaded (``live_index.py``), so it is the one
    that was written last; and so is a row that has the tag of its living entry. A
    :class:`memory_store.vault.rows.Known`.
    """

    def __init__(self, snapshot: Snapshot, settings: Settings) -> None:
        """``settings`` are of the same moment, or of an earlier one."""
        self.snapshot, self._settings = snapshot, settings

    def check(self, row: MemoryRow, tag: bytes | None) -> None:
        """Raise TamperedError unless the row is the one that was written last."""
        ordinal = self.snapshot.ordinal_of(row.id)
        if ordinal is None or self.snapshot.collection(ordinal) != row.collection:
            raise TamperedError(
                f"memories of {row.id}: a row was added that the vault's index does not know; "
                "memory-store verify shows all of them"
            )
        known = self.snapshot.row_tag(ordinal)
        same = self.snapshot.versions.item(ordinal) == row.version
        if same and tag is not None and known is not None:
            same = tag == known
        if not same:
            raise TamperedError(
                f"memories of {row.id}: not the row that was written last, but another one that "
                "was put back; memory-store verify shows all of them"
            )

    def check_absent(self, memory: str, elsewhere: str = "") -> None:
        """Raise TamperedError where there should be a row of that id, and not ``elsewhere``."""
        ordinal = self.snapshot.ordinal_of(memory)
        if ordinal is not None and self.snapshot.collection(ordinal) != elsewhere:
            raise TamperedError(
                f"memories of {memory}: the row was taken away; memory-store verify shows all"
            )

    def earliest(self, collection: str) -> int:
        """The earliest epoch of the collection's key that a text may be sealed in: who had the key
        of before may have sealed another one since."""
        return self._settings.epoch_of(collection).earliest

    def tags(self, ids: Iterable[str]) -> dict[str, bytes]:
        """The row tags of those memories that are known."""
        found = {}
        for memory in ids:
            ordinal = self.snapshot.ordinal_of(memory)
            tag = self.snapshot.row_tag(ordinal) if ordinal is not None else None
            if tag is not None:
                found[memory] = tag
        return found


class Readers:
    """The reading connections of one opened vault."""

    def __init__(self, path: Path, access: FileAccess, check_there: Callable[[], None]) -> None:
        """``check_there`` raises StorageError where another file lies there by now."""
        self._path = path
        self._check_there = check_there
        self._access = access
        self._local = threading.local()
        self._open: list[tuple[threading.Thread, Storage]] = []
        self._lock = threading.Lock()

    def storage(self) -> Storage:
        """This thread's."""
        storage: Storage | None = getattr(self._local, "storage", None)
        if storage is None:
            self._check_there()
            storage = Storage.open(self._path, read_only=True, access=self._access)
            self._local.storage = storage
            with self._lock:
                self._close_those_of_ended_threads()
                self._open.append((threading.current_thread(), storage))
        return storage

    def _close_those_of_ended_threads(self) -> None:
        """Each import on a server has a thread of its own: its files would stay open."""
        for thread, storage in self._open:
            if not thread.is_alive():
                storage.close()
        self._open = [one for one in self._open if one[0].is_alive()]

    @contextmanager
    def moment(self, newest: Newest) -> Iterator[KnownRows]:
        """A transaction of this thread's connection, and what the index knew of its rows then.

        Within another moment it is that one's.
        """
        inside: KnownRows | None = getattr(self._local, "moment", None)
        if inside is not None:
            yield inside
            return
        storage = self.storage()
        self._local.moment = _begun(storage, newest)
        try:
            yield self._local.moment
        finally:
            self._local.moment = None
            storage.end_reading()

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            for _, storage in self._open:
                storage.close()
            self._open.clear()


def _begun(storage: Storage, newest: Newest) -> KnownRows:
    for _ in range(MOST_MOMENTS):
        before, known, _ = (None, None, 0) if storage.counted else newest(None)
        revision = storage.begin_reading()
        try:
            snapshot, settings, of = newest(revision)
            if snapshot is before or of == revision:  # nothing was written in between
                return KnownRows(snapshot, known or settings)
        except BaseException:
            storage.end_reading()
            raise
        storage.end_reading()
    raise SupersededError("the vault is being written too often to be read")
