"""How many mutants of the cryptographic core the tests notice, as mutmut counted them.

    python tests/crypto/mutant_score.py     # after mutmut run and mutmut export-cicd-stats

Ends with an error below :data:`LEAST`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

COUNTS = Path("mutants/mutmut-cicd-stats.json")
LEAST = 0.85  # of all mutants: what a maintained core is to reach; those that live are listed


def score(counts: dict[str, int]) -> tuple[int, int]:
    """How many were noticed, by a test that fails or no longer ends, and how many there are."""
    noticed = ("killed", "timeout", "segfault")
    return sum(counts[how] for how in noticed), counts["total"]


def main() -> None:
    noticed, total = score(json.loads(COUNTS.read_text("utf-8")))
    print(f"{noticed} of {total} mutants noticed: {noticed / total:.1%} (required: {LEAST:.0%})")
    if noticed < LEAST * total:
        sys.exit("too few")


if __name__ == "__main__":
    main()
