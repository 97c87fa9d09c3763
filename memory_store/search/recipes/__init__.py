"""The recipes: every ranking as numbers and switches, one module for each system.

recipe   what a ranking can say
default  ours
code     ours, for source code
gnosis, gno, qmd, prx
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from memory_store.errors import BadInputError
from memory_store.search.recipes.code import CODE
from memory_store.search.recipes.default import DEFAULT
from memory_store.search.recipes.gno import GNO
from memory_store.search.recipes.gnosis import GNOSIS
from memory_store.search.recipes.prx import PRX
from memory_store.search.recipes.qmd import QMD
from memory_store.search.recipes.recipe import LEGS, Depth, Recipe, frozen

__all__ = [
    "CODE",
    "DEFAULT",
    "GNO",
    "GNOSIS",
    "LEGS",
    "PRX",
    "QMD",
    "RECIPES",
    "Depth",
    "Recipe",
    "by_places",
    "of_one_leg",
    "recipe_named",
]

RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {recipe.name: recipe for recipe in (DEFAULT, CODE, GNOSIS, GNO, QMD, PRX)}
)


def recipe_named(name: str) -> Recipe:
    """The recipe of that name; :class:`BadInputError` (parameter ``recipe``) if there is none."""
    if name not in RECIPES:
        raise BadInputError(
            f"recipe: {name!r} is not one of {', '.join(RECIPES)}", parameter="recipe"
        )
    return RECIPES[name]


_BY_RANK_ALONE: Mapping[str, Any] = {
    "learned": False,
    "neighbour_weights": (),
    "coverage_power": 0.0,
    "topic_power": 0.0,
    "similarity_power": 0.0,
}
"""No neighbours lift a match, and how strong it is in itself does not count."""

_NO_CODE_RULES: Mapping[str, Any] = {
    "definition_boost": 0.0,
    "symbol_boost": 0.0,
    "name_boost": 0.0,
    "file_boost": 0.0,
    "description_boost": 0.0,
    "path_factors": frozen({}),
}
"""Nothing that is known of source files counts."""


@cache
def of_one_leg(name: str) -> Recipe:
    """The recipe of that name for one leg by itself, without what fusion alone asks."""
    return replace(recipe_named(name), **_BY_RANK_ALONE)


def by_places(recipe: Recipe, *, types: bool) -> Recipe:
    """The same ranking from nothing but the places in the legs' lists, for those who may not read:
    similarities are the coordinates of a vector, asked for one by one.

    ``types``: whether they may know a memory's type, so that its factors may be seen.
    """
    plain = replace(recipe, **_BY_RANK_ALONE, strong_score=None, leg_scores=False)
    plain = replace(plain, **_NO_CODE_RULES)
    if types:
        return plain
    return replace(plain, fusion_boosts=frozen({}), demotions=frozen({}), done_penalty=1.0)
