"""Evidence: what the sealed index says of each candidate, in numbers that learned fusion weighs.

Keywords say how well a memory matches the query's words, vectors how near it is in meaning and how
far that stands out. A candidate that one leg missed is looked up for it, so that no number is
missing for want of a place in a list.

Boundary: works on keyed hashes, vectors and ordinals; opens nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from memory_store.index.numpy_vectors import best_cosines, sampled_cosines
from memory_store.index.terms import covered, most_possible, pairs_held
from memory_store.models.embedder import languages_of, usual_cosines
from memory_store.models.readability import knows, readability, readability_in, reads
from memory_store.search.candidates import AS_CODE, Fetched, LegList, QueryModel
from memory_store.search.legs.neighbours import lifted_coverage, neighbours_for
from memory_store.search.query.plan import Search
from memory_store.text.language import shows_a_language
from memory_store.text.tokens import is_stop_word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memory_store.index.snapshot import Snapshot
    from memory_store.records.fusion import FusionNumbers

    Ordinals = NDArray[np.int32]
    Values = NDArray[np.float64]

HELD = "words held"
ALIKE = "the search as a whole"  # what counts alike for all that the same model has read
AHEAD = "ahead of the others"
FEATURES = (
    "words of the best possible",  # BM25 ÷ what no memory could exceed for these words
    "words of the best found",  # BM25 ÷ the best memory's
    HELD,  # share (0-1) of the query's words, by how rare they are
    "meaning",  # cosine, in standard deviations above the collection's windows, to the 1.25
    "words side by side",  # share (0-1) of the query's neighbouring words that are so in it
    "topics",  # share (0-1) of the query's words that are its topics
    "like the first",  # mean cosine to the two that come first by all others; 0: the usual one
)
"""The columns, in order. ``meaning`` and ``like the first`` are multiplied by how well the model
reads what is compared."""
LEG_OF_FEATURE = ("keyword", "keyword", "keyword", "vector", "keyword", "topic", "vector")
WORDS, MEANING, PAIRS, TOPICS, RESEMBLANCE = slice(0, 3), 3, 4, 5, 6

NO_MODEL, NO_SHARES = np.zeros(0, np.int8), np.zeros(0)
MOST_FOR_PAIRS = 50_000
"""Memories of a vault up to which neighbouring words count. They are two fifths of an index, opened
by the first search that asks: 6 MB and 20 ms for 5,000 abstracts."""
STANDING_OUT = 1.25
"""The power of the standard deviations by which a vector stands out: twice as far counts for more
than twice as much. With each set left out, 1.15 and 1.3 rank better than 1; this lies between."""
SAMPLE = 1_000  # windows that say what is usual for a query: z within 3 %
FEW = 60
"""Windows below which a collection does not tell by itself what is usual: of two, either stands out
by one. Those that are missing to it count as the model's usual ones."""
HALF = 0.5
"""Of 4,400 queries of random letters and syllables on eleven sets, 67 found a result above .2 where
all words had to be strange, 25 with more than half of them: nearly all single words that a memory
holds. One of 2,037 judged questions is of this kind; what it finds first is no answer."""
BY_CHANCE = 1
"""Words of noise that a memory holds by chance; of two or more the others may be names. Of 1,200
queries of noise on three sets as many find a result above .2 either way. Two words of a judged
question among three of noise find its answer first in .61 (the demo), .47 (DBpedia) and .20
(SciFact) of all, and say .17, .32, .28; .11, .14, .12 were they strange."""


class Evidence(Struct, frozen=True, eq=False):
    """``features`` (float64 [n, features]) of the candidates ``ordinals`` (int32 [n], ascending).

    ``model`` names the embedding model; empty where none embedded the query. ``read`` says how well
    each model reads what is compared (0-1; less where a part has no vectors yet), in the order in
    which the vector legs are named. ``compared_by`` (int8 [n]) is the number of the model that
    compared each; 0: none. ``fitted`` are numbers that the vault has of its own for ``model``.
    ``strange``: the query names no topic, and its words are *strange*: no memory holds them, and no
    model that embedded the query knows them. All of them are, or more than half of those of a query
    of which memories hold one word at most, and in which no small word and no script shows a
    language. ``function_words`` is how many words a query has that has no others, quotes nothing
    and names no topic; else 0. ``own_held`` (float64 [n]) is the share of the query's words that
    each candidate itself holds, where neighbours count; else empty.
    """

    ordinals: Ordinals
    features: Values
    model: str = ""
    read: tuple[float, ...] = ()
    compared_by: NDArray[np.int8] = NO_MODEL
    fitted: FusionNumbers | None = None
    own_held: Values = NO_SHARES
    strange: bool = False
    function_words: int = 0

    @property
    def best_read(self) -> float:
        """How well the best of the models reads; 0 where there are no vectors."""
        return max(self.read, default=0.0)


