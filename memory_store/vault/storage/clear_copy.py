"""What of a vault's tables stands in clear, copied to a file for programs that show tables.

Boundary: no keys, and no sealed value: ids, times, types, versions and keyed hashes, which stand in
clear in every vault. Their sealed neighbours are left empty.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from memory_store.vault.storage.sqlite import Storage
from memory_store.vault.storage.table import marks

IN_CLEAR = {
    "collections": ("id", "created"),
    "memories": ("id", "collection", "type", "created", "updated", "version", "content"),
    "memory_bodies": ("id", "collection"),
    "memory_topics": ("memory", "topic"),
    "memory_sources": ("memory",),
}
"""The columns that are copied, by table. The tables of the machinery stay empty."""


MOST = 100_000
"""Memories of which there is a copy: so many, with three topics each, took 13 s of processor time
and 113 MB (measured). Of more the tables stay empty."""
LONG, REST = 0.5, 20
"""A refresh that took so many seconds is not followed by another for so many times as long."""


class ClearCopy:
    """A file with a vault's tables, for a vault that is none. Safe to use from many threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._revision: int | None = None
        self._state: tuple[int, int] | None = None
        self._not_before = 0.0
        self._lock = threading.Lock()
        with closing(Storage.open(path)) as copy:
            if not copy.begin_file():
                copy.create_tables()

    def refresh(self, source: Storage, revision: int) -> None:
        """Bring it up to what the vault holds now, which is at this commit counter at least. Does
        nothing while the last time is too recent, or where the vault is too large."""
        if revision == self._revision:
            return
        begun = time.monotonic()
        with self._lock, source.reading():
            state = _state(source)
            if state == self._state:
                self._revision = revision
            if state == self._state or begun < self._not_before:
                return
            shown = source.memories.count() <= MOST
            with closing(Storage.open(self.path)) as copy:
                with copy.transaction():
                    for table, columns in IN_CLEAR.items():
                        _bring_up(copy, table, columns, source if shown else None)
                copy.erase_traces()
            self._state, self._revision = state, revision
            took = time.monotonic() - begun
            self._not_before = begun + REST * took if took > LONG else 0.0


def _bring_up(copy: Storage, table: str, columns: Sequence[str], source: Storage | None) -> None:
    """Write what differs: writing all of it anew takes ten times as long."""
    names = ", ".join(columns)
    held, there = (
        {tuple(row) for row in one.engine.execute(f"select {names} from {table}").fetchall()}
        if one is not None
        else set()
        for one in (copy, source)
    )
    same = " and ".join(f"{name} is ?" for name in columns)
    copy.engine.executemany(f"delete from {table} where {same}", held - there)
    copy.engine.executemany(
        f"insert into {table} ({names}) values ({marks(len(columns))})", there - held
    )


def _state(source: Storage) -> tuple[int, int]:
    """What every write to a collection changes: how many accounts there are, and their counters."""
    query = "select count(*), coalesce(sum(counter), 0) from vault_manifests"
    collections, counted = source.engine.execute(query).fetchone()
    return int(collections), int(counted)
