"""Source code: words decide, definitions first, and tests, examples and prose behind the code.

What each figure is worth: docs/trust/quality.md.
"""

from memory_store.search.recipes.recipe import Depth, Recipe, frozen

CODE = Recipe(
    name="code",
    legs=("keyword", "vector"),
    vector_weight=0.01,  # where vectors are there, what they alone find comes last
    b=0.5,  # a long module is no worse an answer than a short one
    definition_boost=1.0,
    symbol_boost=4.0,  # its definition, and not what merely exports it
    name_boost=1.0,  # of which one is sign_cookie, for a question on signed cookies
    file_boost=1.0,
    description_boost=2.0,  # a function whose docstring says most of what is asked
    path_factors=frozen({"tests": 0.2, "examples": 0.2, "prose": 0.2, "declarations": 0.5}),
    keyword_depth=Depth(256, 256),
    rrf_k=10.0,  # of one list: only the look of the scores
    rerank=False,
    unverified_cap=1.0,
)
