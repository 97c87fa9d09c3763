"""Writes the table of reference/recipes.md from memory_store/search/recipes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_store.search.recipes import RECIPES, Depth, Recipe

MEANINGS = {  # what the name alone does not say
    "k1": "BM25",
    "b": "BM25",
    "title_weight": "of a word",
    "definition_boost": "source code: share of names that a file defines",
    "path_factors": "source code",
    "keyword_depth": "candidates",
    "topic_depth": "candidates",
    "vector_depth": "candidates",
    "variant_depth": "candidates, of feedback too",
    "over_fetch": "with several collections",
    "learned": "fusion by evidence, for a query as typed",
    "rank_offset": "added to places counted from 0",
    "original_weight": "the query as typed",
    "variant_weight": "`lex:`, `vec:`",
    "hyde_weight": "`hyde:`",
    "like_keyword_weight": "*more like this*",
    "first_bonus": "a first place in a list",
    "podium_bonus": "a second or third",
    "coverage_power": "keyword places × (share of the query's rarity held) to this power",
    "topic_power": "topic places × (share of the query's words that are topics) to this power",
    "similarity_power": "vector places × (cosine ÷ the best one's) to this power",
    "neighbour_weights": "in sequential collections",
    "symbol_alpha": "share of vectors, for queries like an identifier",
    "text_alpha": "share of vectors, for others",
    "foreign_vector_weight": "a language unknown to the model",
    "disagreement_weight": "vectors that share nothing with keywords",
    "boosts_order": "these decide the order in the pool, too",
    "fusion_scale": "share of the best possible sum, or of this query's range",
    "keyword_scale": "keyword mode: b ÷ (1 + b), or share of this query's range",
    "vector_scale": "vector mode: cosine, or 1 − distance ÷ 2",
    "leg_scores": "keyword and vector mode: by those scores",
    "pool": "what may be opened",
    "chunk_choice": "by vector, or with most keywords, also within words",
    "blending": "with fusion's score",
    "blend_fusion": "fusion's score then",
    "skip_below": "candidates, in a standard search",
    "unverified_demotion": "without a reranker: factors down to this power",
    "unverified_cap": "highest score without a reranker",
    "rerank_boosts": "afterwards, up to 1",
    "demotions": "afterwards",
    "keyword_floor": "× share of words found",
    "score_floor": "calibrated scores",
    "excellent": "band from",
    "good": "band from",
    "normalise": "scores stretched over 0–1 per query",
    "coherence": "files: the best of one with several in the pool",
    "definition_factor": "files: what defines a name of the query",
    "symbol_definition_factor": "… of a query like an identifier",
    "definition_stem_factor": "… in a file called so",
    "proximity": "files: few imports away from the first",
    "stem_boost": "files: keywords in the name of file and folder",
    "stem_share": "… from this share of the keywords on",
    "noise": "files, by kind",
    "saturation": "files: each further memory of one",
    "expansion": "by a language model",
    "strong_score": "a keyword match that makes expansion superfluous",
    "strong_gap": "… when this far above the second",
    "feedback": "from so many first results to the vectors",
    "feedback_beta": "… beside the query",
    "feedback_weight": "… of the list it finds",
}
OFF_AT_ZERO = {
    *("first_bonus", "podium_bonus", "skip_below", "keyword_floor", "score_floor", "coherence"),
    *("stem_boost", "stem_share", "feedback", "coverage_power", "topic_power", "similarity_power"),
}


def table() -> str:
    """A row for each number in which recipes differ; what `prx` alone has, its text says."""
    rows = ["| number | `default` | others |", "|---|---|---|"]
    for name in Recipe.__struct_fields__:
        if name != "name":
            cells = {one: _shown(name, getattr(recipe, name)) for one, recipe in RECIPES.items()}
            usual = cells["default"]
            if {one for one, cell in cells.items() if cell != usual} <= {"prx"}:
                continue
            having: dict[str, list[str]] = {}
            for recipe, cell in cells.items():
                if cell != usual:
                    having.setdefault(cell, []).append(recipe)
            others = "; ".join(f"{_named(those)}: {cell}" for cell, those in having.items())
            said = f"`{name}`: {MEANINGS[name]}" if name in MEANINGS else f"`{name}`"
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
