"""Reciprocal rank fusion: several ranked lists become one, by rank and never by score.

Boundary: works on ordinals, ranks and types. Nothing is opened left of the pool this cuts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from itertools import repeat
from operator import attrgetter, itemgetter, mul
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memory_store.records import base_type
from memory_store.search.candidates import (
    AS_CODE,
    Candidate,
    Fetched,
    Item,
    LegList,
    first_places,
)
from memory_store.search.fusion.evidence import Evidence
from memory_store.search.fusion.learned import probabilities
from memory_store.search.fusion.leg_weights import all_factors, vector_names
from memory_store.search.fusion.resemblance import whole_evidence
from memory_store.search.query.more_like_this import LIKE, Likeness
from memory_store.search.query.plan import Search
from memory_store.search.recipes import Recipe

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Fused(NamedTuple):
    """One candidate after fusion.

    ``score`` is the raw sum, ``share`` what it is of the best sum these lists could give: 0–1,
    and above 1 only by ``boost``, the type's factor, which is already in both.
    """

    ordinal: int
    score: float
    share: float
    boost: float = 1.0


class Merged(Struct, frozen=True, dict=True):
    """What fusion leaves: the ``pool``, best first, and all candidates in order, the pool's first.

    ``factors`` are what each leg's weight is the product of, by name; ``lists`` what was fused
    (one leg alone is not). ``evidence`` is what learned fusion weighed instead of places.
    """

    pool: tuple[Candidate, ...]
    ordered: tuple[Fused, ...]
    factors: Mapping[str, Mapping[str, float]]
    lists: tuple[LegList, ...] = ()
    evidence: Evidence | None = None

    @property
    def weights(self) -> dict[str, float]:
        """What the legs counted for this query."""
        return {leg: math.prod(factors.values()) for leg, factors in self.factors.items()}

    @cached_property
    def places(self) -> list[dict[int, int]]:
        """For each list, ordinal → its place there, from 0."""
        return [first_places(one.ordinals, range(len(one.ordinals))) for one in self.lists]


def rrf(
    lists: Sequence[Sequence[Item]],
    *,
    k: float = 60.0,
    weights: Sequence[float] | None = None,
    strengths: Sequence[Sequence[float]] | None = None,
    rank_offset: int = 1,
    first_bonus: float = 0.0,
    podium_bonus: float = 0.0,
) -> dict[Item, float]:
    """The reciprocal rank fusion score of every item: Σ weight ÷ (k + position + rank_offset).

    With ``strengths`` (a list per list, empty for 1) each term is multiplied by its own.
    Positions count from 0, so the usual formula over ranks from 1 is ``rank_offset=1``. An item
    that stands twice in a list counts once, at its better place. Bonuses (QMD) go by the best
    place in any list: first, or second and third. The answer keeps the order of first appearance.
    """
    scores: dict[Item, float] = {}
    best: dict[Item, int] = {}
    for index, ranked in enumerate(lists):
        weight = 1.0 if weights is None else weights[index]
        positions = range(len(ranked))
        if strengths is not None and strengths[index]:
            own = zip(strengths[index], positions, strict=True)
            terms = [weight * strength / (k + place + rank_offset) for strength, place in own]
        else:
            terms = [weight / (k + place + rank_offset) for place in positions]
        for item, term in first_places(ranked, terms).items():
            scores[item] = scores.get(item, 0.0) + term
        for item, position in first_places(ranked[:3], positions).items():
            best[item] = min(position, best.get(item, position))
    if first_bonus or podium_bonus:
        for item, position in best.items():
            scores[item] += podium_bonus if position else first_bonus
    return scores


def fuse(
    lists: Sequence[LegList],
    recipe: Recipe,
    *,
    types: Mapping[int, str],
    tie_break: Callable[[Sequence[int]], Mapping[int, tuple[int, ...]]],
) -> list[Fused]:
    """All candidates of all lists, best first, type boosts applied.

    ``types`` names each ordinal's type; ``tie_break`` is asked for what orders equal scores (the
    ids, as numbers), where there are any.
    """
    scores = rrf(
        [ranked.ordinals for ranked in lists],
        k=recipe.rrf_k,
        weights=[ranked.weight for ranked in lists],
        strengths=[ranked.strengths for ranked in lists],
        rank_offset=recipe.rank_offset,
        first_bonus=recipe.first_bonus,
        podium_bonus=recipe.podium_bonus,
    )
    best = best_possible(lists, recipe)
    kinds = set(types.values())
    boosts = {kind: recipe.fusion_boosts.get(base_type(kind), 1.0) for kind in kinds}
    factors = [boosts[types[ordinal]] for ordinal in scores]
    boosted = list(map(mul, scores.values(), factors))
    columns = zip(scores, boosted, [score / best for score in boosted], factors, strict=True)
    fused = list(map(tuple.__new__, repeat(Fused), columns))  # as in _on_own_scale
    if len(set(boosted)) == len(boosted):
        return sorted(fused, key=attrgetter("score"), reverse=True)
    ids = tie_break(list(scores))
    return sorted(fused, key=lambda one: (-one.score, ids[one.ordinal]))


def best_possible(lists: Sequence[LegList], recipe: Recipe) -> float:
    """The sum of a memory that stands first in every list, even in those that came back empty.

    Of the lists of several models it can stand in those of one.
    """
    first = recipe.rrf_k + recipe.rank_offset
    models = list(dict.fromkeys(ranked.model for ranked in lists if ranked.model)) or [""]
    weight = max(sum(one.weight for one in lists if one.model in ("", m)) for m in models)
    best = weight / first + recipe.first_bonus
    return best or 1.0


def merge(fetched: Fetched, search: Search, pool: int, reach: int = 0) -> Merged:
    """Fuse the lists, order the first ``pool`` and describe as many, or the first ``reach``.

    A search in one leg keeps that leg's order and scale; boosts belong to fusion.
    """
    recipe, snapshot = search.recipe, search.snapshot
    filled = [one for one in fetched.lists if one.ordinals]
    if search.plan.mode != "hybrid" or [one.leg for one in filled] == ["recent"]:
        ordered = _in_one_leg(filled, search)
        return Merged(_described(ordered[: reach or pool], filled, search), tuple(ordered), {})
    if recipe.learned:
        return _merged_by_evidence(fetched, search, pool, reach, filled)
    factors = all_factors(fetched, search)
    names = vector_names(fetched)
    lists = [_weighed(one, names.get(one.model, one.leg), recipe, factors) for one in fetched.lists]
    if search.analysis.like is not None:
        lists = _with_words_unknown(lists, search.analysis.like, search)
    seen = list({ordinal for one in lists for ordinal in one.ordinals})
    types = dict(zip(seen, snapshot.types_of(seen), strict=True))
    ordered = fuse(lists, recipe, types=types, tie_break=partial(_id_order, search))
    if recipe.fusion_scale == "range":
        ordered = _on_a_range(ordered)
    described = ordered
    if not recipe.boosts_order:
        # A boost brought some into the pool, and has no say in the order: RRF scores lie close
        # together, so that a factor of 1.4 would lift a summary from far down to the top, where
        # only a reranker's reading should put it.
        first = sorted(map(_without_boost, ordered[:pool]), key=lambda one: -one.score)
        described = [*first, *map(_without_boost, ordered[pool:reach])]
        ordered = [*first, *ordered[pool:]]
    pooled = _described(described[: reach or pool], filled, search)
    return Merged(pooled, tuple(ordered), factors, tuple(lists))


def _merged_by_evidence(
    fetched: Fetched, search: Search, pool: int, reach: int, filled: Sequence[LegList]
) -> Merged:
    """All candidates by their probability. What boosts a type brings it into the pool, no more."""
    found = whole_evidence(fetched, search)
    snapshot, ordinals = search.snapshot, found.ordinals
    probable = _handed_on(ordinals, probabilities(found), fetched, search)
    boosts = _type_boosts(ordinals, search)
    entering = probable if boosts is None else probable * boosts
    order = snapshot.best_first(ordinals, entering, len(ordinals))
    first = order[:pool]
    if boosts is not None:
        first = first[snapshot.best_first(ordinals[first], probable[first], len(first))]
    order = np.concatenate([first, order[pool:]])
    shares = probable[order].tolist()
    columns = zip(ordinals[order].tolist(), shares, shares, repeat(1.0), strict=False)
    ordered = tuple(map(tuple.__new__, repeat(Fused), columns))  # as in _on_own_scale
    described = ordered[: reach or pool]
    if boosts is not None:
        factors = boosts[order[: len(described)]].tolist()
        described = tuple(
            one._replace(boost=factor) for one, factor in zip(described, factors, strict=True)
        )
    return Merged(_described(described, filled, search), ordered, {}, tuple(fetched.lists), found)


def _handed_on(
    ordinals: NDArray[np.int32], probable: NDArray[np.float64], fetched: Fetched, search: Search
) -> NDArray[np.float64]:
    """The probabilities of code, handed on among code in the order of its own recipe.

    What is no code keeps its own, and so its place. Code that the recipe does not list comes after
    all that it lists.
    """
    listed = next((one for one in fetched.lists if one.kind == AS_CODE), None)
    if listed is None or listed.every is None or search.as_code is None:
        return probable
    rows = np.flatnonzero(search.as_code[ordinals])
    scores = np.zeros(search.snapshot.size)
    scores[listed.every.ordinals] = listed.every.scores
    order = np.lexsort((-probable[rows], -scores[ordinals[rows]]))
    handed = probable.copy()
    handed[rows[order]] = np.sort(probable[rows])[::-1]
    return handed


def _type_boosts(ordinals: NDArray[np.int32], search: Search) -> NDArray[np.float64] | None:
    """float64 [n]: the factor of each one's type; ``None`` where all are 1."""
    snapshot, factors = search.snapshot, search.recipe.fusion_boosts
    of_type = np.array([factors.get(base_type(kind), 1.0) for kind in snapshot.types] or [1.0])
    if (of_type == 1.0).all():
        return None
    boosts: NDArray[np.float64] = of_type[snapshot.type_codes[ordinals]]
    return None if (boosts == 1.0).all() else boosts


