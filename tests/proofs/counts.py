"""How often a proof is repeated: a share of the times in every test run, all of them on demand.

``make proofs`` sets ``PROOFS=full``; then the counts are those that docs/trust/security.md states.
"""

from __future__ import annotations

import os
import random

FULL = os.environ.get("PROOFS") == "full"
SHARE = 100  # of the full count, in a usual run of the tests


def counted(full: int) -> int:
    """So many times with ``PROOFS=full``, else a hundredth of them, and once at least."""
    return full if FULL else max(1, full // SHARE)


def a_share_of(numbers: range, seed: str) -> range:
    """All of them with ``PROOFS=full``, else every hundredth from one that the seed draws."""
    return numbers if FULL else numbers[random.Random(seed).randrange(SHARE) :: SHARE]
