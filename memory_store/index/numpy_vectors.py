"""The vector index in NumPy: exact when small, sign bits first when large.

Boundary: reads the snapshot's vectors in place, and keeps no copy outside its segments but a
sample, which is overwritten with the snapshot.

The scan compares one bit per coordinate (XOR and popcount over words that lie side by side),
fetches ``OVERFETCH`` times as many windows as wanted, and ranks those by their real cosine.

Products use ``einsum``, not BLAS: it adds every row in the same order, so that equal vectors get
equal cosines, and starts no threads, which two searches at once would fight over (15 against
0.6 ms for 10,000 vectors).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from memory_store.index.columns import Array
from memory_store.index.layout import Segment, inverse_lengths, packed_signs, widened
from memory_store.index.sample import Sample
from memory_store.index.shard_questions import Cosines, WindowCosines
from memory_store.index.snapshot import Mask, Part, Snapshot
from memory_store.index.vectors import Compared, VectorHits

EXACT_UP_TO = 20_000  # vectors; above, bits are scanned first, and none are kept as float32
OVERFETCH = 24  # recall among 1.6 % of MiniLM vectors .996; 16 gives .992, 8 (at 100 k) .974
FEW = 64  # of more, fewer times as many: 12 × 256 of 17,600 MiniLM vectors give .9995, as 24 × 64
DIRECT_UP_TO = 4_096  # eligible windows up to which a filtered search needs no scan of bits
RANK_BLOCK = 256  # vectors widened at once: more leave the processor's cache (a third slower)
SCAN_BLOCK = 65_536  # windows per step: bounds the scan's temporaries to 3.5 MB for 384 dimensions
GROWTH = 4  # when windows of too few documents were fetched
FAR = 65_535  # above any number of sign bits


class NumpyVectors:
    """:class:`~memory_store.index.vectors.VectorIndex` in NumPy."""

    kind = "numpy"

    def __init__(
        self, snapshot: Snapshot, *, reason: str = "asked for", exact_up_to: int = EXACT_UP_TO
    ) -> None:
        """``exact_up_to`` is the number of vectors above which sign bits are scanned first."""
        self.reason = reason
        self._snapshot = snapshot
        self._parts = [part for part in snapshot.parts if part.segment.windows]
        self._exact_up_to = exact_up_to

    def search(self, query: npt.NDArray[Any], k: int, mask: Mask | None = None) -> VectorHits:
        """See :meth:`VectorIndex.search`."""
        wanted = _unit(query)
        allowed = self._snapshot.alive if mask is None else mask & self._snapshot.alive
        parts = [
            part
            for part in self._parts
            if part.segment.dimensions == len(wanted) and allowed[part.span].any()
        ]
        view = _Windows(self._snapshot, parts, allowed)
        if k <= 0 or not view.eligible or not wanted.any():
            return nothing()
        if self._snapshot.vectors <= self._exact_up_to:
            return view.nearest(wanted, k)
        if view.eligible <= min(DIRECT_UP_TO, self._exact_up_to):
            windows = view.all()
            return view.ranked(windows, view.compared(wanted, windows), k)
        rough = view.differences(wanted)
        fetch = math.ceil(OVERFETCH * min(k, math.sqrt(FEW * k)))
        while True:
            windows = _least_different(rough, fetch)
            hits = view.ranked(windows, view.compared(wanted, windows), k)
            if len(hits.ordinals) >= k or fetch >= view.eligible:
                return hits
            fetch *= GROWTH

    def wipe(self) -> None:
        """Forget the snapshot."""
        self._parts = []


class _Windows:
    """The windows of ``parts``, numbered through, of which some are eligible."""

    def __init__(self, snapshot: Snapshot, parts: list[Part], allowed: Mask) -> None:
        self.snapshot = snapshot
        self.parts = parts
        self.bounds = np.cumsum([0, *(part.segment.windows for part in parts)])
        self.masks = [
            None if allowed[part.span].all() else allowed[part.span][part.segment.window_rows]
            for part in parts
        ]
        self.eligible = sum(
            part.segment.windows if mask is None else int(np.count_nonzero(mask))
            for part, mask in zip(parts, self.masks, strict=True)
        )

    def all(self) -> npt.NDArray[np.intp]:
        """The eligible windows."""
        chosen = [
            first + (np.arange(part.segment.windows) if mask is None else np.flatnonzero(mask))
            for part, mask, first in zip(self.parts, self.masks, self.bounds, strict=False)
        ]
        return np.concatenate(chosen)

    def cosines(self, query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """float32 [windows]: cosine with the query, -inf for windows that are not eligible."""
        found = np.empty(self.bounds[-1], dtype=np.float32)
        for index, part in enumerate(self.parts):
            block = found[self.bounds[index] : self.bounds[index + 1]]
            np.einsum("ij,j->i", part.segment.floats, query, out=block)
            mask = self.masks[index]
            if mask is not None:
                block[~mask] = -np.inf
        return found

    def nearest(self, query: npt.NDArray[np.float32], k: int) -> VectorHits:
        """The ``k`` best documents of all, each of which is compared with the query."""
        cosines = np.minimum(self.cosines(query), 1.0)
        owners, firsts, counts = [], [], []
        for part, first in zip(self.parts, self.bounds, strict=False):
            offsets = part.segment.window_offsets
            each = np.diff(offsets).astype(np.intp)
            held = np.flatnonzero(each)
            owners.append((part.base + held).astype(np.int32))
            firsts.append(first + offsets[held])
            counts.append(each[held])
        ordinals, first, count = map(np.concatenate, (owners, firsts, counts))
        best = np.maximum.reduceat(cosines, first)
        eligible = np.flatnonzero(best > -np.inf)
        every = Compared(ordinals[eligible], np.maximum(best[eligible], -1.0))
        chosen = self.snapshot.best_first(*every, k)
        rows = eligible[chosen]
        windows, starts = _windows_of(first[rows], count[rows])
        missed = cosines[windows] < np.repeat(best[rows], count[rows])
        places = np.arange(len(windows)) - np.repeat(starts, count[rows])
        places[missed] = len(windows)  # no window of its document is the nearest
        nearest = np.minimum.reduceat(places, starts).astype(np.int32)
        return VectorHits(every.ordinals[chosen], every.similarities[chosen], nearest, every)

    def differences(self, query: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
        """uint16 [windows]: how many sign bits differ from the query's; ``FAR`` if not eligible."""
        rough = np.empty(self.bounds[-1], dtype=np.uint16)
        words = packed_signs((query >= 0)[None]).T
        for index, part in enumerate(self.parts):
            block = rough[self.bounds[index] : self.bounds[index + 1]]
            signatures = part.segment.signatures
            for start in range(0, len(block), SCAN_BLOCK):
                piece = slice(start, start + SCAN_BLOCK)
                counts = np.bitwise_count(signatures[:, piece] ^ words)
                np.sum(counts, axis=0, dtype=np.uint16, out=block[piece])
            mask = self.masks[index]
            if mask is not None:
                block[~mask] = FAR
        return rough

    def ranked(
        self, windows: npt.NDArray[np.intp], cosines: npt.NDArray[np.float32], k: int
    ) -> VectorHits:
        """The ``k`` best documents that ``windows`` (ascending) belong to, by their ``cosines``."""
        ordinals, places = np.empty((2, len(windows)), dtype=np.int32)
        for piece, segment, base, rows in self._by_part(windows):
            documents = segment.window_rows[rows]
            ordinals[piece] = base + documents
            places[piece] = rows - segment.window_offsets[documents]
        return best_windows(self.snapshot, ordinals, cosines, places, k)

    def compared(
        self, query: npt.NDArray[np.float32], windows: npt.NDArray[np.intp]
    ) -> npt.NDArray[np.float32]:
        """The cosine of each of ``windows`` (ascending), from the vectors as they are kept."""
        taken = np.empty((len(windows), len(query)), dtype=np.float16)
        for piece, segment, _, rows in self._by_part(windows):
            segment.vectors.take(rows, axis=0, out=taken[piece], mode="clip")
        (cosines,) = _exact(taken, query)
        return cosines

    def _by_part(
        self, windows: npt.NDArray[np.intp]
    ) -> Iterator[tuple[slice, Segment, int, npt.NDArray[np.intp]]]:
        """Of each segment which of ``windows`` it has, its first document, and their rows in it."""
        cuts = np.searchsorted(windows, self.bounds).tolist()
        for part, first, start, end in zip(self.parts, self.bounds, cuts, cuts[1:], strict=False):
            if start < end:
                yield slice(start, end), part.segment, part.base, windows[start:end] - first