def _without_boost(one: Fused) -> Fused:
    if one.boost == 1.0:
        return one
    return one._replace(score=one.score / one.boost, share=one.share / one.boost)


def _weighed(
    one: LegList, leg: str, recipe: Recipe, factors: Mapping[str, Mapping[str, float]]
) -> LegList:
    """A leg's list with its leg's weight and its own; ``leg`` is what the leg is called.

    How much the strengths of its matches count is a power; 0: not at all.
    """
    powers = {
        "keyword": recipe.coverage_power,
        "topic": recipe.topic_power,
        "vector": recipe.similarity_power,
    }
    power = powers.get(one.leg, 0.0)

    def powered(strengths: Sequence[float]) -> tuple[float, ...]:
        return tuple(strength**power for strength in strengths) if power else ()

    return replace(
        one,
        leg=leg,
        weight=math.prod(factors.get(leg, {}).values()) * _share_of(one, recipe),
        strengths=powered(one.strengths),
        own_strengths=powered(one.own_strengths),
    )


def _with_words_unknown(lists: Sequence[LegList], like: Likeness, search: Search) -> list[LegList]:
    """The lists with meaning standing for words, too, where words cannot be compared.

    They cannot in other collections than the memory's own: a place by meaning then counts as if
    the place by words were the same. Else its own collection would fill the first places, however
    near others are.
    """
    words = sum(one.weight for one in lists if one.kind == LIKE and one.leg == "keyword")
    standing = []
    for one in lists:
        if one.kind == LIKE and one.leg.startswith("vector") and one.weight and words:
            elsewhere = 1.0 + words / one.weight
            own = search.snapshot.visible([like.collection])
            factors = [1.0 if own[ordinal] else elsewhere for ordinal in one.ordinals]
            strengths = one.strengths or (1.0,) * len(factors)
            one = replace(one, strengths=tuple(map(mul, strengths, factors)))
        standing.append(one)
    return standing


