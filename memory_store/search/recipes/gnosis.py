"""Gnosis: topics and meaning, a reranker, floors and boosts by type."""

from memory_store.search.recipes.recipe import Depth, Recipe, frozen

GNOSIS = Recipe(
    name="gnosis",
    legs=("topic", "vector"),
    topic_depth=Depth(48, 192),  # "75% of the vector pool size (48 for standard, 192 for deep)"
    vector_depth=Depth(64, 256),
    fusion_boosts=frozen({"preference": 1.3, "summary": 1.4}),  # "Reciprocal Rank Fusion"
    rerank_text="document",  # "reads the query paired with each candidate's full text"
    skip_below=5,  # "Smart Skip": fewer than 5 candidates
    rerank_boosts=frozen({"preference": 1.25, "summary": 1.3}),  # "Post-Rerank Adjustments"
    demotions=frozen({"result": 0.6}),
    done_penalty=0.7,
    keyword_floor=0.30,  # "The Keyword Floor"
    score_floor=0.03,  # "Score Ranges"
)
