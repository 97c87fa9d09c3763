"""Where one memory stands in each leg, however far down, and which query words it holds.

Boundary: keyed hashes, vectors and the caller's own words; opens nothing.
"""

from __future__ import annotations

import numpy as np

from memory_store.index.terms import coverage, has_term
from memory_store.records.explanation import LegPlace, WordsHeld
from memory_store.search.candidates import LegList
from memory_store.search.context import SearchContext
from memory_store.search.explain.account import Search
from memory_store.search.explain.words import list_name
from memory_store.search.legs.retrieval import fetch
from memory_store.search.query.analysis import Analysis

_ON_WHAT = {
    "keyword": "BM25",
    "vector": "cosine",
    "topic": "share of the words that are its topics",
}


def leg_places(search: Search, ordinal: int) -> tuple[LegPlace, ...]:
    """For each list: the memory's ``rank`` and ``score`` there, how many were ``taken``, and the
    ``last_score`` of those. A rank of ``None`` comes with ``because``.

    Runs the legs once more, over everything: as slow as a search of the whole vault.
    """
    context, plan = search.context, search.plan
    everything = dict.fromkeys(plan.legs, max(1, context.snapshot.size))
    whole = fetch(search.analysis, context, plan.recipe, plan.legs, everything)
    own = context.indexed_with[context.snapshot.collection(ordinal)].fingerprint
    taken = {(one.leg, one.kind): one for one in search.fetched.lists if one.model in ("", own)}
    lists = [one for one in whole.lists if one.model in ("", own)]  # others cannot hold it
    places = [_place(search, one, taken.get((one.leg, one.kind)), ordinal) for one in lists]
    missing = [leg for leg in plan.legs if leg not in {one.leg for one in lists}]
    nothing = LegList("", (), ())
    return (*places, *(_unranked(search, leg, "original", nothing, ordinal) for leg in missing))


def leg_sentence(place: LegPlace) -> str:
    """One leg's place in words."""
    leg = list_name(place.leg, place.kind)
    if place.rank is None:
        return f"{leg}: {place.because}"
    figures = f"{_ON_WHAT[place.leg]} {place.score:.3g}"
    if place.rank <= place.taken:
        return f"{leg}: place {place.rank} ({figures})"
    return (
        f"{leg}: place {place.rank} ({figures}), and the first {place.taken} are taken "
        f"(the last has {place.last_score:.3g})"
    )


def words_held(context: SearchContext, analysis: Analysis, ordinal: int) -> tuple[WordsHeld, float]:
    """Which of the query's words the sealed memory holds, in any inflection, and their share of
    the query by rarity (0–1)."""
    snapshot = context.snapshot
    held: dict[str, bool] = {}
    # The groups after those of the words stand for parts of names, in code.
    for word, group in zip(analysis.keywords, analysis.groups, strict=False):
        held.setdefault(word, bool(has_term(snapshot, group)[ordinal]))
    share = coverage(snapshot, analysis.groups, np.array([ordinal]))[0] if held else 0.0
    words = WordsHeld(
        held=tuple(word for word, found in held.items() if found),
        missing=tuple(word for word, found in held.items() if not found),
    )
    return words, round(float(share), 4)


def _place(search: Search, whole: LegList, taken: LegList | None, ordinal: int) -> LegPlace:
    tags = search.context.snapshot.content_tags
    order = np.array(whole.ordinals, dtype=np.intp)
    same = np.flatnonzero((tags[order] == tags[ordinal]).all(axis=1))
    if not len(same):
        return _unranked(search, whole.leg, whole.kind, taken, ordinal)
    place = int(same[0])
    score = round(whole.scores[place], 4)
    return LegPlace(whole.leg, whole.kind, place + 1, score, *_taken(taken))


def _unranked(search: Search, leg: str, kind: str, taken: LegList | None, ordinal: int) -> LegPlace:
    because = _absence(search, leg, ordinal)
    return LegPlace(leg, kind, None, None, *_taken(taken), because)


def _taken(taken: LegList | None) -> tuple[int, float | None]:
    """How many went on, and the score of the last of them."""
    scores = taken.scores if taken is not None else ()
    return len(scores), round(scores[-1], 4) if scores else None


def _absence(search: Search, leg: str, ordinal: int) -> str:
    """Why a leg does not have the memory at all."""
    if leg == "keyword":
        return "it holds none of the words"
    if leg == "topic":
        return "it carries none of the query's words as a topic"
    if not search.context.snapshot.windows(ordinal):
        return "it has no vector yet"
    return "not searched" if search.fetched.of("vector") is None else "not near"
