"""What each extra of the default ranking brings, on every set: the ranking with it and without it.

    python -m benchmarks.extras --evals FOLDER [--only SET] [--keep FOLDER] [--json FILE]

What is a number of learned fusion is left out by ``benchmarks.tuning``; here are the switches
beside it. Those that the default ranking has are switched off, the others on.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from benchmarks.development_sets import DevelopmentSet, development_sets
from benchmarks.quality import pooled
from benchmarks.sealed import SealedPart
from benchmarks.tuning import CHOSEN_BY, MOST_QUERIES
from memory_store.evaluation import Comparison, compare, evaluate
from memory_store.search import recipes
from memory_store.search.recipes import DEFAULT

BASE: Mapping[str, Any] = {}
PLACES = replace(DEFAULT, name="by places", learned=False)
EXTRAS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    # what → (with it, without it): options of a search
    "neighbours": (BASE, {"recipe": "no neighbours"}),
    "topics as a leg": (BASE, {"recipe": "no topics"}),
    "titles twice": ({"recipe": "titles twice"}, BASE),
    "late interaction": ({"reranker": "maxsim"}, BASE),
    "learned fusion": (BASE, {"recipe": "by places"}),
    "feedback": ({"recipe": "feedback"}, {"recipe": "by places"}),
}
RECIPES = (
    replace(DEFAULT, name="no neighbours", neighbour_weights=()),
    replace(DEFAULT, name="no topics", legs=("keyword", "vector")),
    replace(DEFAULT, name="titles twice", title_weight=2.0),
    PLACES,
    replace(PLACES, name="feedback", feedback=4),
)


def brought(wanted: DevelopmentSet, folder: Path, most: int) -> dict[str, Comparison]:
    """With each extra against without it, over at most ``most`` queries of one set."""
    every = [query for part in wanted.parts for query in part.judgements]
    asked = {*random.Random(CHOSEN_BY).sample(every, min(most, len(every)))}
    runs = {repr(run): run for pair in EXTRAS.values() for run in pair}
    found = []
    for number, part in enumerate(wanted.parts):
        sealed = SealedPart(part, wanted.vault(folder, number, part))
        judged = {query: part.judgements[query] for query in part.judgements if query in asked}
        if judged:
            found.append(evaluate(sealed, part.queries, judged, runs))
        sealed.close()
    values = {name: pooled(found, name, wanted.measure) for name in runs}
    return {
        name: compare(values[repr(having)], values[repr(lacking)])
        for name, (having, lacking) in EXTRAS.items()
    }


def table(found: Mapping[str, Mapping[str, Comparison]]) -> Iterator[str]:
    """Sets down, extras across; in bold what chance does not explain (p < .05)."""
    yield f"| set | {' | '.join(EXTRAS)} |"
    yield "|---" * (len(EXTRAS) + 1) + "|"
    for name, extras in found.items():
        cells = [
            f"**{one.difference:+.3f}**" if one.p < 0.05 else f"{one.difference:+.3f}"
            for one in extras.values()
        ]
        yield f"| {name} | {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--evals", type=Path, help="folder of development sets")
    parser.add_argument("--only", action="append", help="a set's name (repeatable)")
    parser.add_argument("--keep", type=Path, help="where benchmarks.quality kept sealed vaults")
    parser.add_argument("--queries", type=int, default=MOST_QUERIES, help="of each set at most")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")
    given = parser.parse_args(arguments)
    recipes.RECIPES = {**recipes.RECIPES, **{one.name: one for one in RECIPES}}
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        found = {
            wanted.name: brought(wanted, folder, given.queries)
            for wanted in development_sets(given.evals, given.only)
        }
    print("\n".join(table(found)))
    if given.json is not None:
        kept = {
            name: {extra: [one.difference, one.p] for extra, one in extras.items()}
            for name, extras in found.items()
        }
        given.json.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
