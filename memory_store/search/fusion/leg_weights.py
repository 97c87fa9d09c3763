"""What each leg counts for in fusion: a weak leg must not drag a strong one down.

Boundary: works on ordinals, languages and the recipe's numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from memory_store.search.candidates import Fetched, QueryModel
from memory_store.search.query.plan import Search
from memory_store.search.recipes import Recipe

AGREEMENT_DEPTH = 10  # how far down two legs are compared


class LegEvidence(Struct, frozen=True):
    """What is known about the legs before they are weighed.

    ``embedder_languages`` empty means: every language, or not known. ``agreement`` is the share
    of the first results that keywords and vectors have in common (0–1), ``None`` when one of
    them returned nothing.
    """

    query_language: str
    embedder_languages: frozenset[str] = frozenset()
    agreement: float | None = None
    symbol_like: bool = False


def _evidence(fetched: Fetched, search: Search, model: QueryModel | None) -> LegEvidence:
    """What lists and query say about the legs, the vectors being ``model``'s.

    A model is held against the keyword leg where both searched.
    """
    keyword = fetched.of("keyword")
    vector = fetched.of("vector", model.scope.model if model else "")
    shared = None
    if keyword is not None and vector is not None:
        ordinals = keyword.ordinals
        if model is not None and not model.scope.whole:
            within = model.scope.mask
            ordinals = tuple(ordinal for ordinal in ordinals if within[ordinal])
        shared = agreement(ordinals, vector.ordinals)
    return LegEvidence(
        query_language=search.analysis.language,
        embedder_languages=_languages(model) if model else frozenset(),
        agreement=shared,
        symbol_like=search.analysis.symbol_like,
    )


def _languages(model: QueryModel) -> frozenset[str]:
    from memory_store.models.embedder import languages_of  # where there is a model, it is loaded

    return languages_of(model.embedder)


def agreement(first: Sequence[int], second: Sequence[int]) -> float | None:
    """The share of two lists' first ten that is common to both; ``None`` if one is empty."""
    if not first or not second:
        return None
    heads = set(first[:AGREEMENT_DEPTH]), set(second[:AGREEMENT_DEPTH])
    return len(heads[0] & heads[1]) / min(len(heads[0]), len(heads[1]))


def leg_factors(recipe: Recipe, evidence: LegEvidence) -> dict[str, dict[str, float]]:
    """What each leg's weight is the product of, by the reason for each factor.

    A weak leg must not drag a strong one down.
    The recipe's own weights; prx's α by kind of query; the vector leg less when its model does
    not know the query's language, and less the less it agrees with the keyword leg.
    """
    factors = {leg: {"recipe": recipe.leg_weight(leg)} for leg in recipe.legs}
    alpha = recipe.symbol_alpha if evidence.symbol_like else recipe.text_alpha
    if alpha is not None:
        asked = "for a symbol" if evidence.symbol_like else "for words"
        factors |= {"vector": {asked: alpha}, "keyword": {asked: 1.0 - alpha}}
    if "vector" in factors and "keyword" in factors:
        known = evidence.embedder_languages
        if known and evidence.query_language not in known:
            factors["vector"]["language unknown to the model"] = recipe.foreign_vector_weight
        if evidence.agreement is not None:
            low = recipe.disagreement_weight
            factors["vector"]["agreement"] = low + (1.0 - low) * evidence.agreement
    return factors


def all_factors(fetched: Fetched, search: Search) -> dict[str, dict[str, float]]:
    """The legs' factors, those of the vector leg for each model as if it were the only one."""
    first, *others = fetched.models or (None,)
    factors = leg_factors(search.recipe, _evidence(fetched, search, first))
    names = vector_names(fetched)
    for model in others:
        own = leg_factors(search.recipe, _evidence(fetched, search, model))
        factors[names[model.scope.model]] = own["vector"]
    return factors


def vector_names(fetched: Fetched) -> dict[str, str]:
    """Fingerprint → what the vector leg is called for that model: ``vector``, ``vector (2)`` …"""
    return {
        model.scope.model: "vector" if number == 1 else f"vector ({number})"
        for number, model in enumerate(fetched.models, start=1)
    }
