"""How often a proof is repeated: a share of the times in every test run, all of them on demand.

``make proofs`` sets ``PROOFS=full``; then the counts are those that docs/trust/security.md states.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

FULL = os.environ.get("PROOFS") == "full"
SHARE = 100  # of the full count, in a usual run of the tests


def counted(full: int) -> int:
    """So many times with ``PROOFS=full``, else a hundredth of them, and once at least."""
    return full if FULL else max(1, full // SHARE)


def a_share_of(numbers: range, seed: str) -> range:
    """All of them with ``PROOFS=full``, else every hundredth from one that the seed draws."""
    return numbers if FULL else numbers[random.Random(seed).randrange(SHARE) :: SHARE]


def a_third_of(values: Iterable[T]) -> list[T]:
    """All of them with ``PROOFS=full``, else every third: where each costs a process or a key."""
    listed = list(values)
    return listed if FULL else listed[::3]
