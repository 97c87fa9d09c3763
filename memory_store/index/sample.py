"""A sample of vectors, kept to say what is usual for a query.

Boundary: holds a copy of vectors. It is overwritten by a lock, and when it is let go.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from memory_store.index.layout import inverse_lengths, widened


class Sample:
    """Windows of some collections, ready to be compared with one query after another.

    Overwritten when it is let go: freed memory keeps what stood in it, past a lock.
    """

    def __init__(
        self, of: tuple[int, frozenset[str], int], taken: Iterable[npt.NDArray[np.float16]]
    ) -> None:
        """``of`` says which windows: their dimensions, their collections, how many at most.
        ``taken`` are copies of them, which are overwritten."""
        self.of = of
        pieces = [np.zeros((0, of[0]), np.float16), *taken]
        together = np.concatenate(pieces)
        self._rows = widened(together)
        self._lengths = inverse_lengths(self._rows)
        for one in (*pieces, together):
            one.fill(0)
        weakref.finalize(self, self._rows.fill, 0)

    def cosines(self, query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """float32 [n]: those of a query of length 1."""
        found: npt.NDArray[np.float32] = np.einsum("ij,j->i", self._rows, query)
        found *= self._lengths
        return found

    def wipe(self) -> None:
        """Overwrite it now."""
        self._rows.fill(0)