def evidence(fetched: Fetched, search: Search) -> Evidence:
    """The features of every memory that a leg lists for the query as typed, and has some.

    Of a query that its model does not read vectors name memories that nothing speaks for.
    """
    typed = [one for one in fetched.lists if one.kind in ("original", AS_CODE)]
    found = set[int]().union(*(one.ordinals for one in typed))
    ordinals = np.sort(np.fromiter(found, np.int32, len(found)))
    features = np.zeros((len(ordinals), len(FEATURES)))
    if not len(ordinals):
        return Evidence(ordinals, features, read=(0.0,) * len(fetched.models))
    keyword, topic, own_held = fetched.of("keyword"), fetched.of("topic"), NO_SHARES
    if keyword is not None and keyword.matches is not None:
        features[:, WORDS], own_held = _by_words(keyword, ordinals, search)
    read, compared_by = [], np.zeros(len(ordinals), np.int8)
    for number, model in enumerate(fetched.models, start=1):
        listed, own = fetched.of("vector", model.scope.model), 0.0
        if listed is not None and model.query_vector is not None:
            own = _read(model, search) * _share_embedded(model, fetched.models, search)
        if own:
            assert listed is not None
            assert model.query_vector is not None
            above = _by_meaning(model, model.query_vector, listed, ordinals, search)
            features[:, MEANING] += own * np.nan_to_num(above)
            compared_by[~np.isnan(above)] = number
        read.append(own)
    above_usual = features[:, MEANING]
    features[:, MEANING] = np.sign(above_usual) * np.abs(above_usual) ** STANDING_OUT
    pairs = search.analysis.pairs
    if pairs and search.snapshot.total <= MOST_FOR_PAIRS:
        features[:, PAIRS] = pairs_held(search.snapshot, pairs)[ordinals] / len(pairs)
    if topic is not None:
        named = np.zeros(search.snapshot.size)
        named[list(topic.ordinals)] = topic.strengths
        features[:, TOPICS] = named[ordinals]
    name = fetched.models[0].embedder.name if fetched.models else ""
    fitted = search.context.fitted.get(name)
    some = features.any(axis=1)
    return Evidence(
        ordinals[some],
        features[some],
        name,
        tuple(read),
        compared_by[some],
        fitted,
        own_held[some] if len(own_held) else own_held,
        _strange(fetched, search),
        _function_words(fetched, search),
    )


def _function_words(fetched: Fetched, search: Search) -> int:
    asked, topic = search.analysis, fetched.of("topic")
    if asked.parsed.required or (topic is not None and topic.ordinals):
        return 0
    alone = all(is_stop_word(word, asked.language) for word in asked.keywords)
    return len(asked.keywords) if alone else 0


def _strange(fetched: Fetched, search: Search) -> bool:
    keyword, topic = fetched.of("keyword"), fetched.of("topic")
    if keyword is None or keyword.matches is None or not fetched.models:
        return False
    if topic is not None and topic.ordinals:
        return False
    asked, embedders = search.analysis, [one.embedder for one in fetched.models]
    held, held_names = np.split(np.array(keyword.matches.frequencies) > 0, [len(asked.keywords)])
    strange = sum(
        not there and not any(knows(one, word) for one in embedders)
        for word, there in zip(asked.keywords, held, strict=True)
    )
    if strange == len(asked.keywords):
        return not held_names.any()
    known = {word.casefold() for word, there in zip(asked.keywords, held, strict=True) if there}
    by_chance = strange > HALF * len(asked.keywords) and len(known) <= BY_CHANCE
    return by_chance and not shows_a_language(asked.parsed.text)


def _by_words(keyword: LegList, ordinals: Ordinals, search: Search) -> tuple[Values, Values]:
    """[n, 3]: the features of the keyword leg that are no places; and [n], where neighbours count,
    the share of the query that each holds without them."""
    matches, every, near = keyword.matches, keyword.every, neighbours_for(search)
    assert matches is not None
    assert every is not None
    scores = np.zeros(search.snapshot.size)
    scores[every.ordinals] = every.scores
    own = scores[ordinals]
    possible = most_possible(matches, search.recipe.k1) or 1.0
    own_held = NO_SHARES
    if near is None:
        held = covered(search.snapshot, matches, ordinals)
    else:
        own_held, held = lifted_coverage(matches, ordinals, near, search)
    best = every.scores.max(initial=0.0) or 1.0
    return np.column_stack([own / possible, own / best, held]), own_held


