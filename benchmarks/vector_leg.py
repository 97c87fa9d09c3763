"""The vector leg: its time beside an exact product and vec0, two clients at once, its recall."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.development_sets import DevelopmentSet
from benchmarks.measuring import side_by_side, spent_on
from benchmarks.peers import matmul_nearest, vec0_nearest
from benchmarks.processes import held_alone
from benchmarks.report import Amount, Line, Proportion
from benchmarks.sealed import SealedPart
from benchmarks.two_clients import two_clients
from benchmarks.vaults import Vectors, random_units, snapshot_of
from benchmarks.vector_memory import held_lines, query_lines, scan_lines
from memory_store.index.layout import unit_rows
from memory_store.index.numpy_vectors import NumpyVectors
from memory_store.index.snapshot import Mask, Snapshot
from memory_store.index.vectors import VectorIndex
from memory_store.models.embedder import load_embedder

NEAREST = 64
QUERIES = 25
TARGET = "≤ 5 ms at 100 k, ≤ 40 ms at 1 M"
BLAS_SPINS = 0.2  # seconds, and more than OpenBLAS's threads wait for another product
MOST_FOR_VEC0 = 1_000_000  # vectors; it needs 1.5 kB for each
FEWEST_TO_WEIGH = 10_000  # vectors; fewer are less than what an allocator keeps for later
FEWEST_TO_SHARE = 10_000  # vectors; of fewer, the same share is next to none


def vector_lines(count: int) -> Iterator[Line | Proportion | Amount]:
    """``count`` random vectors: making the index, the nearest 64, what that holds, and by two."""
    vectors = random_units(count)
    queries = list(random_units(QUERIES, seed=8))
    snapshot = snapshot_of(vectors)
    index = NumpyVectors(snapshot)
    yield Line(
        "vector index, first search",
        count,
        spent_on(lambda: index.search(queries[0], NEAREST)),
        target="< 1 s per 100 k",
        limit=1.0 * max(1.0, count / 100_000),
    )
    before = held_alone()
    vec0 = vec0_nearest(vectors, NEAREST) if count <= MOST_FOR_VEC0 else None
    vec0_bytes = held_alone() - before if vec0 and count >= FEWEST_TO_WEIGH else None
    yield from _beside_peers(index, vectors, queries, vec0)
    mask = np.random.default_rng(9).random(snapshot.size) < 0.5  # here and there
    yield _filtered(index, snapshot, queries, mask)
    yield from held_lines(snapshot, vectors, vec0_bytes)
    yield from query_lines(index, snapshot, queries, NEAREST, mask)
    yield from scan_lines(index, snapshot, queries)
    yield from two_clients(index, queries, count, NEAREST)


def _beside_peers(
    index: VectorIndex,
    vectors: Vectors,
    queries: Sequence[Vectors],
    vec0: Callable[[Vectors], object] | None,
) -> Iterator[Line]:
    count = len(vectors)
    works: dict[str, Callable[[Any], object]] = {
        "ours": lambda query: index.search(query, NEAREST),
        "NumPy float32 matmul": matmul_nearest(vectors, NEAREST),
    }
    if vec0 is not None:
        works["sqlite-vec vec0"] = vec0
    taken = side_by_side(works, queries, pause=BLAS_SPINS)
    limit = 0.005 if count <= 100_000 else 0.040
    for peer in works:
        if peer != "ours":
            theirs = taken[peer]
            yield Line("vector ranking, k 64", count, taken["ours"], peer, theirs, TARGET, limit)


def _filtered(
    index: VectorIndex, snapshot: Snapshot, queries: Sequence[Vectors], mask: Mask
) -> Line:
    """Half of the documents, here and there, through a filter."""
    works = {
        "filtered": lambda query: index.search(query, NEAREST, mask),
        "all": lambda query: index.search(query, NEAREST),
    }
    taken = side_by_side(works, queries)
    limit = 0.005 if snapshot.size <= 100_000 else 0.040
    return Line(
        "vector ranking, half filtered out",
        snapshot.size,
        taken["filtered"],
        "without a filter",
        taken["all"],
        TARGET,
        limit,
    )


def recall_lines(sets: Sequence[DevelopmentSet], folder: Path) -> Iterator[Proportion]:
    """Recall of the scan of sign bits among the real embeddings of some sets, all in one index.

    Held against an exact search of the same vectors, over the sets' own queries. So few vectors are
    searched exactly by the product; here the scan is made to do it. It ranks 24 times as many
    windows as are wanted: of 64 among 100,000 that is 1.5 %, so the second line asks for as few
    as make it that share here, where there are enough.
    """
    model = load_embedder()
    kept, asked = [], []
    for wanted in sets:
        for number, part in enumerate(wanted.parts):
            sealed = SealedPart(part, wanted.vault(folder, number, part))
            segments = [one.segment for one in sealed.context.snapshot.parts]
            kept += [unit_rows(segment.vectors) for segment in segments]
            asked += list(part.queries.values())
            sealed.close()
    vectors, queries = np.concatenate(kept), model.embed_queries(asked)
    names = ", ".join(wanted.name for wanted in sets)
    asked_for = [(NEAREST, "")]
    if len(vectors) >= FEWEST_TO_SHARE:
        asked_for.append((round(NEAREST * len(vectors) / 100_000), " as among 100 k"))
    for nearest, called in asked_for:
        yield Proportion(
            f"recall@{nearest} of the scan{called}: {names}",
            len(vectors),
            recall(vectors, queries, nearest),
            "≥ .99",
            0.99,
            peer="exact search",
            at_least=True,
            digits=4,
        )


def recall(vectors: Vectors, queries: Vectors, nearest: int) -> float:
    """The share of the ``nearest`` vectors that the scan finds, on average."""
    snapshot = snapshot_of(vectors)
    scan = NumpyVectors(snapshot, exact_up_to=0)
    exact = NumpyVectors(snapshot, exact_up_to=len(vectors))
    shares = []
    for query in queries:
        near, got = (set(one.search(query, nearest).ordinals.tolist()) for one in (exact, scan))
        shares.append(len(near & got) / max(1, len(near)))
    return float(np.mean(shares))
