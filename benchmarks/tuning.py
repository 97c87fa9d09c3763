"""Whether the default recipe's fusion was fitted to the sets it is measured on.

    python -m benchmarks.tuning --evals FOLDER [--keep FOLDER] [--queries 150] [--json FILE]

Leave one set out: of a grid of settings the one is chosen that is best on the mean of all other
sets, and measured on the one left out, beside the shipped recipe and the best that any setting
reaches there. Queries are ranked by the product's own stages (fetch, merge, fusion's order); what
the legs list is fetched once and fused by every setting.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.development_sets import DevelopmentSet, development_sets
from benchmarks.sealed import Ranker, SealedPart
from memory_store.evaluation import MEASURES
from memory_store.evaluation.runs import DEFAULT_DEPTH, Catalogue
from memory_store.records import SearchRequest, search_request
from memory_store.search.fusion.learned import as_learned
from memory_store.search.fusion.rank_fusion import merge
from memory_store.search.legs.retrieval import fetch
from memory_store.search.query.analysis import analyse
from memory_store.search.query.language import parse, resolve_mode
from memory_store.search.query.plan import Search, make_plan
from memory_store.search.recipes import DEFAULT, Recipe
from memory_store.search.reranking.cross_encoder import in_fusion_order
from memory_store.search.trace import Trace

GRID: Mapping[str, Sequence[Any]] = {
    "neighbour_weights": ((), (0.4, 0.2, 0.1)),  # outermost: the legs are fetched anew for each
    "rrf_k": (30.0, 60.0),
    "keyword_weight": (1.0, 1.5, 2.0),
    "coverage_power": (0.5, 0.75, 1.0),
    "similarity_power": (1.5, 3.0),
}
CHOSEN_BY = 1_966  # any number: the same queries every time
MOST_QUERIES = 150  # of a set: all sets in a few minutes, means to about ± .03
MODE = "hybrid"


class Trial(Struct, frozen=True):
    """One set: what each of the settings reached there, in their order (float64 [settings])."""

    name: str
    measure: str
    queries: int
    means: npt.NDArray[np.float64]


class HeldOut(Struct, frozen=True):
    """What was chosen without a set, and what it reaches there."""

    trial: Trial
    chosen: int
    shipped: int

    def __str__(self) -> str:
        means = self.trial.means
        return (
            f"{self.trial.name:<10}{self.trial.queries:>8}  {self.trial.measure:<10}"
            f"{means[self.shipped]:>8.4f}{means[self.chosen]:>10.4f}{means.max():>8.4f}"
        )


def settings() -> list[Recipe]:
    """The default recipe with every combination of the grid; as it is shipped comes first."""
    combined = [
        replace(DEFAULT, **dict(zip(GRID, numbers, strict=True)))
        for numbers in product(*GRID.values())
    ]
    return [DEFAULT, *(one for one in combined if one != DEFAULT)]


def trial(wanted: DevelopmentSet, folder: Path, most: int) -> Trial:
    """Every setting on at most ``most`` queries of a set."""
    asked, recipes = _asked(wanted, most), settings()
    found = []
    for number, part in enumerate(wanted.parts):
        sealed = SealedPart(part, wanted.vault(folder, number, part))
        catalogue = Catalogue(sealed.references())
        for query in asked[number]:
            grades = catalogue.judged(part.judgements[query])
            rankings = fused_by_each(sealed, search_request(part.queries[query]), recipes)
            measure = MEASURES[wanted.measure]
            found.append([measure(catalogue.units(ids), grades) for ids in rankings])
        sealed.close()
    label = MEASURES[wanted.measure].label
    return Trial(wanted.name, label, len(found), np.array(found).mean(axis=0))


def fused_by_each(
    sealed: Ranker, request: SearchRequest, recipes: Sequence[Recipe]
) -> Iterator[tuple[str, ...]]:
    """The ids that each recipe ranks, best first. The legs run once for each neighbour setting."""
    context = sealed.context
    analysis = analyse(parse(request), context, request)
    plan = make_plan(MODE, request, depth=DEFAULT_DEPTH)
    fetched: dict[tuple[float, ...], Any] = {}
    for recipe in recipes:
        beside = recipe.neighbour_weights
        search = as_learned(Search(context, replace(plan, recipe=recipe), analysis, Trace()))
        if beside not in fetched:
            fetched[beside] = fetch(search)
        merged = merge(fetched[beside], search, plan.pool)
        yield tuple(one.candidate.id for one in in_fusion_order(merged.pool, search.recipe))


def _asked(wanted: DevelopmentSet, most: int) -> list[list[str]]:
    """By part, the queries to ask: those that fusion alone answers, drawn over all parts."""
    every = [
        (number, query)
        for number, part in enumerate(wanted.parts)
        for query, grades in part.judgements.items()
        if query in part.queries and max(grades.values()) > 0 and _by_fusion(part.queries[query])
    ]
    drawn = random.Random(CHOSEN_BY).sample(every, min(most, len(every)))
    return [[query for number, query in drawn if number == one] for one in range(len(wanted.parts))]


def _by_fusion(query: str) -> bool:
    """Whether nothing must be opened to rank a query's answers."""
    request = search_request(query)
    parsed = parse(request)
    return resolve_mode(request) == MODE and not (parsed.required or parsed.excluded)


