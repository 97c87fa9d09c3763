"""The default ranking while a vault is being embedded: nDCG@10 by the share that has vectors."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.development_sets import DevelopmentSet, development_sets, sets_parser
from benchmarks.quality import pooled
from benchmarks.sealed import SealedPart
from memory_store.evaluation import evaluate

SHARES = (0.0, 0.3, 0.7, 1.0)
RUNS = {"default": {}, "keyword": {"mode": "keyword"}}


def rows(wanted: DevelopmentSet, kept: Path, folder: Path) -> Iterator[str]:
    """A row for each share. Vectors that are in ``kept`` already are not made again."""
    for share in SHARES:
        found = []
        for number, part in enumerate(wanted.parts):
            whole = SealedPart(part, wanted.vault(kept, number, part))
            some = SealedPart(
                part, folder / f"{share}-{number}.db", known=whole.float32, embedded=share
            )
            found.append(evaluate(some, part.queries, part.judgements, RUNS))
            some.close()
            whole.close()
        default, words = (pooled(found, run, wanted.measure).mean() for run in RUNS)
        yield f"| {wanted.name} | {share:.0%} | {default:.3f} | {words:.3f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = sets_parser(__doc__)
    given = parser.parse_args(arguments)
    print("| set | embedded | default | words alone |\n|---|---|---|---|")
    for wanted in development_sets(given.evals, given.only):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            for row in rows(wanted, given.keep or folder, folder):
                print(row, flush=True)


if __name__ == "__main__":
    main()
