"""What it is worth to look up the nearest word where nothing holds the one that was asked for.

    python -m benchmarks.spelling --evals FOLDER --only xquad-es-en --model multilingual
    python -m benchmarks.spelling --evals FOLDER --only demo --slips

nDCG@10 by the default recipe and by keywords, with it and without. Questions in another language
than the memories show whether it takes their words for slips; with ``--slips`` each query has one,
in a word of six letters or more: a letter less, twice, exchanged or another.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from benchmarks.development_sets import DevelopmentSet, development_sets, sets_parser, vault_folder
from benchmarks.sealed import SealedPart
from memory_store.evaluation import Evaluation, evaluate
from memory_store.paths import MODEL_VARIABLE
from memory_store.records import search_request
from memory_store.search.query.language import parse
from memory_store.text.words import query_words

RUNS = {"default": {}, "keyword": {"mode": "keyword"}}
MEASURE = "ndcg@10"
USUAL = "etaoinsr"  # letters that a wrong one is chosen from


def slipped(text: str, draw: random.Random) -> str:
    """A query with a slip; as it is where it has no long word, or quotes or filters."""
    parsed = parse(search_request(text))
    long = [one for one in query_words(text) if len(one.text) > 5 and one.text.isalpha()]
    if not long or parsed.required or parsed.has_filters:
        return text
    word, start, end = draw.choice(long)
    at = draw.randrange(1, len(word) - 1)
    before, letter, after = word[:at], word[at], word[at + 1 :]
    wrong = (after, letter * 2 + after, after[0] + letter + after[1:], draw.choice(USUAL) + after)
    return text[:start] + before + draw.choice(wrong) + text[end:]


def with_slips(part: SealedPart) -> None:
    """Put a slip in each query of a part."""
    draw = random.Random(7)
    queries = {name: slipped(text, draw) for name, text in part.part.queries.items()}
    part.part = replace(part.part, queries=queries)


def measured(wanted: DevelopmentSet, folder: Path, slips: bool) -> None:
    """Print a set's figures. Vaults that are in ``folder`` already are used as they are."""
    parts = [
        SealedPart(part, wanted.vault(folder, number, part))
        for number, part in enumerate(wanted.parts)
    ]
    for part in parts if slips else ():
        with_slips(part)
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
    parser = sets_parser(__doc__)
    parser.add_argument("--model", default="small")
    parser.add_argument("--slips", action="store_true")
    given = parser.parse_args()
    os.environ[MODEL_VARIABLE] = given.model
    with vault_folder(given.keep and given.keep / given.model) as folder:
        for wanted in development_sets(given.evals, given.only):
            measured(wanted, folder, given.slips)


if __name__ == "__main__":
    main()
