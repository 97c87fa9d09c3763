"""Writes the table of reference/recipes.md from memory_store/search/recipes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_store.search.recipes import RECIPES, Depth, Recipe

MEANINGS = {
    "legs": "legs",
    "k1": "BM25 k1",
    "b": "BM25 b",
    "title_weight": "weight of a word in the title",
    "definition_boost": "source code: more for the share of names that a file defines",
    "path_factors": "source code: factors on tests, examples and prose",
    "keyword_depth": "candidates of the keyword leg",
    "topic_depth": "candidates of the topic leg",
    "vector_depth": "candidates of the vector leg",
    "variant_depth": "candidates of each variant, and of feedback",
    "over_fetch": "over-fetch with several collections",
    "learned": "fusion by learned evidence, for a query as typed",
    "rrf_k": "fusion: k",
    "rank_offset": "fusion: added to places counted from 0",
    "keyword_weight": "weight of the keyword leg",
    "topic_weight": "weight of the topic leg",
    "vector_weight": "weight of the vector leg",
    "original_weight": "factor on the query as typed",
    "variant_weight": "factor on `lex:` and `vec:` variants",
    "hyde_weight": "factor on `hyde:` variants",
    "like_keyword_weight": "factor on the words of a memory, for *more like this*",
    "first_bonus": "bonus for a first place in a list",
    "podium_bonus": "bonus for a second or third place",
    "coverage_power": "keyword places × (share of the query's rarity held) to this power",
    "topic_power": "topic places × (share of the query's words that are topics) to this power",
    "similarity_power": "vector places × (cosine ÷ the best one's) to this power",
    "neighbour_weights": "weights of the memories before and after, in sequential collections",
    "symbol_alpha": "share of vectors, for queries like an identifier",
    "text_alpha": "share of vectors, for other queries",
    "foreign_vector_weight": "factor on vectors in a language unknown to the model",
    "disagreement_weight": "factor on vectors that share nothing with keywords",
    "fusion_boosts": "fusion: factors by type",
    "boosts_order": "these factors also decide the order in the pool",
    "fusion_scale": "fusion's score: share of the best possible sum, or of this query's range",
    "keyword_scale": "keyword mode: b ÷ (1 + b), or share of this query's range",
    "vector_scale": "vector mode: cosine, or 1 − distance ÷ 2",
    "leg_scores": "keyword and vector mode: by those scores, or by the place alone",
    "pool": "pool: what may be opened",
    "rerank": "a model reranks",
    "rerank_depth": "how many it reads",
    "rerank_text": "what it reads of a memory",
    "chunk_choice": "which stretch: by vector, or with most keywords, also within words",
    "rerank_characters": "how many characters",
    "blending": "its score replaces fusion's, or is blended by position",
    "blend_fusion": "fusion's score when blended",
    "skip_below": "skipped below this many candidates (standard search)",
    "unverified_demotion": "without a reranker: factors down to this power",
    "unverified_cap": "highest score without a reranker",
    "rerank_boosts": "afterwards: factors by type, up to 1",
    "demotions": "afterwards: factors down by type",
    "done_penalty": "factor on what is completed",
    "keyword_floor": "keyword floor × share of words found",
    "score_floor": "score floor (calibrated scores)",
    "excellent": "band `excellent` from",
    "good": "band `good` from",
    "normalise": "scores stretched over 0–1 per query",
    "one_per_file": "one result per file",
    "coherence": "files: factor on the best of a file with several in the pool",
    "definition_factor": "files: factor on what defines a name of the query",
    "symbol_definition_factor": "… where the query is like an identifier",
    "definition_stem_factor": "… once more, where the file is called so",
    "proximity": "files: factor on what is few imports away from the first",
    "stem_boost": "files: factor on keywords in the name of file and folder",
    "stem_share": "… from this share of the keywords on",
    "noise": "files: factors by kind",
    "saturation": "files: factor on each further memory of the same one",
    "expansion": "a language model expands queries: never, when chosen, or expected",
    "expander_style": "how the language model is asked",
    "strong_score": "which a keyword match from this score on makes superfluous",
    "strong_gap": "… when it is this far above the second",
    "feedback": "feedback from the first results to the vectors: how many",
    "feedback_beta": "… their weight beside the query's",
    "feedback_weight": "… weight of the list it finds",
}
OFF_AT_ZERO = {
    *("first_bonus", "podium_bonus", "skip_below", "keyword_floor", "score_floor", "coherence"),
    *("stem_boost", "stem_share", "feedback", "coverage_power", "topic_power", "similarity_power"),
}


def table() -> str:
    """A row for each number: what `default` has, and which recipes have another."""
    rows = ["| | `default` | others |", "|---|---|---|"]
    for name in Recipe.__struct_fields__:
        if name != "name":
            cells = {one: _shown(name, getattr(recipe, name)) for one, recipe in RECIPES.items()}
            usual = cells["default"]
            having: dict[str, list[str]] = {}
            for recipe, cell in cells.items():
                if cell != usual:
                    having.setdefault(cell, []).append(recipe)
            others = "; ".join(f"{_named(those)} {cell}" for cell, those in having.items())
            rows.append(f"| {MEANINGS.get(name, name)} (`{name}`) | {usual} | {others} |")
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