def _windows_of(
    firsts: npt.NDArray[Any], counts: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The windows of some documents one after another, and where those of each start there."""
    starts = np.cumsum(counts) - counts
    return np.arange(counts.sum()) + np.repeat(firsts - starts, counts), starts


def _exact(
    vectors: npt.NDArray[np.float16], *queries: npt.NDArray[np.float32]
) -> list[npt.NDArray[np.float32]]:
    """Of each query float32 [n]: its cosines with ``vectors``, a copy that is overwritten."""
    found = [np.empty(len(vectors), np.float32) for _ in queries]
    for start in range(0, len(vectors), RANK_BLOCK):
        piece = slice(start, start + RANK_BLOCK)
        block = widened(vectors[piece])
        lengths = inverse_lengths(block)
        for query, cosines in zip(queries, found, strict=True):
            np.multiply(np.einsum("ij,j->i", block, query), lengths, out=cosines[piece])
        block.fill(0)  # freed memory keeps what stood in it, past a lock
    vectors.fill(0)
    return found


def best_cosines(
    snapshot: Snapshot,
    ordinals: npt.NDArray[np.integer[Any]],
    *queries: npt.NDArray[np.float32],
) -> npt.NDArray[np.float64]:
    """float64 [queries, n]: the exact cosine of each document's nearest window with each query, NaN
    for one without vectors.

    ``ordinals`` ascend. Vectors of another length than the queries' are none.
    """
    found = np.full((len(queries), len(ordinals)), np.nan)
    if snapshot.shards is not None:
        for query, best in zip(queries, found, strict=True):
            asking = Cosines(*map(_sent, (query, ordinals)))
            known, cosines = snapshot.shards.ask(snapshot, asking)
            best[np.searchsorted(ordinals, known)] = cosines
        return found
    cuts = np.searchsorted(ordinals, [part.base for part in snapshot.parts]).tolist()
    for part, start, end in zip(snapshot.parts, cuts, [*cuts[1:], len(ordinals)], strict=True):
        segment = part.segment
        if start == end or segment.dimensions != len(queries[0]):
            continue
        rows = ordinals[start:end] - part.base
        first, last = segment.window_offsets[rows], segment.window_offsets[rows + 1]
        counts = last - first
        held = np.flatnonzero(counts)
        if not len(held):
            continue
        windows, each = _windows_of(first[held], counts[held])
        if snapshot.vectors <= EXACT_UP_TO:
            taken = segment.floats.take(windows, axis=0)
            every = [np.einsum("ij,j->i", taken, query) for query in queries]
            taken.fill(0)  # freed memory keeps what stood in it, past a lock
        else:
            every = _exact(segment.vectors.take(windows, axis=0), *queries)
        for best, cosines in zip(found, every, strict=True):
            nearest = np.maximum.reduceat(cosines, each)
            best[start + held] = np.clip(nearest, -1.0, 1.0)
    return found


def window_cosines(
    snapshot: Snapshot,
    query: npt.NDArray[np.float32],
    ordinals: npt.NDArray[np.integer[Any]],
    windows: npt.NDArray[np.integer[Any]],
) -> npt.NDArray[np.float32]:
    """float32 [n]: the cosine of a window of each of ``ordinals`` (ascending) with the query, the
    windows counted from 0 in their documents. All have vectors as long as the query's."""
    if snapshot.shards is not None:
        found = np.zeros(len(ordinals), np.float32)
        asking = WindowCosines(*map(_sent, (query, ordinals, windows)))
        places, cosines = snapshot.shards.ask(snapshot, asking)
        found[places] = cosines
        return found
    taken = _taken(snapshot, ordinals, windows)
    return np.concatenate([np.zeros(0, np.float32), *(_exact(one, query)[0] for one in taken)])


def _taken(
    snapshot: Snapshot,
    ordinals: npt.NDArray[np.integer[Any]],
    windows: npt.NDArray[np.integer[Any]],
) -> Iterator[npt.NDArray[np.float16]]:
    """Copies of a window of each of ``ordinals`` (ascending), segment by segment."""
    cuts = np.searchsorted(ordinals, [part.base for part in snapshot.parts]).tolist()
    for part, start, end in zip(snapshot.parts, cuts, [*cuts[1:], len(ordinals)], strict=True):
        if start < end:
            own = part.segment.window_offsets[ordinals[start:end] - part.base]
            yield part.segment.vectors[own + windows[start:end]]


def sampled_cosines(
    snapshot: Snapshot, query: npt.NDArray[np.float32], collections: Collection[str], most: int
) -> npt.NDArray[np.float32]:
    """float32 [n]: the query's cosines with at most ``most`` windows of some collections, evenly
    spaced: the same ones every time."""
    wanted, sample = (len(query), frozenset(collections), most), snapshot.sample
    if sample is None or sample.of != wanted:
        ordinals, windows = _spaced(snapshot, *wanted)
        if snapshot.shards is not None:
            return window_cosines(snapshot, query, ordinals, windows)
        sample = snapshot.sample = Sample(wanted, _taken(snapshot, ordinals, windows))
    return sample.cosines(query)


def _spaced(
    snapshot: Snapshot, dimensions: int, collections: Collection[str], most: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Documents and windows of theirs: at most ``most``, from one end of the snapshot to the
    other."""
    parts = [
        part
        for part in snapshot.parts
        if part.collection in collections and part.segment.dimensions == dimensions
    ]
    step, first = max(1, sum(part.segment.windows for part in parts) // most), 0
    ordinals, windows = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for part in parts:
        segment = part.segment
        rows = np.arange(first, segment.windows, step)
        first = (first - segment.windows) % step
        rows = rows[part.alive[segment.window_rows[rows]]]
        owners = segment.window_rows[rows]
        ordinals.append(part.base + owners)
        windows.append((rows - segment.window_offsets[owners]).astype(np.int32))
    return np.concatenate(ordinals), np.concatenate(windows)


def _sent(numbers: npt.NDArray[Any]) -> bytes:
    kind = "<f4" if numbers.dtype.kind == "f" else "<i4"
    return np.ascontiguousarray(numbers, kind).tobytes()


def best_windows(
    snapshot: Snapshot,
    ordinals: npt.NDArray[np.int32],
    cosines: npt.NDArray[np.float32],
    places: npt.NDArray[np.int32],
    k: int,
) -> VectorHits:
    """The ``k`` best documents by their best window, from one row per window."""
    usable = np.clip(cosines, -1.0, 1.0)
    order = np.lexsort((places, -usable))
    _, firsts = np.unique(ordinals[order], return_index=True)
    best = order[firsts]
    chosen = best[snapshot.best_first(ordinals[best], usable[best], k)]
    return VectorHits(ordinals[chosen], usable[chosen], places[chosen])


def nothing() -> VectorHits:
    """No document at all."""
    return VectorHits(
        np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.int32)
    )


def _unit(query: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    vector = np.asarray(query, dtype=np.float32).reshape(-1)
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if length > 0 and np.isfinite(length) else vector * 0


def _least_different(rough: Array, fetch: int) -> npt.NDArray[np.intp]:
    """Ascending places of the ``fetch`` smallest differences.

    Ties with the last one come too, in the order of places and up to twice ``fetch``.
    """
    within = np.cumsum(np.bincount(rough)[:FAR])  # counting is four times as fast as partition
    if not len(within) or within[-1] <= fetch:
        return np.flatnonzero(rough != FAR)
    most = int(np.searchsorted(within, fetch))
    places = np.flatnonzero(rough <= most)
    if len(places) <= 2 * fetch:
        return places
    level = np.flatnonzero(rough == most)
    closer = np.flatnonzero(rough < most)
    return np.union1d(closer, level[: 2 * fetch - len(closer)])
