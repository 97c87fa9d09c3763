"""Connections that read a vault's file, one for each thread, and what a thread reads at one moment.

Boundary: no keys. Rows are sealed; what the index knows of them at that moment goes with them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memory_store.errors import SupersededError
from memory_store.index.snapshot import Snapshot
from memory_store.session.known_rows import KnownRows
from memory_store.sqlite import FileAccess
from memory_store.vault.storage import Storage

MOST_MOMENTS = 64  # tries to read rows and index of one moment, beside a busy writer


class Readers:
    """The reading connections of one opened vault."""

    def __init__(self, path: Path, access: FileAccess) -> None:
        self._path = path
        self._access = access
        self._local = threading.local()
        self._open: list[tuple[threading.Thread, Storage]] = []
        self._lock = threading.Lock()

    def storage(self) -> Storage:
        """This thread's."""
        storage: Storage | None = getattr(self._local, "storage", None)
        if storage is None:
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
    def moment(self, newest: Callable[[], Snapshot]) -> Iterator[KnownRows]:
        """A transaction of this thread's connection, and what the index knew of its rows then.

        Within another moment it is that one's. ``newest`` gives the index as last committed.
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


def _begun(storage: Storage, newest: Callable[[], Snapshot]) -> KnownRows:
    for _ in range(MOST_MOMENTS):
        snapshot = newest()
        storage.begin_reading()
        try:
            if newest() is snapshot:  # nothing was written in between
                return KnownRows(snapshot)
        except BaseException:
            storage.end_reading()
            raise
        storage.end_reading()
    raise SupersededError("the vault is being written too often to be read")
