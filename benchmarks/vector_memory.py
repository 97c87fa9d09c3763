"""What the vector leg holds and touches: its index, what a query takes on top, bytes a second."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.measuring import side_by_side
from benchmarks.report import Amount
from benchmarks.vaults import Vectors
from memory_store.index.snapshot import Mask, Snapshot
from memory_store.index.vectors import VectorIndex

SCANNED_FROM = 100_000  # vectors: fewer are compared by products, or lie in the processor's cache
NO_COPY = 0.1  # of the index: a copy of its vectors would be 0.8
TURNS = 3  # of all queries


def held_lines(snapshot: Snapshot, vectors: Vectors, vec0_bytes: int | None) -> Iterator[Amount]:
    """The opened index (vectors, sign bits, ids, dates, empty word lists) beside its peers'."""
    held = index_bytes(snapshot)
    peers = {"NumPy float32 matrix": vectors.nbytes, "sqlite-vec vec0": vec0_bytes}
    for peer, theirs in peers.items():
        if theirs:
            yield Amount("vector index in memory", len(vectors), held, peer, theirs)


def query_lines(
    index: VectorIndex, snapshot: Snapshot, queries: Sequence[Vectors], nearest: int, mask: Mask
) -> Iterator[Amount]:
    """The most memory that a query took at any moment, as Python's allocator was asked for it."""
    held = index_bytes(snapshot)
    for called, filters in (("", None), (", half filtered out", mask)):
        yield Amount(
            f"memory of a vector query{called}",
            snapshot.size,
            _peak(lambda query, filters=filters: index.search(query, nearest, filters), queries),
            "the vector index",
            held,
            "no copy: < 0.1 ×" if snapshot.size >= SCANNED_FROM else "",
            NO_COPY if snapshot.size >= SCANNED_FROM else None,
        )


def scan_lines(
    index: VectorIndex, snapshot: Snapshot, queries: Sequence[Vectors]
) -> Iterator[Amount]:
    """Sign bits read in a second, in a search for the one nearest vector, beside copying them."""
    if snapshot.size < SCANNED_FROM:
        return
    bits = np.concatenate([part.segment.signatures.ravel() for part in snapshot.parts])
    copy = np.empty_like(bits)
    works: dict[str, Callable[[Any], object]] = {
        "scan": lambda query: index.search(query, 1),
        "memcpy": lambda _: np.copyto(copy, bits),
    }
    taken = side_by_side(works, [*queries] * TURNS)
    rates = {name: bits.nbytes / spent.cpu for name, spent in taken.items()}
    scan, memcpy = rates["scan"], rates["memcpy"]
    yield Amount("sign bits scanned", snapshot.size, scan, "memcpy of them", memcpy, unit="B/s")


def index_bytes(snapshot: Snapshot) -> int:
    """Every array of the opened index."""
    return sum(array.nbytes for part in snapshot.parts for array in part.segment.arrays())


def _peak(work: Callable[[Any], object], inputs: Sequence[Any]) -> int:
    """Bytes on top of what was held before, at the worst moment of any input."""
    most = 0
    tracemalloc.start()
    try:
        for given in inputs:
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            work(given)
            most = max(most, tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    return most
