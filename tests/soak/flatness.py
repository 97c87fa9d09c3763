"""Whether a series of measurements grows, judged so that neither noise nor warming up upsets it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import median

WARMING_UP = 0.5  # the share of the measurements that is left out


def growth(measured: Sequence[float]) -> float:
    """How much the later half grows from its beginning to its end, as a share.

    By the median of the slopes between all pairs (Theil 1950, Sen 1968): up to 29 % of the
    measurements may be arbitrarily wrong, and bursts are. Raises ``ValueError`` for fewer than 8.
    """
    if len(measured) < 8:
        raise ValueError(f"{len(measured)} measurements say nothing about growth")
    settled = list(measured[int(len(measured) * WARMING_UP) :])
    slopes = [
        (later - earlier) / (j - i)
        for (i, earlier), (j, later) in combinations(enumerate(settled), 2)
    ]
    return median(slopes) * (len(settled) - 1) / median(settled)
