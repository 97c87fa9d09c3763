"""Searches of sealed records beside the same code with a cipher that encrypts nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks.measuring import side_by_side
from benchmarks.peers import NullCipher
from benchmarks.report import Line
from memory_store.crypto import sealing
from memory_store.store import MemoryStore

TURNS = 3  # of all queries
MOST = 1.10  # times what the null cipher takes
MODES: Mapping[str, Mapping[str, Any]] = {
    "keyword": {"mode": "keyword"},
    "hybrid": {"rerank": False},
}


@contextmanager
def null_cipher() -> Iterator[None]:
    """While inside, vaults that are opened seal with a cipher that encrypts nothing."""
    real = sealing.SUITES[sealing.DEFAULT_SUITE]
    sealing.SUITES[sealing.DEFAULT_SUITE] = NullCipher
    try:
        yield
    finally:
        sealing.SUITES[sealing.DEFAULT_SUITE] = real


def sealing_lines(
    sealed: MemoryStore, plain: MemoryStore, modes: Sequence[str], queries: Sequence[str], size: int
) -> Iterator[Line]:
    """Whole searches of two vaults of the same notes, of which ``plain`` has the null cipher.

    Each must have searched in every one of the ``modes`` before: ciphers are made at first use.
    """
    for mode in modes:
        works = {"sealed": _searching(sealed, mode), "plain": _searching(plain, mode)}
        taken = side_by_side(works, [*queries] * TURNS)
        yield Line(
            f"{mode} search, sealed",
            size,
            taken["sealed"],
            "null cipher",
            taken["plain"],
            f"≤ {MOST:.2f}",
            MOST,
            "ratio",
        )


def warmed(store: MemoryStore, modes: Sequence[str], query: str) -> MemoryStore:
    """The store, which keeps from here on the ciphers that such searches use."""
    for mode in modes:
        _searching(store, mode)(query)
    return store


def _searching(store: MemoryStore, mode: str) -> Callable[[str], object]:
    return lambda query: store.search(query, **MODES[mode])