def best_for(trials: Sequence[Trial]) -> int:
    """The setting with the highest mean over sets, each set counting the same."""
    return int(np.mean([one.means for one in trials], axis=0).argmax())


def held_out(trials: Sequence[Trial]) -> Iterator[HeldOut]:
    """Each set with the choice of the others; the first setting is the shipped one."""
    for one in trials:
        yield HeldOut(one, best_for([other for other in trials if other is not one]), shipped=0)


def told(recipe: Recipe) -> str:
    """The numbers of a setting in words."""
    beside = " ".join(f"{weight:g}" for weight in recipe.neighbour_weights) or "none"
    return (
        f"k {recipe.rrf_k:g}, keyword {recipe.keyword_weight:g}, coverage "
        f"{recipe.coverage_power:g}, similarity {recipe.similarity_power:g}, neighbours {beside}"
    )


def as_data(trials: Sequence[Trial], recipes: Sequence[Recipe]) -> list[dict[str, Any]]:
    """The table as JSON-ready data, to four digits."""
    return [
        {
            "name": one.trial.name,
            "measure": one.trial.measure,
            "queries": one.trial.queries,
            "shipped": round(float(one.trial.means[one.shipped]), 4),
            "held out": round(float(one.trial.means[one.chosen]), 4),
            "best": round(float(one.trial.means.max()), 4),
            "chosen": told(recipes[one.chosen]),
        }
        for one in held_out(trials)
    ]


def report(trials: Sequence[Trial], recipes: Sequence[Recipe]) -> Iterator[str]:
    """The table, line by line."""
    yield f"{len(recipes)} settings; shipped: {told(recipes[0])}"
    yield (
        f"{'set':<10}{'queries':>8}  {'measure':<10}{'shipped':>8}{'held out':>10}{'best':>8}"
        "  chosen by the other sets"
    )
    for one in held_out(trials):
        yield f"{one}  {told(recipes[one.chosen])}"
    yield f"chosen by all sets together: {told(recipes[best_for(trials)])}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Try every setting on every set, and print what held-out sets say."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--evals", type=Path, help="folder of development sets")
    parser.add_argument("--only", action="append", help="a set's name (repeatable)")
    parser.add_argument("--keep", type=Path, help="keep the sealed vaults here, for the next run")
    parser.add_argument("--queries", type=int, default=MOST_QUERIES, help="of each set at most")
    parser.add_argument("--jobs", type=int, default=2, help="sets tried at a time (2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table here, too")
    given = parser.parse_args(arguments)
    sets = list(development_sets(given.evals, given.only))
    if len(sets) < 2:
        parser.error("to leave one set out, two are needed: --evals FOLDER")
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        try_one = partial(trial, folder=folder, most=given.queries)
        largest_first = sorted(sets, key=lambda one: one.size, reverse=True)
        with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
            tried = {one.name: one for one in pool.map(try_one, largest_first)}
    trials = [tried[one.name] for one in sets]
    print("\n".join(report(trials, settings())))
    if given.json is not None:
        kept = as_data(trials, settings())
        given.json.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
