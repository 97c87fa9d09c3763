"""What the default ranking finds for what means nothing: how likely an answer the best result is.

    python -m benchmarks.noise --evals FOLDER [--keep FOLDER] [--only SET]

By set, for 100 queries of random letters and 100 of random syllables: the highest probability, and
how many queries have one above .2. A random word may be one of the collection, or a slip away from
one; queries for which words find nothing are noise in the strict sense, and counted by themselves.
"""

from __future__ import annotations

import random
import string
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.development_sets import development_sets, sets_parser
from benchmarks.sealed import SealedPart

QUERIES = 100
LIKELY = 0.2
CONSONANTS, VOWELS = "bcdfghjklmnprstvwz", "aeiou"


def letters(draw: random.Random) -> str:
    """A word of three to ten letters."""
    return "".join(draw.choices(string.ascii_lowercase, k=draw.randint(3, 10)))


def syllables(draw: random.Random) -> str:
    """A word of two to four syllables."""
    return "".join(map(draw.choice, (CONSONANTS, VOWELS) * draw.randint(2, 4)))


def noise(draw: random.Random, queries: int) -> list[str]:
    """As many queries of random letters, then as many of random syllables."""
    return [
        " ".join(word(draw) for _ in range(draw.randint(1, 5)))
        for word in (letters, syllables)
        for _ in range(queries)
    ]


def _best(sealed: SealedPart, query: str) -> float:
    found = sealed.rank(query).results
    return found[0][1] if found else 0.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = sets_parser(__doc__)
    given = parser.parse_args(arguments)
    print(f"| set | random | highest | above {LIKELY} | held by nothing | of these above |")
    print("|---" * 6 + "|")
    for wanted in development_sets(given.evals, given.only):
        part = wanted.parts[0]
        with tempfile.TemporaryDirectory() as temporary:
            sealed = SealedPart(part, wanted.vault(given.keep or Path(temporary), 0, part))
            asked = noise(random.Random(7), QUERIES)
            for kind, some in (("letters", asked[:QUERIES]), ("syllables", asked[QUERIES:])):
                best = [_best(sealed, query) for query in some]
                strict = [
                    found
                    for query, found in zip(some, best, strict=True)
                    if not sealed.rank(query, mode="keyword").results
                ]
                above, strictly = (sum(one > LIKELY for one in found) for found in (best, strict))
                print(
                    f"| {wanted.name} | {kind} | {max(best):.2f} | {above} | {len(strict)} "
                    f"| {strictly} |",
                    flush=True,
                )
            sealed.close()


if __name__ == "__main__":
    main()
