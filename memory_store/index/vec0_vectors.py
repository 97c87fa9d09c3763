"""The vector index in sqlite-vec: a ``vec0`` table in a private in-memory database; and when it
serves.

Boundary: holds a copy of the vectors in memory that SQLite manages. Closing frees it, but does not
wipe all of it, so a strict vault never gets here. Nothing is written to any file.
"""

from __future__ import annotations

import json
import threading
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from memory_store.index.columns import Array
from memory_store.index.layout import Segment
from memory_store.index.numpy_vectors import NumpyVectors, best_windows, nothing
from memory_store.index.snapshot import Mask, Snapshot
from memory_store.index.vectors import VectorHits, VectorIndex
from memory_store.sqlite import ExtensionUnavailable, connect_with_vec

VEC0_UP_TO = 1_000  # vectors: a search takes .9 ms then and 4.2 among 5,000, in NumPy .1 and .2
MOST_NEIGHBOURS = 4_096  # sqlite-vec refuses a larger k
FEW = 0.1  # share of windows left out up to which fetching more beats naming those let in
STALE = 2  # a table with this many times the rows in use is built anew
INSERT = "insert into windows (rowid, embedding) values (?, ?)"


class _Table:
    """A ``vec0`` table that only grows, shared by the indexes of successive snapshots."""

    def __init__(self, dimensions: int) -> None:
        self.connection, self.how = connect_with_vec()
        self.connection.execute("pragma temp_store = memory")
        self.connection.execute(
            f"create virtual table windows using vec0 "
            f"(embedding float[{int(dimensions)}] distance_metric=cosine)"
        )
        self.rows = 0
        self.lock = threading.Lock()
        self._firsts: weakref.WeakKeyDictionary[Segment, int] = weakref.WeakKeyDictionary()
        self._closed = False

    def serves(self, windows: int) -> bool:
        """Whether an index of that many windows had better reuse this table than fill its own."""
        return not self._closed and self.rows <= STALE * windows

    def first_row(self, segment: Segment) -> int:
        """Where the segment's windows begin in the table; they are added if need be."""
        with self.lock:
            first = self._firsts.get(segment)
            if first is None and not self._closed:
                first = self.rows
                floats = segment.vectors.astype(np.float32)
                self.connection.execute("begin")
                self.connection.executemany(
                    INSERT, ((first + i, row) for i, row in enumerate(floats))
                )
                self.connection.execute("commit")
                self.rows += len(floats)
                self._firsts[segment] = first
            return first or 0

    def nearest(
        self, query: npt.NDArray[np.float32], k: int, rows: npt.NDArray[np.int64] | None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Rows and cosines of the ``k`` nearest windows, among ``rows`` if given."""
        sql = "select rowid, distance from windows where embedding match ? and k = ?"
        values: list[Any] = [query.tobytes(), k]
        if rows is not None:
            sql += " and rowid in (select value from json_each(?))"
            values.append(json.dumps(rows.tolist()))
        with self.lock:
            found = [] if self._closed else self.connection.execute(sql, values).fetchall()
        table = np.array(found, dtype=np.float64).reshape(-1, 2)
        return table[:, 0].astype(np.int64), (1.0 - table[:, 1]).astype(np.float32)

    def close(self) -> None:
        """Free the table."""
        with self.lock:
            self._closed = True
            self.connection.close()


class Vec0Vectors:
    """:class:`~memory_store.index.vectors.VectorIndex` in sqlite-vec; exact.

    Searches take turns at the one connection. Raises ``ExtensionUnavailable`` when sqlite-vec
    cannot be loaded.
    """

    kind = "vec0"

    def __init__(
        self, snapshot: Snapshot, previous: Vec0Vectors | None = None, *, shared: bool = False
    ) -> None:
        """``shared``: in the tables of ``previous`` in any case, among the rows of other
        collections. A table holds vectors of one length."""
        older = {} if previous is None else previous.lengths
        self.lengths: dict[int, _OfLength] = {
            length: _OfLength(snapshot, length, older.get(length), shared=shared)
            for length in snapshot.all_dimensions or (1,)
        }
        how = {one.table.how: None for one in self.lengths.values()}
        self.reason = f"sqlite-vec was loaded by {', '.join(how)}"

    def search(self, query: npt.NDArray[Any], k: int, mask: Mask | None = None) -> VectorHits:
        """See :meth:`VectorIndex.search`."""
        one = self.lengths.get(np.size(query))
        return nothing() if one is None else one.search(query, k, mask)

    def wipe(self) -> None:
        """Close the private databases. SQLite frees their memory without overwriting all of it."""
        for one in self.lengths.values():
            one.table.close()


class _OfLength:
    """The index of the vectors of one length."""

    def __init__(
        self, snapshot: Snapshot, dimensions: int, previous: _OfLength | None, *, shared: bool
    ) -> None:
        self._snapshot = snapshot
        parts = [
            p for p in snapshot.parts if p.segment.windows and p.segment.dimensions == dimensions
        ]
        windows = sum(part.segment.windows for part in parts)
        table = previous.table if previous is not None else None
        if table is None or not (shared or table.serves(windows)):
            table = _Table(dimensions)
        self.table: _Table = table
        firsts = [table.first_row(part.segment) for part in parts]
        # table row → document and window of this snapshot; -1 for rows of other snapshots
        self._ordinals = np.full(table.rows, -1, dtype=np.int32)
        self._places = np.zeros(table.rows, dtype=np.int32)
        for part, first in zip(parts, firsts, strict=True):
            rows = part.segment.window_rows
            piece = slice(first, first + len(rows))
            self._ordinals[piece] = part.base + rows
            offsets = part.segment.window_offsets[:-1]
            self._places[piece] = np.arange(len(rows)) - offsets[rows]

    def search(self, query: npt.NDArray[Any], k: int, mask: Mask | None = None) -> VectorHits:
        """See :meth:`VectorIndex.search`."""
        wanted = np.ascontiguousarray(query, dtype=np.float32).reshape(-1)
        allowed = self._snapshot.alive if mask is None else mask & self._snapshot.alive
        eligible = self._ordinals >= 0
        eligible[eligible] = allowed[self._ordinals[eligible]]
        if k <= 0 or not np.isfinite(wanted).all() or not (wanted.any() and eligible.any()):
            return nothing()
        return best_windows(self._snapshot, *self._fetched(wanted, k, eligible), k)

    def _fetched(
        self, query: npt.NDArray[np.float32], k: int, eligible: Mask
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.int32]]:
        """Windows that include the best of each of the ``k`` nearest documents.

        A document found is left out of the next round, so a few with many windows each cannot
        crowd out the rest, whatever sqlite-vec's own limit.
        """
        rounds: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], Array]] = []
        found = 0
        while found < k and eligible.any():
            left_out = self.table.rows - int(np.count_nonzero(eligible))
            # of k windows, and as many as are not the first of their document, k documents are sure
            fetch = k + min(k, int(np.count_nonzero(self._places[eligible])))
            among: npt.NDArray[np.intp] | None = None
            if rounds or left_out > min(FEW * len(eligible), MOST_NEIGHBOURS - fetch):
                among = np.flatnonzero(eligible)
            else:
                fetch += left_out
            rows, near = self.table.nearest(query, min(fetch, MOST_NEIGHBOURS), among)
            kept = np.flatnonzero(rows < len(eligible))  # a newer snapshot may have added rows
            kept = kept[eligible[rows[kept]]]
            if not len(kept):
                break
            documents = self._ordinals[rows[kept]]
            rounds.append((documents, near[kept], self._places[rows[kept]]))
            seen = np.zeros(self._snapshot.size, dtype=bool)
            seen[documents] = True
            found += int(np.count_nonzero(seen))
            eligible &= ~seen[self._ordinals]
        if not rounds:
            return nothing()[:3]
        ordinals, cosines, places = (np.concatenate(c) for c in zip(*rounds, strict=True))
        return ordinals, cosines, places


def make_vector_index(
    snapshot: Snapshot,
    *,
    strict: bool = False,
    previous: VectorIndex | None = None,
    shared: bool = False,
) -> VectorIndex:
    """An index over the snapshot's vectors, with the reason for its kind in ``reason``.

    sqlite-vec where it loads, the vault is not ``strict`` and there are at most ``VEC0_UP_TO``
    vectors; else NumPy. ``previous``, the index of an older snapshot, lets ``vec0`` add only what
    is new; ``shared``: the snapshot is a part of the one that ``previous`` is over, and its index
    of the same kind.
    """
    if snapshot.shards is not None:
        from memory_store.index.shard import ShardVectors  # where there are shards

        return ShardVectors(snapshot)
    if shared and previous is not None and previous.kind == NumpyVectors.kind:
        return NumpyVectors(snapshot, reason=previous.reason)
    if strict:
        return NumpyVectors(snapshot, reason="the vault is strict and vec0 cannot be wiped")
    if snapshot.vectors > VEC0_UP_TO:
        return NumpyVectors(snapshot, reason=f"more than {VEC0_UP_TO:,} vectors")
    try:
        older = previous if isinstance(previous, Vec0Vectors) else None
        return Vec0Vectors(snapshot, older, shared=shared)
    except ExtensionUnavailable as error:
        return NumpyVectors(snapshot, reason=str(error))
