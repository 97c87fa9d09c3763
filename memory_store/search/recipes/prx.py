"""prx: words and meaning weighed by the look of the query, then rules for files."""

from memory_store.search.recipes.recipe import Depth, Recipe, frozen

PRX = Recipe(
    name="prx",
    legs=("keyword", "vector"),
    k1=1.5,  # "Robertson BM25 with k1=1.5, b=0.75"
    b=0.75,
    keyword_depth=Depth(per_result=5),  # "Both retrievers fetch top_k * 5 candidates"
    vector_depth=Depth(per_result=5),
    variant_depth=Depth(per_result=5),
    symbol_alpha=0.3,  # "Adaptive alpha"; prx 0.6.4 uses 0.1
    text_alpha=0.5,  # prx 0.6.4 uses 0.6
    # "The expanded candidate pool is then reranked": all of it, and never most of a vault, which a
    # query of many typed lines would have opened
    pool=Depth(256, 1_000),
    rerank=False,  # deterministic stages instead of a model
    unverified_cap=1.0,
    coherence=0.2,  # "File Coherence Boost"; prx 0.6.4 uses 0.15
    definition_factor=4.0,  # "Definition Boost": "For natural language queries: 4x multiplier"
    symbol_definition_factor=12.0,  # "For symbol queries: 12x multiplier"
    definition_stem_factor=1.5,  # "an additional multiplier applies", of which no figure is given
    proximity=0.05,  # "Import Graph Proximity", of which no figure is given
    stem_boost=1.5,  # "Identifier Stem Matching"
    stem_share=0.1,  # "at least 10% of query keywords"
    noise=frozen(  # "Noise Penalties"
        {"tests": 0.3, "compat": 0.3, "examples": 0.3, "barrel": 0.5, "declarations": 0.7}
    ),
    saturation=0.5,  # "File Saturation Decay"
)
