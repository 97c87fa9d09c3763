"""Our own ranking, the default: Gnosis's adjustments over legs and weights that were measured."""

from memory_store.search.recipes.gnosis import GNOSIS
from memory_store.search.recipes.recipe import CERTAIN, Depth, Recipe

DEFAULT = Recipe(
    name="default",
    learned=True,
    keyword_depth=Depth(256, 256),
    topic_depth=Depth(48, 192),
    vector_depth=Depth(256, 256),
    variant_depth=Depth(256, 256),
    # Tuned together on the demo notes, Cranfield, XQuAD-de and LoCoMo (docs/trust/quality.md): a
    # keyword match of one word in four, or a vector far behind the best, counts for less than its
    # rank.
    rrf_k=30.0,
    keyword_weight=1.5,
    topic_weight=1.0,
    variant_weight=0.5,  # GNO, "Variant Weighting"; not measured: no model was at hand
    hyde_weight=0.7,
    like_keyword_weight=0.5,  # measured: docs/how-it-works/search.md, "More like this"
    coverage_power=0.75,
    topic_power=1.0,
    similarity_power=1.5,
    neighbour_weights=(0.4, 0.2, 0.1),
    foreign_vector_weight=0.3,
    fusion_boosts=GNOSIS.fusion_boosts,
    boosts_order=False,
    # 130 words or so: cross-encoders learn on passages of 56 (MS MARCO), documents are cut into
    # 150 (Dai and Callan 2019, "Deeper Text Understanding for IR"), and twice as many cost twice.
    rerank_characters=800,
    unverified_demotion=0.25,
    skip_below=GNOSIS.skip_below,
    rerank_boosts=GNOSIS.rerank_boosts,
    demotions=GNOSIS.demotions,
    done_penalty=GNOSIS.done_penalty,
    keyword_floor=GNOSIS.keyword_floor,
    score_floor=GNOSIS.score_floor,
    excellent=0.75,  # a score is a probability: three of four such results are answers
    good=CERTAIN,
    expansion="chosen",
    strong_score=0.85,  # QMD, "Strong Signal Detection"
    strong_gap=0.15,
)
