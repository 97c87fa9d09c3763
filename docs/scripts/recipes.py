"""Writes the table of reference/recipes.md from memory_store/search/recipes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_store.search.recipes import RECIPES, Depth

SHOWN = {  # the numbers that tell recipes apart → what the name alone does not say
    "legs": "",
    "learned": "fusion by evidence, for a query as typed",
    "rrf_k": "",
    "keyword_depth": "candidates",
    "vector_depth": "candidates",
    "keyword_weight": "",
    "original_weight": "the query as typed",
    "variant_weight": "`lex:`, `vec:`",
    "pool": "what may be opened",
    "rerank": "",
    "rerank_depth": "",
    "rerank_text": "",
    "blending": "with fusion's score",
    "fusion_boosts": "",
    "rerank_boosts": "afterwards, up to 1",
    "demotions": "afterwards",
    "keyword_floor": "× share of words found",
    "score_floor": "calibrated scores",
    "expansion": "by a language model",
}
OFF_AT_ZERO = {"keyword_floor", "score_floor"}


def table() -> str:
    """A row for each number that is shown: what `default` has, and which recipes have another."""
    rows = ["| number | `default` | others |", "|---|---|---|"]
    for name, meaning in SHOWN.items():
        cells = {one: _shown(name, getattr(recipe, name)) for one, recipe in RECIPES.items()}
        usual = cells["default"]
        having: dict[str, list[str]] = {}
        for recipe, cell in cells.items():
            if cell != usual:
                having.setdefault(cell, []).append(recipe)
        others = "; ".join(f"{_named(those)}: {cell}" for cell, those in having.items())
        said = f"`{name}`: {meaning}" if meaning else f"`{name}`"
        rows.append(f"| {said} | {usual} | {others} |")
    return "\n".join(rows)


def _named(recipes: list[str]) -> str:
    return "all" if len(recipes) == len(RECIPES) - 1 else ", ".join(recipes)


def _shown(name: str, value: Any) -> str:
    if name == "pool" and value is None:
        return "all"
    if isinstance(value, Depth):
        if value.per_result:
            return f"× {value.per_result:g}"
        alike = value.standard == value.deep
        return f"{value.standard}" if alike else f"{value.standard}/{value.deep}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {factor:g}" for key, factor in value.items()) or "–"
    if isinstance(value, bool):
        return "yes" if value else "–"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "–"
    if isinstance(value, float | int):
        return "–" if value == 0 and name in OFF_AT_ZERO else f"{value:g}"
    return "–" if value is None else str(value)
