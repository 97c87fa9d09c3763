"""Fits learned fusion's numbers: weights of features by what they rank, then the probability.

Weights: coordinate ascent on the mean over sets of a measure at 10, each set as a share of the best
that keyword leg, vector leg or equal RRF reach there. What is missing to that best counts twice: no
set should lose by it. Probability: logistic regression on the first
20 of each search, each set counting the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from memory_store.search.fusion.evidence import FEATURES, HELD, MEANING, RESEMBLANCE
from memory_store.search.fusion.learned import HELD_ALONE, ahead

Values = npt.NDArray[np.float64]

DEPTH = 10
DISCOUNTS = 1.0 / np.log2(np.arange(2, DEPTH + 2))
SCALES = np.array([1.0, 1.0, 1.0, 0.15, 0.5, 1.0, 1.0])  # what a step of 1 is for each feature
START = np.array([0.5, 0.1, 0.7, 0.15, 0.0, 0.4, 0.4])
STEPS = (-1.0, -0.5, -0.25, -0.1, 0.1, 0.25, 0.5, 1.0)
ROUNDS = 3  # each with steps half as long
WORTH = 5e-4  # what a step must gain: with 1e-4 a set that is left out may lose .008 by chance
READ = 20  # of each search, for the probability
RIDGE = 1e-3
CLOSE = 1e-9  # a step of Newton's method that changes nothing
BINS = 10
UNANSWERED = 0.75  # what a set's queries without an answer count beside those that have one


class Results(NamedTuple):
    """Results of searches, float64 [results] each: their scores, 1 − how well the model reads, how
    far they are ahead of the others of their search, and 1.0 where they are relevant."""

    scores: Values
    unread: Values
    ahead: Values
    relevant: Values


class Searches(Struct, frozen=True, eq=False):
    """The searches of one set, padded to the longest list.

    ``features`` float32 [searches, n, features] as they are weighed, ``grades`` float64 [searches,
    n], below 0 where there is no candidate; ``ideal`` the best discounted gain and ``relevant`` how
    many there are, float64 [searches]; ``read`` how well the model reads, float64 [searches].
    ``best_leg`` is what the best of legs and equal RRF reaches. ``by_recall``: measured by
    Recall@10, else by nDCG@10.
    """

    name: str
    features: npt.NDArray[np.float32]
    grades: Values
    ideal: Values
    relevant: Values
    read: Values
    best_leg: float
    by_recall: bool

    def scores(self, weights: Values) -> Values:
        """float64 [searches, n]: far below 0 where there is no candidate."""
        missing = np.where(self.grades < 0, -1e9, 0.0)
        return np.asarray(self.features @ weights.astype(np.float32) + missing, np.float64)

    def values(self, scores: Values) -> Values:
        """float64 [searches]: the measure of each."""
        gains = np.maximum(self._first(scores, DEPTH), 0.0)
        if self.by_recall:
            recall: Values = (gains > 0).sum(1) / self.relevant
            return recall
        ndcg: Values = (gains * DISCOUNTS[: gains.shape[1]]).sum(1) / self.ideal
        return ndcg

    def reached(self, scores: Values) -> float:
        """The mean of the measure."""
        return float(self.values(scores).mean())

    def first(self, weights: Values, depth: int) -> Results:
        """The first of each search."""
        scores = self.scores(weights)
        grades = self._first(scores, depth)
        best = -np.sort(-scores, axis=1, kind="stable")[:, : grades.shape[1]]
        unread = np.repeat(1.0 - self.read[:, None], grades.shape[1], axis=1)
        there = grades >= 0
        leads = [ahead(row[some]) for row, some in zip(best, there, strict=True)]
        relevant = (grades[there] > 0).astype(np.float64)
        return Results(best[there], unread[there], np.concatenate(leads), relevant)

    def by_words_alone(self) -> Searches:
        """The same, had nothing vectors."""
        features = self.features.copy()
        features[:, :, [MEANING, RESEMBLANCE]] = 0.0
        held = HELD_ALONE + (1.0 - HELD_ALONE) * self.read
        features[:, :, FEATURES.index(HELD)] *= HELD_ALONE / held[:, None]
        return replace(self, features=features, read=np.zeros_like(self.read))

    def _first(self, scores: Values, depth: int) -> Values:
        depth = min(depth, scores.shape[1])
        first = np.argpartition(-scores, depth - 1, axis=1)[:, :depth]
        order = np.argsort(-np.take_along_axis(scores, first, 1), axis=1, kind="stable")
        found: Values = np.take_along_axis(self.grades, np.take_along_axis(first, order, 1), 1)
        return found


class Probability(Struct, frozen=True):
    """Score → log odds, as :class:`memory_store.records.fusion.FusionNumbers` says."""

    slope: float
    intercept: float
    unread: float
    unread_slope: float
    ahead: float
    unread_ahead: float

    def of(self, found: Results) -> Values:
        odds = self.slope * found.scores + self.intercept + self.besides(found)
        probable: Values = np.exp(-np.logaddexp(0.0, -odds))
        return probable

    def besides(self, found: Results) -> Values:
        """What is added for words alone and for being ahead."""
        words_alone = (self.unread + self.unread_slope * found.scores) * found.unread
        return words_alone + (self.ahead + self.unread_ahead * found.unread) * found.ahead


def fitted(sets: Sequence[Searches], start: Values = START) -> Values:
    """The weights [features] that are best on the mean of the sets, in thousandths."""
    weights = start.copy()
    scores = [one.scores(weights) for one in sets]
    best = _mean(sets, scores)
    for turn in range(ROUNDS):
        before = best
        for feature, scale in enumerate(SCALES):
            tried = [weights[feature] + step * scale / 2**turn for step in STEPS]
            for value in (*tried, 0.0):
                change = value - weights[feature]
                if not change or value < 0:
                    continue
                moved = [
                    found + np.float32(change) * one.features[:, :, feature]
                    for one, found in zip(sets, scores, strict=True)
                ]
                reached = _mean(sets, moved)
                if reached > best + WORTH:
                    best, scores = reached, moved
                    weights[feature] = value
        if best - before < WORTH:
            break
    return np.round(weights, 4)


def _mean(sets: Sequence[Searches], scores: Sequence[Values]) -> float:
    found = zip(sets, scores, strict=True)
    shares = np.array([one.reached(score) / one.best_leg for one, score in found])
    return float(np.mean(shares - np.maximum(0.0, 1.0 - shares)))


def calibrated(
    sets: Sequence[Searches],
    weights: Values,
    known: Probability | None = None,
    unanswered: Sequence[Searches] = (),
) -> Probability:
    """Logistic regression by Newton's method, each set counting the same.

    ``unanswered`` are searches for what the sets do not hold: all judged queries have answers.

    What the score means by words alone is learned from each set as if it had no vectors, beside
    the set as it is. That, and what being ahead means, is as ``known``, where that is given: one
    collection cannot show what it should be.
    """
    counted = [*((one, 1.0) for one in sets), *((one, UNANSWERED) for one in unanswered)]
    if known is None:
        counted += [(one.by_words_alone(), count) for one, count in counted if one.read.any()]
    firsts = [(one.first(weights, READ), count) for one, count in counted]
    parts = [(one, count / len(one.scores)) for one, count in firsts if len(one.scores)]
    matter = np.concatenate([np.full(len(one.scores), each) for one, each in parts])
    matter *= len(matter) / matter.sum()
    every = Results(*map(np.concatenate, zip(*(one for one, _ in parts), strict=True)))
    x = np.column_stack([every.scores, np.ones_like(every.scores)])
    if known is not None:
        given = known.besides(every)
    else:
        given, lacking = np.zeros(len(x)), every.unread
        more = (lacking, lacking * every.scores, every.ahead, lacking * every.ahead)
        x = np.column_stack([x, *more])
    per_score, intercept, *others = _logistic(x, every.relevant, matter, given).tolist()
    if known is not None:
        return replace(known, slope=per_score, intercept=intercept)
    return Probability(per_score, intercept, *others)


def _logistic(x: Values, relevant: Values, matter: Values, given: Values) -> Values:
    """The numbers [columns] that, times ``x``, make the odds of ``relevant`` beside ``given``.

    A step that does not make them likelier is halved: from afar, Newton's method leaps away.
    """

    def unlikely(numbers: Values) -> float:
        odds = x @ numbers + given
        loss = matter @ (np.logaddexp(0.0, odds) - relevant * odds)
        return float(loss + RIDGE / 2 * (numbers @ numbers))

    found = np.zeros(x.shape[1])
    for _ in range(50):
        odds = np.exp(-np.logaddexp(0.0, -(x @ found + given)))
        slope = x.T @ (matter * (relevant - odds)) - RIDGE * found
        bend = (x * (matter * odds * (1.0 - odds))[:, None]).T @ x + RIDGE * np.eye(len(found))
        step = np.linalg.solve(bend, slope)
        while unlikely(found + step) > unlikely(found) and np.abs(step).max() >= CLOSE:
            step /= 2.0
        found += step
        if np.abs(step).max() < CLOSE:
            break
    return found


def reliability(probable: Values, relevant: Values) -> list[tuple[float, float, int]]:
    """By tenths of probability: the mean that was said, the share that is relevant, how many."""
    tenth = np.minimum((probable * BINS).astype(int), BINS - 1)
    return [
        (float(probable[here].mean()), float(relevant[here].mean()), int(here.sum()))
        for here in (tenth == number for number in range(BINS))
        if here.any()
    ]


def calibration_error(probable: Values, relevant: Values) -> float:
    """The expected calibration error: the mean over results of |said − true| of their tenth."""
    tenths = reliability(probable, relevant)
    return sum(abs(said - true) * count for said, true, count in tenths) / max(len(probable), 1)
