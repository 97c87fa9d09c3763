"""Trains learned fusion, and shows what it reaches on a set that it was not trained on.

    python -m benchmarks.tuning --evals FOLDER [--keep FOLDER] [--queries 150] [--json FILE]

The product's own stages gather the evidence (analysis, legs, ``fusion.evidence``). Each set is then
left out in turn: the numbers are fitted on the others and measured there, beside the shipped ones,
the best leg, and the numbers fitted on all. How far the probabilities are off is measured likewise,
and what a set that is left out would lose if there were no such feature.
Last come the numbers fitted on all sets, as ``default_weights.json`` has them.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.development_sets import DevelopmentSet, development_sets, sets_parser, vault_folder
from benchmarks.noise import noise
from benchmarks.report import write_figures
from benchmarks.sealed import EQUAL, SealedPart
from memory_store.evaluation import MEASURES, Estimate, estimate
from memory_store.evaluation.fusion_evidence import as_searches, by_fusion, judged_search
from memory_store.evaluation.fusion_fit import (
    READ,
    Probability,
    Searches,
    Values,
    calibrated,
    calibration_error,
    fitted,
    reliability,
)
from memory_store.evaluation.runs import Catalogue
from memory_store.models.embedder import load_embedder
from memory_store.search.fusion.evidence import FEATURES
from memory_store.search.fusion.learned import column, numbers_for
from memory_store.search.recipes.recipe import CERTAIN

CHOSEN_BY = 1_966  # any number: the same queries every time
MOST_QUERIES = 150  # of a set: all sets in a few minutes, means to about ± .03
NOISE = 40  # queries of random letters, of random syllables, and of other sets, put to each set
LEGS = ({"mode": "keyword"}, {"mode": "vector"}, {"mode": EQUAL})


class HeldOut(Struct, frozen=True):
    """One set: what each of the numbers reaches there, and how its probabilities hold."""

    name: str
    measure: str
    queries: int
    best_leg: float
    shipped: float
    held_out: Estimate
    of_all: float
    error: float
    certain: int
    right: float | None
    said: Values
    relevant: Values

    def as_data(self) -> dict[str, Any]:
        """JSON-ready, to four digits."""
        names = ("best_leg", "shipped", "of_all", "error", "right")
        rounded = {
            name: None if getattr(self, name) is None else round(float(getattr(self, name)), 4)
            for name in names
        }
        found = self.held_out
        reached = {name: round(getattr(found, name), 4) for name in ("mean", "low", "high")}
        counts = {name: getattr(self, name) for name in ("name", "measure", "queries", "certain")}
        return {**counts, **rounded, "held_out": reached}


class Without(Struct, frozen=True):
    """What sets that are left out reach without a feature; ``feature`` is empty for all features.

    ``brought`` is the mean of what all features reach less this, ``gains`` the set that gains by
    the feature, and ``loses`` the one that loses most. ``error`` is that of all probabilities
    together, ``misled`` how many queries without an answer find a certain result.
    """

    feature: str
    brought: float
    gains: tuple[str, float]
    loses: tuple[str, float]
    error: float
    misled: int


class Gathered(Struct, frozen=True):
    """The evidence for what queries of a set find, and queries that it does not answer."""

    judged: Searches
    unanswered: Searches


def gathered(asked: tuple[DevelopmentSet, Sequence[str]], folder: Path, most: int) -> Gathered:
    """The evidence for at most ``most`` queries of a set, and for some that it cannot answer."""
    wanted, unanswerable = asked
    part = wanted.parts[0]
    judged = searches(wanted, folder, most)
    sealed = SealedPart(part, wanted.vault(folder, 0, part))
    catalogue = Catalogue(sealed.references())
    found = [judged_search(sealed.context, query, {}, catalogue) for query in unanswerable]
    sealed.close()
    return Gathered(judged, as_searches(found, wanted.name))


def unanswerable(wanted: DevelopmentSet, sets: Sequence[DevelopmentSet]) -> list[str]:
    """Noise, and queries of sets that do not ask the same in another language."""
    draw = random.Random(CHOSEN_BY)
    own = {query for part in wanted.parts for query in part.queries}
    others = [
        part.queries
        for one in sets
        if one is not wanted and not any(own & part.queries.keys() for part in one.parts)
        for part in one.parts
    ]
    foreign = [text for queries in others for text in queries.values() if by_fusion(text)]
    return [*noise(draw, NOISE), *draw.sample(foreign, min(NOISE, len(foreign)))]


def searches(wanted: DevelopmentSet, folder: Path, most: int) -> Searches:
    """The evidence for what at most ``most`` queries of a set find."""
    asked, measure = _asked(wanted, most), MEASURES[wanted.measure]
    found, legs = [], []
    for number, part in enumerate(wanted.parts):
        sealed = SealedPart(part, wanted.vault(folder, number, part))
        catalogue = Catalogue(sealed.references())
        for query in asked[number]:
            text, grades = part.queries[query], part.judgements[query]
            judged = catalogue.judged(grades)
            ranked = (sealed.rank(text, **leg) for leg in LEGS)
            legs.append(
                [measure(catalogue.units(id_ for id_, _ in one.results), judged) for one in ranked]
            )
            found.append(judged_search(sealed.context, text, grades, catalogue))
        sealed.close()
    best_leg = float(np.mean(legs, axis=0).max())
    return as_searches(found, wanted.name, best_leg, wanted.measure.startswith("recall"))


def _asked(wanted: DevelopmentSet, most: int) -> list[list[str]]:
    """By part, the queries to ask: those that fusion alone answers, drawn over all parts."""
    every = [
        (number, query)
        for number, part in enumerate(wanted.parts)
        for query, grades in part.judgements.items()
        if query in part.queries and max(grades.values()) > 0 and by_fusion(part.queries[query])
    ]
    drawn = random.Random(CHOSEN_BY).sample(every, min(most, len(every)))
    return [[query for number, query in drawn if number == one] for one in range(len(wanted.parts))]


def held_out(sets: Sequence[Gathered], of_all: Values) -> Iterator[HeldOut]:
    """Each set with the numbers that the others choose."""
    shipped = column(numbers_for(load_embedder().name).weights)
    for number, one in enumerate(each.judged for each in sets):
        others = [*sets[:number], *sets[number + 1 :]]
        weights = fitted([other.judged for other in others])
        first = one.first(weights, READ)
        said, relevant = _meaning(others, weights).of(first), first.relevant
        certain = said >= CERTAIN
        yield HeldOut(
            name=one.name,
            measure=MEASURES["recall@10" if one.by_recall else "ndcg@10"].label,
            queries=len(one.read),
            best_leg=one.best_leg,
            shipped=one.reached(one.scores(shipped)),
            held_out=estimate(one.values(one.scores(weights))),
            of_all=one.reached(one.scores(of_all)),
            error=calibration_error(said, relevant),
            certain=int(certain.sum()),
            right=float(relevant[certain].mean()) if certain.any() else None,
            said=said,
            relevant=relevant,
        )


def without(sets: Sequence[Gathered], jobs: int) -> Iterator[Without]:
    """What sets that are left out reach by all features, then without each."""
    names = [one.judged.name for one in sets]
    lacking = [[_lacking(one, place) for one in sets] for place in range(len(FEATURES))]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        whole, *parts = pool.map(_left_out, [sets, *lacking])
    for feature, (reached, error, misled) in zip(("", *FEATURES), (whole, *parts), strict=True):
        brought = zip(names, np.subtract(whole[0], reached).tolist(), strict=True)
        loses, *_, gains = sorted(brought, key=lambda item: item[1])
        mean = float(np.mean(np.subtract(whole[0], reached)))
        yield Without(feature, mean, gains, loses, error, misled)


def _lacking(one: Gathered, place: int) -> Gathered:
    parts = []
    for searches in (one.judged, one.unanswered):
        features = searches.features.copy()
        features[:, :, place] = 0.0
        parts.append(replace(searches, features=features))
    return Gathered(*parts)


def _left_out(sets: Sequence[Gathered]) -> tuple[list[float], float, int]:
    """What each set reaches by numbers that the others choose, the error of their probabilities
    together, and how many of their queries without an answer find a certain result."""
    reached, said, relevant, misled = [], [], [], 0
    for number, one in enumerate(sets):
        others = [*sets[:number], *sets[number + 1 :]]
        weights = fitted([other.judged for other in others])
        meaning, first = _meaning(others, weights), one.judged.first(weights, READ)
        reached.append(one.judged.reached(one.judged.scores(weights)))
        said.append(meaning.of(first))
        relevant.append(first.relevant)
        misled += int((meaning.of(one.unanswered.first(weights, 1)) >= CERTAIN).sum())
    return reached, calibration_error(*map(np.concatenate, (said, relevant))), misled


def _meaning(sets: Sequence[Gathered], weights: Values) -> Probability:
    judged = [one.judged for one in sets]
    return calibrated(judged, weights, unanswered=[one.unanswered for one in sets])


def report(found: Sequence[HeldOut], weights: Values, probable: Probability) -> Iterator[str]:
    """The tables, line by line, then the numbers fitted on all sets."""
    yield (
        f"{'set':<12}{'queries':>8}  {'measure':<10}{'best leg':>9}{'shipped':>9}{'held out':>9}"
        f"{'of all':>8}{'error':>7}{'certain':>9}{'right':>7}"
    )
    for one in found:
        right = "–" if one.right is None else f"{one.right:.2f}"
        yield (
            f"{one.name:<12}{one.queries:>8}  {one.measure:<10}{one.best_leg:>9.4f}"
            f"{one.shipped:>9.4f}{one.held_out.mean:>9.4f}{one.of_all:>8.4f}{one.error:>7.3f}"
            f"{one.certain:>9}{right:>7}"
        )
    yield "probabilities of sets left out, all together: said, true, results"
    for said, true, count in together(found):
        yield f"  {said:.2f}  {true:.2f}  {count:>6,}"
    named = dict(zip(FEATURES, weights.tolist(), strict=True))
    rounded = {name: round(value, 3) for name, value in msgspec.structs.asdict(probable).items()}
    yield json.dumps({"weights": named, **rounded}, indent=2)


def together(found: Sequence[HeldOut]) -> list[tuple[float, float, int]]:
    """The reliability of all left-out sets' probabilities."""
    said = np.concatenate([one.said for one in found])
    return reliability(said, np.concatenate([one.relevant for one in found]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Gather, fit with each set left out, and print what it reaches there."""
    parser = sets_parser(__doc__)
    parser.add_argument("--queries", type=int, default=MOST_QUERIES, help="of each set at most")
    parser.add_argument("--jobs", type=int, default=2, help="sets tried at a time (2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the tables here, too")
    given = parser.parse_args(arguments)
    sets = list(development_sets(given.evals, given.only))
    if len(sets) < 2:
        parser.error("to leave one set out, two are needed: --evals FOLDER")
    with vault_folder(given.keep) as folder:
        gather = partial(gathered, folder=folder, most=given.queries)
        largest_first = sorted(sets, key=lambda one: one.size, reverse=True)
        with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
            asked = [(one, unanswerable(one, sets)) for one in largest_first]
            gathered_by_name = {one.judged.name: one for one in pool.map(gather, asked)}
    every = [gathered_by_name[one.name] for one in sets]
    of_all = fitted([one.judged for one in every])
    found = list(held_out(every, of_all))
    print("\n".join(report(found, of_all, _meaning(every, of_all))))
    lacking = list(without(every, given.jobs))
    for one in lacking:
        most, least = (f"{name} {value:+.4f}" for name, value in (one.gains, one.loses))
        print(
            f"{f'without {one.feature}' if one.feature else 'all':<36} brought {one.brought:+.4f} "
            f"({most}, {least}), error {one.error:.4f}, {one.misled} misled"
        )
    kept = {
        "sets": [one.as_data() for one in found],
        "reliability": together(found),
        "features": msgspec.to_builtins(lacking),
    }
    write_figures(given.json, kept)
    return 0


if __name__ == "__main__":
    sys.exit(main())