def _by_meaning(
    model: QueryModel,
    query: NDArray[np.float32],
    listed: LegList,
    ordinals: Ordinals,
    search: Search,
) -> Values:
    """[n]: how far one model's cosines stand out; NaN for candidates without its vectors, and in a
    language that it does not read."""
    scope, snapshot = model.scope, search.snapshot
    read = np.array([reads(model.embedder, one) for one in snapshot.languages], np.bool_)
    own = read[snapshot.language_codes[ordinals]]
    if not scope.whole:
        own &= snapshot.visible(scope.collections)[ordinals]
    cosines = np.full(len(ordinals), np.nan)
    cosines[own] = _cosines(listed, query, ordinals[own], scope.snapshot, search)
    middle, spread = _usual_cosines(query, model)
    above: Values = (cosines - middle) / spread
    return above


def _read(model: QueryModel, search: Search) -> float:
    """How well the model reads the query, and the collections' languages but for those that it does
    not read at all, which it compares with nothing (0-1).

    A language that it reads by its letters alone, being made for others, counts by the recipe.
    """
    languages: Counter[str] = Counter()
    for collection in model.scope.collections:
        languages.update(search.snapshot.languages_in(collection))
    compared = {one: n for one, n in languages.items() if reads(model.embedder, one)}
    if not compared:
        return 0.0
    read = readability_in(model.embedder, compared)
    read *= readability(model.embedder, search.analysis.parsed.text)
    known = languages_of(model.embedder)
    foreign = known and search.analysis.language not in known
    return read * search.recipe.foreign_vector_weight if foreign else read


def _share_embedded(model: QueryModel, models: Sequence[QueryModel], search: Search) -> float:
    """The share (0-1) of the memories searched that have vectors, of any of the models: while a
    vault is still being embedded, what is near in meaning may be among those that have none."""
    snapshot = search.snapshot
    lacking = snapshot.worked_out("unembedded", snapshot.unembedded)
    for one in models:
        held = one.scope.snapshot
        lacking = lacking & held.worked_out("unembedded", held.unembedded)
    searched = search.analysis.mask
    if not model.scope.whole:
        searched = searched & snapshot.visible(model.scope.collections)
    there = int(searched.sum())
    return 1.0 - int((searched & lacking).sum()) / there if there else 1.0


def _cosines(
    listed: LegList,
    query: NDArray[np.float32],
    ordinals: Ordinals,
    snapshot: Snapshot,
    search: Search,
) -> Values:
    """Each candidate's cosine, neighbours counted; NaN for those without vectors in ``snapshot``,
    which has those of the model."""
    near = neighbours_for(search)
    cosines = np.full(snapshot.size, np.nan)
    if listed.compared is not None:
        cosines[listed.compared.ordinals] = listed.compared.similarities
    cosines[np.array(listed.ordinals, dtype=np.intp)] = listed.scores
    wanted = ordinals if near is None else near.around(ordinals)
    wanted = wanted[search.analysis.mask[wanted]]
    missed = wanted[np.isnan(cosines[wanted])]
    if len(missed):
        (cosines[missed],) = best_cosines(snapshot, missed, query)
    if near is None:
        return cosines[ordinals]
    return near.blended(cosines, search.recipe.neighbour_weights, ordinals)


def _usual_cosines(query: NDArray[np.float32], model: QueryModel) -> tuple[float, float]:
    """The mean and the standard deviation of the query's cosines with the collections' windows."""
    scope = model.scope
    cosines = sampled_cosines(scope.snapshot, query, scope.collections, SAMPLE)
    usual = usual_cosines(model.embedder)
    missing = max(0, FEW - len(cosines)) if usual else 0
    if len(cosines) + missing < 2:
        return 0.0, 1.0
    middle, spread = usual or (0.0, 0.0)
    mean = (cosines.sum() + missing * middle) / (len(cosines) + missing)
    squares = ((cosines - mean) ** 2).sum() + missing * (spread**2 + (middle - mean) ** 2)
    return float(mean), max(float(np.sqrt(squares / (len(cosines) + missing))), 0.01)
