"""Postings from loose (key, document) rows: sorted, with repeated rows added together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from memory_store.index.columns import Array, row_dtype
from memory_store.index.layout import Pairs, Postings


def narrow(counts: Array) -> Array:
    """``counts`` as uint8, uint16 or uint32, whichever is the first that holds them all."""
    largest = int(counts.max()) if len(counts) else 0
    return counts.astype(np.min_scalar_type(largest))


def collect(
    keys: npt.NDArray[np.uint64], docs: Array, count: int, weights: Sequence[Array] = ()
) -> tuple[Postings, tuple[Array, ...]]:
    """Postings of the rows ``(keys[i], docs[i])``, ``docs`` being below ``count``.

    Rows of one key must come with their documents ascending (rows may repeat). Each array of
    ``weights`` is summed over repeated rows and returned beside ``Postings.docs``.
    """
    order = np.argsort(keys, kind="stable")
    keys, docs = keys[order], docs[order]
    new_key = _changes(keys)
    starts = np.flatnonzero(new_key | _changes(docs))
    firsts = np.flatnonzero(new_key[starts])
    postings = Postings(
        keys=keys[starts][firsts],
        offsets=np.append(firsts, len(starts)).astype(np.int64),
        docs=docs[starts].astype(row_dtype(count)),
    )
    sums = [np.add.reduceat(w[order], starts) if len(starts) else w[:0] for w in weights]
    return postings, tuple(narrow(s) for s in sums)


def collect_pairs(hashes: npt.NDArray[np.uint32], docs: Array, count: int) -> Pairs:
    """The pair index of the rows ``(hashes[i], docs[i])``, documents ascending for each hash."""
    order = np.argsort(hashes, kind="stable")
    return Pairs(hashes=hashes[order], docs=docs[order].astype(row_dtype(count)))


def _changes(values: Array) -> npt.NDArray[np.bool_]:
    """Where a value differs from the one before it (the first always does)."""
    changed = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changed[1:])
    return changed