def _share_of(one: LegList, recipe: Recipe) -> float:
    if one.kind == LIKE and one.leg == "keyword":
        return recipe.original_weight * recipe.like_keyword_weight
    if one.kind in ("original", LIKE):
        return recipe.original_weight
    named = {"hyde": recipe.hyde_weight, "feedback": recipe.feedback_weight}
    return named.get(one.kind, recipe.variant_weight)


def _in_one_leg(lists: Sequence[LegList], search: Search) -> list[Fused]:
    """One leg by itself, each memory with its best score on the scale the recipe has for the leg.

    Several lists (of variants, or of several models, whose scores do not compare) are interleaved
    by rank; what they score stays what it is in a vault with one.
    """
    recipe = search.recipe
    ordered = [item for one in lists for item in _on_own_scale(one, recipe)]
    by_place = not recipe.leg_scores and all(one.leg != "recent" for one in lists)
    if by_place or len(lists) != 1:
        weights = [_share_of(one, recipe) for one in lists]
        places = rrf([one.ordinals for one in lists], k=recipe.rrf_k, weights=weights)
        if len(lists) != 1:
            ids = _id_order(search, list(places))
            by_score = sorted(ordered, key=attrgetter("score"), reverse=True)
            best = first_places([one.ordinal for one in by_score], by_score)
            ordered = sorted(
                best.values(), key=lambda one: (-places[one.ordinal], ids[one.ordinal])
            )
        if by_place:  # scores say the place and nothing else: the first one's is 1
            first = max(places.values(), default=1.0)
            shares = [places[one.ordinal] / first for one in ordered]
            return [Fused(one.ordinal, at, at) for one, at in zip(ordered, shares, strict=True)]
    by_range = recipe.keyword_scale == "range" and any(one.leg == "keyword" for one in lists)
    return _on_a_range(ordered) if by_range else ordered


