"""Recipes as data: named, complete, read by the stages.

What each of them is said to do, figure by figure, is in the tests of ``documents``.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import memory_store
from memory_store.errors import BadInputError
from memory_store.records import DEFAULT_LIMIT, LIMIT_STANDARD
from memory_store.search import recipes
from memory_store.search.recipes import DEFAULT, GNO, PRX, RECIPES, Depth, Recipe, recipe_named

PACKAGE = Path(memory_store.__file__).parent


def test_every_recipe_goes_by_its_name() -> None:
    assert set(RECIPES) == {"default", "code", "gnosis", "gno", "qmd", "prx"}
    assert all(recipe_named(name).name == name for name in RECIPES)
    assert set(DEFAULT.legs) == {"keyword", "topic", "vector"}
    assert DEFAULT_LIMIT <= LIMIT_STANDARD


def test_an_unknown_recipe_is_refused_with_what_there_is() -> None:
    with pytest.raises(BadInputError, match="gnosis") as refusal:
        recipe_named("google")
    assert refusal.value.parameter == "recipe"


def stages_read(name: str) -> bool:
    """Whether a module other than those of the recipes asks a recipe for ``name``."""
    read = re.compile(rf"\brecipe\.{name}\b")
    room = Path(recipes.__file__).parent
    paths = (path for path in PACKAGE.rglob("*.py") if room not in path.parents)
    return any(read.search(path.read_text("utf-8")) for path in paths)


ACCESSORS = {
    name: inspect.getsource(method)
    for name, method in vars(Recipe).items()
    if inspect.isfunction(method) and not name.startswith("_")
}
"""The methods that hand out a switch by the name of a leg, with their source."""


@pytest.mark.sampled(24)
@pytest.mark.parametrize("name", Recipe.__struct_fields__)
def test_every_switch_is_read_by_a_stage(name: str) -> None:
    """A switch that no stage reads would promise something."""
    handed = [
        accessor
        for accessor, source in ACCESSORS.items()
        if re.search(rf"\bself\.{name}\b", source)
    ]
    assert stages_read(name) or any(map(stages_read, handed))


def test_a_switch_that_only_recipes_name_is_read_by_no_stage() -> None:
    assert set(ACCESSORS) == {"leg_depth", "leg_weight"}
    assert not stages_read("keyword_weight")  # through leg_weight alone
    assert not stages_read("google_weight")


def test_recipes_cannot_be_changed_by_a_search() -> None:
    with pytest.raises(TypeError):
        PRX.noise["tests"] = 1.0  # type: ignore[index]
    with pytest.raises(AttributeError):
        GNO.rrf_k = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("depth", "limit", "deep", "number"),
    [
        (Depth(64, 256), 10, False, 64),
        (Depth(64, 256), 10, True, 256),
        (Depth(per_result=2), 10, True, 20),
        (Depth(per_result=0.1), 1, False, 1),
    ],
)
def test_a_depth_is_fixed_or_by_the_limit(
    depth: Depth, limit: int, deep: bool, number: int
) -> None:
    assert depth.of(limit, deep) == number


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=list(RECIPES))
def test_figures_are_in_range(recipe: Recipe) -> None:
    assert 0 < recipe.unverified_cap <= 1
    assert 0 <= recipe.score_floor <= recipe.keyword_floor <= 1
    assert 0 < recipe.saturation <= 1
    assert all(0 < factor <= 1 for factor in (*recipe.noise.values(), *recipe.demotions.values()))
    assert all(factor >= 1 for factor in recipe.fusion_boosts.values())
    assert (recipe.symbol_alpha is None) == (recipe.text_alpha is None)
    assert (recipe.strong_score is None) == (recipe.strong_gap is None)


def test_scores_of_a_blend_by_place_mean_nothing_for_another_query() -> None:
    assert {name for name, recipe in RECIPES.items() if recipe.is_comparable} >= {"gnosis"}
    assert not RECIPES["gno"].is_comparable
    assert not RECIPES["qmd"].is_comparable
