"""The two engines of a vector index, and which one serves a snapshot.

NumPy, exact for small vaults and a scan of sign bits with exact rescoring for large ones; and
sqlite-vec's ``vec0`` in a private in-memory database, which holds a second copy of the vectors that
SQLite frees without wiping all of it: a strict vault never uses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from memory_store.index.numpy_vectors import NumpyVectors, nothing
from memory_store.index.snapshot import Mask, Snapshot
from memory_store.index.vectors import VectorHits, VectorIndex

VEC0_UP_TO = 5_000  # vectors; filling vec0 costs 14 µs each at unlock, a search 1 ms per thousand

Kind = Literal["auto", "numpy", "vec0"]


def make_vector_index(
    snapshot: Snapshot,
    kind: Kind = "auto",
    *,
    strict: bool = False,
    previous: VectorIndex | None = None,
    shared: bool = False,
) -> VectorIndex:
    """An index over the snapshot's vectors, with the reason for its kind in ``reason``.

    ``auto`` is ``vec0`` where sqlite-vec loads, the vault is not ``strict`` and there are at most
    ``VEC0_UP_TO`` vectors; else NumPy. ``previous``, the index of an older snapshot, lets
    ``vec0`` add only what is new; ``shared`` keeps to its table however much more that holds,
    as it does when the snapshot is one of some collections. Raises ``ValueError`` for an unknown
    kind or ``vec0`` in a strict vault, ``ExtensionUnavailable`` when ``vec0`` was asked for and
    cannot be loaded.
    """
    from memory_store.sqlite import ExtensionUnavailable

    if kind not in ("auto", "numpy", "vec0"):
        raise ValueError(f"vector index: {kind!r} is not auto, numpy or vec0")
    if kind == "numpy":
        return NumpyVectors(snapshot, reason="asked for")
    if strict:
        if kind == "vec0":
            raise ValueError("vector index: a strict vault cannot use vec0, which is not wipeable")
        return NumpyVectors(snapshot, reason="the vault is strict and vec0 cannot be wiped")
    if kind == "auto" and snapshot.vectors > VEC0_UP_TO:
        return NumpyVectors(snapshot, reason=f"more than {VEC0_UP_TO:,} vectors")
    try:
        return _vec0(snapshot, previous, shared=shared)
    except ExtensionUnavailable as error:
        if kind == "vec0":
            raise
        return NumpyVectors(snapshot, reason=str(error))


class ByDimensions:
    """A :class:`VectorIndex` over vectors of several models, in one index for each length."""

    def __init__(self, indexes: Mapping[int, VectorIndex]) -> None:
        """``indexes`` (at least one) by the length of their vectors, all of one kind."""
        self.indexes = dict(indexes)
        first = next(iter(self.indexes.values()))
        self.kind, self.reason = first.kind, first.reason

    def search(self, query: npt.NDArray[Any], k: int, mask: Mask | None = None) -> VectorHits:
        """See :meth:`VectorIndex.search`. Other vectors than the query's length are not seen."""
        index = self.indexes.get(np.size(query))
        return index.search(query, k, mask) if index is not None else nothing()

    def wipe(self) -> None:
        """Wipe every index."""
        for index in self.indexes.values():
            index.wipe()


def _vec0(snapshot: Snapshot, previous: VectorIndex | None, *, shared: bool) -> VectorIndex:
    """``vec0``, whose tables hold vectors of one length each: one index, or one for each length."""
    from memory_store.index.vec0_vectors import Vec0Vectors

    held = previous.indexes if isinstance(previous, ByDimensions) else {0: previous}
    older = {one.dimensions: one for one in held.values() if isinstance(one, Vec0Vectors)}
    lengths = snapshot.all_dimensions or (snapshot.dimensions,)
    made = {
        n: Vec0Vectors(snapshot, dimensions=n, previous=older.get(n), shared=shared)
        for n in lengths
    }
    return ByDimensions(made) if len(made) > 1 else made[lengths[0]]
