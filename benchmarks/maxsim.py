"""What late interaction gains over fusion, and what it costs.

    python -m benchmarks.maxsim --evals FOLDER --keep FOLDER [--only SET …]

Each development set is ranked twice by the default recipe: as fused, and with ``reranker=maxsim``.
Fails (exit 1) where MaxSim lowers a set's measure by more than the gate of ``make quality`` lets
it. The cost is what it adds to the processor time of a search, as a median.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.development_sets import DevelopmentSet, development_sets, sets_parser, vault_folder
from benchmarks.gates import MAXSIM_SLACK
from benchmarks.sealed import SealedPart
from memory_store.evaluation import Comparison, compare, estimate, evaluate

RUNS = {"fusion": {"rerank": False}, "maxsim": {"reranker": "maxsim"}}
DEPTH = 10
TIMED = 20  # searches of each part


def measured(wanted: DevelopmentSet, folder: Path) -> tuple[str, Comparison]:
    """The line of one set, and MaxSim against fusion."""
    fused, late, times = [], [], []
    for number, part in enumerate(wanted.parts):
        sealed = SealedPart(part, wanted.vault(folder, number, part))
        found = evaluate(sealed, part.queries, part.judgements, RUNS, depth=DEPTH)
        fused.append(found.run("fusion").values[wanted.measure])
        late.append(found.run("maxsim").values[wanted.measure])
        times += _milliseconds(sealed, list(part.queries.values())[:TIMED])
        sealed.close()
    values = np.concatenate(late)
    against = compare(values, np.concatenate(fused))
    line = (
        f"{wanted.name:<10}{len(values):>6} queries  fusion {np.concatenate(fused).mean():.4f}  "
        f"maxsim {estimate(values)}  {against.difference:+.4f} "
        f"[{against.low:+.4f}, {against.high:+.4f}] p {against.p:.3f}  "
        f"better {against.better} worse {against.worse}  {statistics.median(times):.0f} ms CPU"
    )
    return line, against


def _milliseconds(part: SealedPart, queries: Sequence[str]) -> list[float]:
    """The processor time of each search with MaxSim less that of the same without."""
    times = []
    for query in queries:
        moments = [time.process_time()]
        for options in RUNS.values():
            part.store.search(query, **options)
            moments.append(time.process_time())
        before, between, after = moments
        times.append(((after - between) - (between - before)) * 1_000)
    return times


def main(arguments: Sequence[str] | None = None) -> int:
    parser = sets_parser(__doc__)
    given = parser.parse_args(arguments)
    lowered = []
    with vault_folder(given.keep) as folder:
        for wanted in development_sets(given.evals, given.only):
            line, against = measured(wanted, folder)
            print(line, flush=True)
            lowered += [wanted.name] if against.difference < -MAXSIM_SLACK else []
    for name in lowered:
        print(f"FAILED {name}: maxsim is below fusion", file=sys.stderr)
    return 1 if lowered else 0


if __name__ == "__main__":
    raise SystemExit(main())
