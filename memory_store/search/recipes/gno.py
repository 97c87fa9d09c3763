"""GNO: the query as typed counts double, and a reranker is blended in by position."""

from memory_store.search.recipes.recipe import Depth, Recipe

GNO = Recipe(
    name="gno",
    legs=("keyword", "vector"),
    keyword_depth=Depth(per_result=2),  # "Retrieval Limits": limit × 2 for the original query
    vector_depth=Depth(per_result=2),
    variant_depth=Depth(per_result=1),  # "each variant: limit"
    original_weight=2.0,  # "Original query (2x)"
    variant_weight=0.5,  # "Variant Weighting"
    hyde_weight=0.7,
    first_bonus=0.05,  # "tiered bonus", figures as in QMD
    podium_bonus=0.02,
    fusion_scale="range",  # "position-based scores that are then normalized"
    keyword_scale="range",  # "(worst - raw) / (worst - best)"
    vector_scale="distance",  # "Similarity: 1 - (distance / 2)"
    pool=None,  # "After fusion: All unique docs"
    rerank_depth=Depth(20, 20),  # "Reranking: Top 20"
    rerank_text="document",  # "Rerank with full documents (32K context)"
    blending="position",
    blend_fusion="normalised",
    unverified_cap=1.0,
    normalise=True,  # "All scores are normalized to [0.0 - 1.0] range"
    expansion="expected",
    # "Strong signal check": no figures are given, so QMD's. Later sources of GNO: 0.84 and 0.14,
    # on a logistic scale of their own.
    strong_score=0.85,
    strong_gap=0.15,
)
