"""What a vector index answers: the nearest documents by cosine, each by its best window.

Boundary: vectors are as telling as the text they stand for. They live in the snapshot's segments,
which a lock wipes.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from memory_store.index.snapshot import Mask


class Compared(NamedTuple):
    """Documents (int32, ascending) and the cosine (float32) of each one's nearest window, [n]."""

    ordinals: npt.NDArray[np.int32]
    similarities: npt.NDArray[np.float32]


class VectorHits(NamedTuple):
    """Documents, most similar first, equal ones in the order of their ids' text.

    ``ordinals`` int32, ``similarities`` float32 (cosine, -1 to 1) and ``windows`` int32 (which of
    the document's windows was nearest, from 0; see ``Snapshot.windows``), all [n]. ``every`` has
    all that might have been found, where each was compared exactly.
    """

    ordinals: npt.NDArray[np.int32]
    similarities: npt.NDArray[np.float32]
    windows: npt.NDArray[np.int32]
    every: Compared | None = None


class VectorIndex(Protocol):
    """Finds the documents nearest to a query. Any number of threads may search at once."""

    @property
    def kind(self) -> str:
        """``"numpy"`` or ``"vec0"``."""

    @property
    def reason(self) -> str:
        """Why this one, in words for ``doctor``."""

    def search(self, query: npt.NDArray[Any], k: int, mask: Mask | None = None) -> VectorHits:
        """The ``k`` nearest documents among those of ``mask`` (``None``: all that live).

        ``query`` is a vector [dimensions] of any length but zero. Documents without vectors, or
        with vectors of other dimensions, are never found.
        """

    def wipe(self) -> None:
        """Drop what the index itself holds; the snapshot's vectors are the snapshot's to wipe."""