def _id_order(search: Search, ordinals: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Ordinal → what sorts memories by the text of their ids."""
    words = search.snapshot.id_words[np.array(ordinals, dtype=np.intp)]
    return dict(zip(ordinals, map(tuple, words.tolist()), strict=True))


def _on_own_scale(one: LegList, recipe: Recipe) -> list[Fused]:
    """A leg's list with scores of 0–1; a place in time counts as nothing."""
    if one.leg == "keyword":
        shares = [score / (1.0 + score) for score in one.scores]  # QMD
    elif one.leg == "vector" and recipe.vector_scale == "distance":
        shares = [1.0 - (1.0 - score) / 2.0 for score in one.scores]  # cosine distance: 0 to 2
    else:
        shares = [max(0.0, min(score, 1.0)) for score in one.scores]
    columns = zip(one.ordinals, one.scores, shares, repeat(1.0), strict=False)
    # 256 a search: what Fused() itself does takes three times as long
    return list(map(tuple.__new__, repeat(Fused), columns))


def _on_a_range(ordered: Sequence[Fused]) -> list[Fused]:
    """Scores stretched over [0, 1] (GNO, "Score Normalization"): the best 1, the worst 0."""
    scores = [one.score for one in ordered]
    worst = min(scores, default=0.0)
    span = max(scores, default=0.0) - worst
    return [one._replace(share=(one.score - worst) / span if span else 1.0) for one in ordered]


def _described(
    ordered: Sequence[Fused], lists: Sequence[LegList], search: Search
) -> tuple[Candidate, ...]:
    """Fused items with what each leg knows of them."""
    snapshot, ordinals = search.snapshot, [item.ordinal for item in ordered]
    ranks = (_best_ranks(lists, leg) for leg in ("keyword", "topic", "vector"))
    near = list(map(_nearest(lists).get, ordinals))  # the cosine and the number of the window
    columns = zip(
        ordinals,
        snapshot.ids(ordinals),
        snapshot.types_of(ordinals),
        [min(1.0, item.share) for item in ordered],
        range(1, len(ordered) + 1),
        [item.boost for item in ordered],
        *(map(of_leg.get, ordinals) for of_leg in ranks),
        [one and one[0] for one in near],
        [one and one[1] for one in near],
        repeat(None, len(ordered)),
        repeat(None, len(ordered)),
        strict=True,
    )
    # 64 a search: what Candidate() itself does takes three times as long
    return tuple(map(tuple.__new__, repeat(Candidate), columns))


def _best_ranks(lists: Sequence[LegList], leg: str) -> dict[int, int]:
    """Ordinal → its best rank in the lists of a leg, from 1."""
    ranks: dict[int, int] = {}
    for one in lists:
        if one.leg == leg:
            found = first_places(one.ordinals, range(1, len(one.ordinals) + 1))
            ranks = found | {o: min(rank, found.get(o, rank)) for o, rank in ranks.items()}
    return ranks


def _nearest(lists: Sequence[LegList]) -> dict[int, tuple[float, int]]:
    """Ordinal → its best cosine, and the number of the window that has it."""
    nearest: dict[int, tuple[float, int]] = {}
    for one in lists:
        found = dict(zip(one.ordinals, zip(one.scores, one.windows, strict=False), strict=False))
        both = nearest.keys() & found.keys()
        nearest |= found | {o: max(nearest[o], found[o], key=itemgetter(0)) for o in both}
    return nearest
