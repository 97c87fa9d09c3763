"""What each switch of the default ranking brings that is no feature of learned fusion.

    python -m benchmarks.switches --evals FOLDER [--keep FOLDER] [--only SET …] [--json FILE]

Each development set is ranked as it is, and with one switch changed. Switches that need places in
lists instead of evidence are compared with the ranking by places.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.development_sets import DevelopmentSet, development_sets, sets_parser, vault_folder
from benchmarks.quality import PLACES, pooled
from benchmarks.report import write_figures
from benchmarks.sealed import SealedPart
from benchmarks.tuning import CHOSEN_BY, MOST_QUERIES
from memory_store.evaluation import compare, evaluate
from memory_store.search import recipes
from memory_store.search.recipes import DEFAULT, frozen

OF_PLACES = recipes.RECIPES[PLACES]
SWITCHES = {
    "without neighbours in conversations": replace(DEFAULT, neighbour_weights=()),
    "words of titles counted twice": replace(DEFAULT, title_weight=2.0),
    "without what boosts and demotes types": replace(
        DEFAULT, fusion_boosts=frozen({}), demotions=frozen({}), done_penalty=1.0
    ),
    "vectors in full where the model was made for other languages": replace(
        DEFAULT, foreign_vector_weight=1.0
    ),
    PLACES: OF_PLACES,
    f"{PLACES}, with feedback of the first three": replace(OF_PLACES, feedback=3),
    f"{PLACES}, without neighbours": replace(OF_PLACES, neighbour_weights=()),
}
"""What is changed, as recipes."""
recipes.RECIPES = MappingProxyType(
    {**recipes.RECIPES, **{name: replace(one, name=name) for name, one in SWITCHES.items()}}
)
MAXSIM = "with MaxSim"
RUNS: dict[str, dict[str, Any]] = {
    "default": {"rerank": False},
    **{name: {"recipe": name, "rerank": False} for name in SWITCHES},
    MAXSIM: {"reranker": "maxsim"},
}
AGAINST = {name: PLACES if name.startswith(f"{PLACES},") else "default" for name in RUNS}


class Switched(Struct, frozen=True):
    """A set ranked with a switch changed: what it reaches more than without, 95 % between ``low``
    and ``high``."""

    name: str
    switch: str
    difference: float
    low: float
    high: float


def switched(wanted: DevelopmentSet, folder: Path, most: int) -> Iterator[Switched]:
    """What each switch brings to at most so many queries of a set."""
    queries = [(n, query) for n, part in enumerate(wanted.parts) for query in part.judgements]
    asked = set(random.Random(CHOSEN_BY).sample(queries, min(most, len(queries))))
    found = []
    for number, part in enumerate(wanted.parts):
        sealed = SealedPart(part, wanted.vault(folder, number, part))
        judged = {q: grades for q, grades in part.judgements.items() if (number, q) in asked}
        found.append(evaluate(sealed, part.queries, judged, RUNS, depth=10))
        sealed.close()
    values = {run: pooled(found, run, wanted.measure) for run in RUNS}
    for run, other in AGAINST.items():
        if run != "default":
            between = compare(values[run], values[other])
            yield Switched(wanted.name, run, between.difference, between.low, between.high)


def report(found: Sequence[Switched]) -> Iterator[str]:
    """A line for each switch: the mean over all sets, and the sets that it moves."""
    for switch in dict.fromkeys(one.switch for one in found):
        own = sorted((o for o in found if o.switch == switch), key=lambda one: one.difference)
        moved = [f"{o.name} {o.difference:+.4f}" for o in own if o.low > 0 or o.high < 0]
        mean = float(np.mean([one.difference for one in own]))
        yield f"{switch:<62}{mean:+.4f}  {', '.join(moved) or 'none clearly'}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Rank, and print what each switch brings."""
    parser = sets_parser(__doc__)
    parser.add_argument("--queries", type=int, default=MOST_QUERIES, help="of each set at most")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")
    given = parser.parse_args(arguments)
    found: list[Switched] = []
    with vault_folder(given.keep) as folder:
        for wanted in development_sets(given.evals, given.only):
            found += switched(wanted, folder, given.queries)
            print(wanted.name, flush=True)
    print("\n".join(report(found)))
    write_figures(given.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
