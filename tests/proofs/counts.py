"""How often a proof is repeated: a share of the times in every test run, all of them on demand.

``make proofs`` sets ``PROOFS=full``; then the counts are those that docs/security.md states.
"""

from __future__ import annotations

import os

FULL = os.environ.get("PROOFS") == "full"
SHARE = 100  # of the full count, in a usual run of the tests


def counted(full: int) -> int:
    """So many times with ``PROOFS=full``, else a hundredth of them, and once at least."""
    return full if FULL else max(1, full // SHARE)
