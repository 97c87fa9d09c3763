"""QMD: lists of 20, a reranker over the first 30, one result for each file."""

from memory_store.search.recipes.recipe import Depth, Recipe

QMD = Recipe(
    name="qmd",
    legs=("keyword", "vector"),
    keyword_depth=Depth(20, 20),  # "searchFTS(query, 20)"
    vector_depth=Depth(20, 20),
    variant_depth=Depth(20, 20),
    original_weight=2.0,  # "weights = i < 2 ? 2.0 : 1.0"
    first_bonus=0.05,  # "Top-rank bonus"
    podium_bonus=0.02,
    pool=Depth(30, 30),  # "Take top 30 for reranking"
    rerank_depth=Depth(30, 30),
    chunk_choice="substring",  # "Pick chunk with most keyword overlap": includes(term)
    blending="position",
    blend_fusion="reciprocal",  # "rrfScore = 1 / rrfRank"
    unverified_cap=1.0,
    one_per_file=True,  # "Deduplication: one result per file"
    expansion="expected",
    expander_style="qmd",  # "Expansion Process": its prompt, 600 tokens, .7, 20, .8
    strong_score=0.85,  # STRONG_SIGNAL_MIN_SCORE
    strong_gap=0.15,  # STRONG_SIGNAL_MIN_GAP
)
