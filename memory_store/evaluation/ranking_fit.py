"""Fitting learned fusion to judgements of a vault's own, and refusing a fit that does not help.

Five times a fifth of the queries is left out, the numbers are fitted to the others, and measured on
what was left out. Only what is better there, beyond chance, is worth keeping: a few dozen queries
are easily learned by heart. The order of results and what a score means are judged apart.

Boundary: queries and refs pass through in clear, texts do not. What is stored in the end are a
model's name and numbers, sealed in the vault's settings.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memory_store.errors import BadInputError
from memory_store.evaluation.fusion_evidence import (
    JudgedSearch,
    as_searches,
    by_fusion,
    judged_search,
)
from memory_store.evaluation.fusion_fit import (
    READ,
    Probability,
    Searches,
    Values,
    calibrated,
    calibration_error,
    fitted,
)
from memory_store.evaluation.judgements import Judgements
from memory_store.evaluation.runs import Catalogue, Progress
from memory_store.evaluation.statistics import Comparison, Estimate, compare, estimate
from memory_store.records.fusion import FittedFusion, FusionNumbers
from memory_store.search.fusion.evidence import FEATURES
from memory_store.search.fusion.learned import column, numbers_of

if TYPE_CHECKING:
    from memory_store.store import MemoryStore

LEAST_QUERIES = 20
FOLDS = 5
DRAWN_BY = 1_966  # any number: the same parts every time
LEAST = 1e-6  # of a probability, for its logarithm
WORTH = 0.005  # of nDCG@10: less is no reason to leave the numbers that many sets agree on


class RankingFit(Struct, frozen=True):
    """A fit, and what it is worth on queries that were left out of it.

    ``before`` and ``after`` are nDCG@10 by the weights until now and by fitted ones; ``gain`` is
    the difference, query by query. ``loss`` compares the log-loss of the probabilities, with the
    weights that are kept: below 0 is better. ``errors`` are the expected calibration errors until
    now and after. ``left_out`` counts judged queries that were not used: phrases and excluded words
    are looked up in opened texts, and one that finds nothing says nothing. ``fitted`` is ``None``
    where neither helps.
    """

    fitted: FittedFusion | None
    until_now: FusionNumbers
    queries: int
    before: Estimate
    after: Estimate
    gain: Comparison
    loss: Comparison
    errors: tuple[float, float]
    left_out: int
    unknown_refs: tuple[str, ...]

    @property
    def order_helps(self) -> bool:
        """Whether fitted weights gain on queries that they never saw, beyond chance (95 %)."""
        return _order_helps(self.gain)

    @property
    def meaning_helps(self) -> bool:
        """Whether probabilities are truer for queries that they were not fitted to."""
        return self.loss.high < 0


def fit_ranking(
    store: MemoryStore,
    queries: Mapping[str, str],
    judgements: Judgements,
    *,
    progress: Progress | None = None,
) -> RankingFit:
    """Fit the default ranking's numbers; keep them with ``store.set_ranking``.

    Raises BadInputError for fewer than 20 queries that can be used, and in a vault of several
    models, whose queries meet now one and now another.
    """
    context, catalogue = store.search_context(), Catalogue(store.references())
    asked = [name for name in judgements if name in queries and by_fusion(queries[name])]
    found: list[JudgedSearch] = []
    for number, name in enumerate(asked):
        if progress is not None:
            progress("fit", number, len(asked))
        one = judged_search(context, queries[name], judgements[name], catalogue)
        if one.relevant and len(one.evidence.ordinals):
            found.append(one)
    if len(found) < LEAST_QUERIES:
        raise BadInputError(
            f"fit: of the judged queries {len(found):,} can be used, and {LEAST_QUERIES} are "
            "needed. Judge some more",
            "fit",
        )
    model = found[0].evidence.model
    if any(one.evidence.model != model for one in found):
        raise BadInputError("fit: the queries met vectors of several models", "fit")
    until_now = numbers_of(found[0].evidence)
    start = column(until_now.weights)
    before, after = _orders(found, start)
    gain = compare(after, before)
    weights = fitted([as_searches(found)], start) if _order_helps(gain) else start
    loss, errors = _meanings(found, weights, until_now)
    kept = FittedFusion(
        model=model,
        numbers=_numbers(found, weights, until_now),
        queries=len(found),
        before=round(float(before.mean()), 6),
        after=round(float((after if _order_helps(gain) else before).mean()), 6),
        day=datetime.datetime.now(datetime.UTC).date().isoformat(),
    )
    named = {ref for grades in judgements.values() for ref in grades}
    return RankingFit(
        fitted=kept if _order_helps(gain) or loss.high < 0 else None,
        until_now=until_now,
        queries=len(found),
        before=estimate(before),
        after=estimate(after),
        gain=gain,
        loss=loss,
        errors=errors,
        left_out=len(judgements) - len(found),
        unknown_refs=tuple(sorted(named - catalogue.ids.keys())),
    )


def _order_helps(gain: Comparison) -> bool:
    return gain.difference >= WORTH and gain.low > 0


def _parts(found: Sequence[JudgedSearch]) -> Iterator[tuple[list[int], Searches, Searches]]:
    """Each fifth of the searches: their numbers, they themselves, and the others."""
    order = random.Random(DRAWN_BY).sample(range(len(found)), len(found))
    for part in range(FOLDS):
        tried = order[part::FOLDS]
        others = [found[n] for n in order if n not in set(tried)]
        yield tried, as_searches([found[n] for n in tried]), as_searches(others)


def _orders(found: Sequence[JudgedSearch], start: Values) -> tuple[Values, Values]:
    """nDCG@10 of each query by ``start``, and by weights fitted to the other parts."""
    before, after = np.zeros(len(found)), np.zeros(len(found))
    for tried, here, others in _parts(found):
        before[tried] = here.values(here.scores(start))
        after[tried] = here.values(here.scores(fitted([others], start)))
    return before, after


def _meanings(
    found: Sequence[JudgedSearch], weights: Values, until_now: FusionNumbers
) -> tuple[Comparison, tuple[float, float]]:
    """The log-loss of each query's first results, by probabilities fitted to the other parts
    against those until now; and how far either is off (expected calibration error).
    """
    as_it_was = _meaning(until_now)
    losses: list[list[float]] = [[], []]
    said: list[list[Values]] = [[], []]
    truth = []
    for tried, _, others in _parts(found):
        fresh = calibrated([others], weights, as_it_was)
        for number in tried:
            first = as_searches([found[number]]).first(weights, READ)
            truth.append(relevant := first.relevant)
            for way, probable in enumerate((as_it_was, fresh)):
                now = np.clip(probable.of(first), LEAST, 1.0 - LEAST)
                wrong = -(relevant * np.log(now) + (1.0 - relevant) * np.log(1.0 - now))
                said[way].append(now)
                losses[way].append(float(wrong.mean()))
    every = np.concatenate(truth)
    before, after = (calibration_error(np.concatenate(one), every) for one in said)
    return compare(np.array(losses[1]), np.array(losses[0])), (before, after)


def _numbers(
    found: Sequence[JudgedSearch], weights: Values, until_now: FusionNumbers
) -> FusionNumbers:
    """The weights, and what their sum means by all queries."""
    probable = calibrated([as_searches(found)], weights, _meaning(until_now))
    return replace(
        until_now,
        weights=dict(zip(FEATURES, weights.tolist(), strict=True)),
        slope=round(probable.slope, 3),
        intercept=round(probable.intercept, 3),
    )


def _meaning(numbers: FusionNumbers) -> Probability:
    return Probability(*(getattr(numbers, name) for name in Probability.__struct_fields__))
