"""Learned fusion: the evidence for a memory, weighed, is the probability that it is an answer.

The numbers are in ``default_weights.json`` beside this module, with where they come from; ``make
tuning`` makes them again. Each model has its own; one without uses those of MiniLM. A vault may
have others, fitted to its owner's judgements.

Boundary: works on numbers alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memory_store.records.fusion import FusionNumbers
from memory_store.search.fusion.evidence import FEATURES, HELD, PAIRS, Evidence
from memory_store.search.query.plan import Search

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILE = Path(__file__).with_name("default_weights.json")
USUAL = "all-MiniLM-L6-v2"
HELD_ALONE = 0.5
"""Of what the share of the query's words counts beside vectors, it counts this by words alone. On
the eleven sets without vectors, the mean nDCG@10 is .6185 with 1, .6236 with .5, .6234 with .25."""
STRANGE = 1.5
"""Of the logarithm of the odds of all that a query finds whose words nothing holds and no model
knows, as those of noise. Of 980 queries of random syllables on eleven sets the best result had .46
at most, and 84 had more than .2; of 124 judged questions of this kind, one was answered first."""
FUNCTION_WORDS = 9.0
"""Of the logarithm of the odds of what a query finds of words such as *how* alone, where no vector
says more: rare as one may be in a small vault, it says nothing. Without it *how* finds a third of
the demo's notes with .88, and *how we* the one note of some that begins so with .999."""
A_PHRASE = 4
"""Function words from which those that stand side by side in a memory as in the query are one: *to
be or not to be*."""
MOST_LOG_ODDS = 30.0  # beyond, a float64 shows no difference to certainty


class _File(Struct, frozen=True):
    about: str
    models: Mapping[str, FusionNumbers]


@cache
def _file() -> _File:
    return msgspec.json.decode(FILE.read_bytes(), type=_File)


def as_learned(search: Search) -> Search:
    """The search, by places where it is for more than the query as typed.

    Learned fusion was never shown other wordings of a query, feedback, or a memory that others are
    to be like.
    """
    asked, recipe = search.analysis, search.recipe
    if not (recipe.learned and (asked.like or asked.parsed.variants or recipe.feedback)):
        return search
    return replace(search, plan=replace(search.plan, recipe=replace(recipe, learned=False)))


def short_name(model: str) -> str:
    """The last part of a model's name, by which its numbers go."""
    return model.rsplit("/", 1)[-1]


def numbers_for(model: str) -> FusionNumbers:
    """The numbers for an embedding model: its own, or the usual ones."""
    known = _file().models
    return known.get(short_name(model), known[USUAL])


def numbers_of(found: Evidence) -> FusionNumbers:
    """The numbers that weigh this evidence: those fitted in its vault, or those of its model."""
    return found.fitted or numbers_for(found.model)


def column(weights: Mapping[str, float]) -> NDArray[np.float64]:
    """``weights`` in the order of the features; 0 where one is not named."""
    return np.array([weights.get(feature, 0.0) for feature in FEATURES])


def probabilities(found: Evidence) -> NDArray[np.float64]:
    """float64 [n]: the probability of each candidate that it is an answer."""
    odds = contributions(found).sum(axis=1) + constants(found) + leads(found)
    odds = np.clip(odds, -MOST_LOG_ODDS, MOST_LOG_ODDS)
    probable: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-odds))
    return probable


def contributions(found: Evidence) -> NDArray[np.float64]:
    """float64 [n, features]: what each feature adds to the logarithm of a candidate's odds."""
    numbers = numbers_of(found)
    slope = numbers.slope + numbers.unread_slope * _unread(found)
    return weighable(found) * column(numbers.weights) * slope[:, None]


def weighable(found: Evidence) -> NDArray[np.float64]:
    """float64 [n, features]: the features as the weights are made for.

    Where vectors say nothing, words speak by how rare and how many they are, as in BM25, and the
    share that a memory holds counts for less.
    """
    features = found.features.copy()
    features[:, FEATURES.index(HELD)] *= HELD_ALONE + (1.0 - HELD_ALONE) * _read(found)
    return features


def constants(found: Evidence) -> NDArray[np.float64]:
    """float64 [n]: what counts besides the features."""
    numbers = numbers_of(found)
    odds = numbers.intercept + numbers.unread * _unread(found) - STRANGE * found.strange
    if found.function_words:
        phrase = (found.features[:, PAIRS] == 1.0) & (found.function_words >= A_PHRASE)
        odds = odds - FUNCTION_WORDS * ((found.compared_by == 0) & ~phrase)
    return odds


def leads(found: Evidence) -> NDArray[np.float64]:
    """float64 [n]: what it counts how far each candidate is ahead of the others."""
    numbers = numbers_of(found)
    worth = numbers.ahead + numbers.unread_ahead * (1.0 - _read(found))
    return worth * ahead(weighable(found) @ column(numbers.weights))


def ahead(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far each of ``scores`` [n] lies above the best of the others, or below; one alone is
    ahead of nothing found: 0."""
    others = np.full(len(scores), max(scores, default=0.0))
    if len(scores):
        others[np.argmax(scores)] = np.partition(scores, -2)[-2] if len(scores) > 1 else 0.0
    found: NDArray[np.float64] = scores - others
    return found


def _read(found: Evidence) -> NDArray[np.float64]:
    """float64 [n]: how well the model that compared each reads; the best one where none did."""
    return np.array([found.best_read, *found.read])[found.compared_by]


def _unread(found: Evidence) -> NDArray[np.float64]:
    """float64 [n]: how little vectors say of each (0-1). Of a candidate that no vector was compared
    with they say nothing, whatever they say of others."""
    return 1.0 - np.where(found.compared_by > 0, _read(found), 0.0)
