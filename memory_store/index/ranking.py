"""Orders that several legs share: the best few of many, with ties decided by id."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from memory_store.index.snapshot import Snapshot


def best_first(
    snapshot: Snapshot,
    ordinals: npt.NDArray[np.integer[Any]],
    scores: npt.NDArray[np.floating[Any]],
    k: int,
) -> npt.NDArray[np.intp]:
    """Places of the ``k`` highest ``scores``, equal ones in the order of the documents' ids."""
    if k <= 0:
        return np.empty(0, dtype=np.intp)
    if len(scores) > k:
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        places = np.flatnonzero(scores >= least)
    else:
        places = np.arange(len(scores))
    falling = -scores[places]
    order = falling.argsort()
    falling = falling[order]
    if (falling[1:] == falling[:-1]).any():  # seldom, and ids lie far apart in memory
        words = snapshot.id_words[ordinals[places]]
        order = np.lexsort((words[:, 1], words[:, 0], -scores[places]))
    return places[order[:k]]
