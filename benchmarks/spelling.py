"""What it is worth to look up the nearest word where nothing holds the one that was asked for.

    python -m benchmarks.spelling --evals FOLDER --only xquad-es-en --model multilingual

nDCG@10 by the default recipe and by keywords, with it and without. Questions in another language
than the memories show whether it takes their words for slips.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from benchmarks.development_sets import DevelopmentSet, development_sets
from benchmarks.sealed import SealedPart
from memory_store.evaluation import Evaluation, evaluate
from memory_store.paths import MODEL_VARIABLE

RUNS = {"default": {}, "keyword": {"mode": "keyword"}}
MEASURE = "ndcg@10"


def measured(wanted: DevelopmentSet, folder: Path) -> None:
    """Print a set's figures. Vaults that are in ``folder`` already are used as they are."""
    parts = [
        SealedPart(part, wanted.vault(folder, number, part))
        for number, part in enumerate(wanted.parts)
    ]
    corrected = [_evaluated(part) for part in parts]
    for part in parts:
        part.context = replace(part.context, lexicon=None)
    as_typed = [_evaluated(part) for part in parts]
    for part in parts:
        part.close()
    for run in RUNS:
        with_it, without = _mean(corrected, run), _mean(as_typed, run)
        print(f"{wanted.name}  {run:<8}  with {with_it:.3f}  without {without:.3f}", flush=True)


def _evaluated(part: SealedPart) -> Evaluation:
    part.forget()
    return evaluate(part, part.part.queries, part.part.judgements, RUNS)


def _mean(found: Sequence[Evaluation], run: str) -> float:
    return float(np.concatenate([one.run(run).values[MEASURE] for one in found]).mean())


def main() -> None:
    """Measure each set that is named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--evals", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--model", default="small")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    os.environ[MODEL_VARIABLE] = given.model
    with tempfile.TemporaryDirectory() as passing:
        folder = (given.keep or Path(passing)) / given.model
        folder.mkdir(parents=True, exist_ok=True)
        for wanted in development_sets(given.evals, given.only):
            measured(wanted, folder)


if __name__ == "__main__":
    main()
