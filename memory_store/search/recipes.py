"""Every ranking as data: a :class:`Recipe` is only numbers and switches that the stages read.

One value per system whose behaviour is wanted, and ours. A ranking that cannot be written here
means that a stage lacks a switch, not that it needs a second code path. Each figure names its
source: *Gnosis*, *GNO*, *QMD* and *prx* are the four systems' published descriptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from memory_store.errors import BadInputError

LEGS = ("keyword", "topic", "vector")


def _frozen(values: Mapping[str, float]) -> Mapping[str, float]:
    return MappingProxyType(dict(values))


class Depth(Struct, frozen=True):
    """How many to take: a fixed number (``standard``, ``deep``) or ``per_result`` × the limit."""

    standard: int = 0
    deep: int = 0
    per_result: float = 0.0

    def of(self, limit: int, deep: bool) -> int:
        """The number for one search."""
        if self.per_result:
            return max(1, round(self.per_result * limit))
        return self.deep if deep else self.standard


class Recipe(Struct, frozen=True):
    """The numbers and switches of one ranking. Scores are 0–1, ranks count from 1."""

    name: str
    legs: tuple[str, ...] = LEGS

    # Keyword leg: BM25 over keyed stems
    k1: float = 1.2  # SQLite FTS5's bm25()
    b: float = 0.75  # SQLite FTS5's bm25()
    title_weight: float = 1.0

    # Candidates per leg
    keyword_depth: Depth = Depth(64, 256)
    topic_depth: Depth = Depth(48, 192)  # Gnosis: 75 % of the vector pool
    vector_depth: Depth = Depth(64, 256)  # Gnosis, "Parallel Candidate Fetch"
    variant_depth: Depth = Depth(64, 256)  # of each list for another wording, and for feedback
    over_fetch: float = 2.0  # Gnosis, "Collection Fan-Out": up to 2x, then deduplicated

    # Fusion
    rrf_k: float = 60.0  # all four
    rank_offset: int = 1  # Gnosis, QMD: rank from 0 and + 1; GNO, prx: rank from 1. The same.
    keyword_weight: float = 1.0
    topic_weight: float = 1.0
    vector_weight: float = 1.0
    original_weight: float = 1.0  # multiplies the lists of the query as typed
    variant_weight: float = 1.0  # lists of lex: and vec: variants
    hyde_weight: float = 1.0  # the list of a hyde: variant
    # × on the keyword list for a memory that others should be like: its words were not chosen for
    # a search, as those of a query are
    like_keyword_weight: float = 1.0
    first_bonus: float = 0.0  # added to a first place in any list
    podium_bonus: float = 0.0  # added to a second or third place
    coverage_power: float = 0.0  # keyword places × (share of the query's idf held) ** this
    topic_power: float = 0.0  # topic places × (share of the query's words that are topics) ** this
    similarity_power: float = 0.0  # vector places × (cosine ÷ the best one's) ** this
    # In collections told in order: the weight of neighbours one, two, three places away
    neighbour_weights: tuple[float, ...] = ()
    symbol_alpha: float | None = None  # vector's share for symbol-like queries; 1 − α is keyword's
    text_alpha: float | None = None  # the same for any other query
    foreign_vector_weight: float = 1.0  # × when the embedder does not know the query's language
    disagreement_weight: float = 1.0  # × on the vector leg when it shares nothing with keywords
    fusion_boosts: Mapping[str, float] = field(default_factory=lambda: _frozen({}))
    boosts_order: bool = True  # False: boosts decide who enters the pool, not the order in it
    fusion_scale: str = "possible"  # share of the best possible sum, or "range": min–max per query

    # Modes that are one leg
    keyword_scale: str = "saturating"  # b ÷ (1 + b) (QMD), or "range": min–max per query
    vector_scale: str = "cosine"  # as it is, or "distance": 1 − distance ÷ 2
    leg_scores: bool = True  # False: by its place alone, as a share of the first one's (RRF)

    # The pool: what may be opened. None: all that the legs found
    pool: Depth | None = Depth(64, 256)  # Gnosis, "Two Search Modes"

    # Reranking
    rerank: bool = True
    rerank_depth: Depth = Depth(64, 256)
    rerank_text: str = "chunk"  # "chunk": the best one; "document": the maximum over all
    rerank_characters: int = 1_600  # of a chunk at most; a cross-encoder's window holds no more
    # "vector": best window, else most keywords; "keyword": most keywords; "substring": most of
    # the query's words as parts of words
    chunk_choice: str = "vector"
    blending: str = "replace"  # "replace" or "position"
    blend_fusion: str = "normalised"  # with "position": "normalised" (GNO) or "reciprocal" (QMD)
    skip_below: int = 0  # standard search with fewer candidates skips the reranker
    unverified_demotion: float = 1.0  # without a reranker: demotions and done penalty ** this
    unverified_cap: float = 0.70  # Gnosis: "capped at 0.70 … no reranker verification occurred"

    # Adjustments after the reranker, in this order
    rerank_boosts: Mapping[str, float] = field(default_factory=lambda: _frozen({}))  # capped at 1
    demotions: Mapping[str, float] = field(default_factory=lambda: _frozen({}))
    done_penalty: float = 1.0
    keyword_floor: float = 0.0
    score_floor: float = 0.0
    normalise: bool = False  # min–max of the final scores, per query
    one_per_file: bool = False  # of memories from one file only the best

    # Rules that go by the file a memory came from (prx), instead of a model, in this order
    coherence: float = 0.0  # highest score × this × share of the strongest file's sum
    stem_boost: float = 0.0  # highest score × share of keywords in the file's name × this
    stem_share: float = 0.0  # the least such share
    noise: Mapping[str, float] = field(default_factory=lambda: _frozen({}))  # multiplied
    saturation: float = 1.0  # ** (n − 1) on the n-th memory of a file

    # Expansion by a language model: "never"; "chosen": when one is chosen; "expected": that none
    # is chosen is said as something missing
    expansion: str = "never"
    # It is skipped on a confident keyword match
    strong_score: float | None = None  # on the scale b ÷ (1 + b), b the absolute BM25
    strong_gap: float | None = None

    # Feedback: a second vector search, from the query towards the first results of this one
    feedback: int = 0  # how many of them; 0: none
    feedback_beta: float = 0.75  # their mean's weight beside the query's 1 (Rocchio; Manning,
    # Raghavan and Schütze, "Introduction to Information Retrieval", 9.1.1)
    feedback_weight: float = 0.5  # of its list, where the query's own has original_weight

    @property
    def is_comparable(self) -> bool:
        """Whether scores mean the same for every query, if the reranker's do."""
        return self.blending == "replace" and not self.normalise

    @property
    def has_file_rules(self) -> bool:
        """Whether the order depends on the files that memories came from."""
        return bool(self.coherence or self.stem_boost or self.noise or self.saturation != 1.0)

    def leg_depth(self, leg: str, limit: int, deep: bool) -> int:
        """Candidates to fetch for one leg."""
        depths = {
            "keyword": self.keyword_depth,
            "topic": self.topic_depth,
            "vector": self.vector_depth,
        }
        return depths[leg].of(limit, deep)

    def leg_weight(self, leg: str) -> float:
        """The leg's own weight, before language and agreement are looked at."""
        weights = {
            "keyword": self.keyword_weight,
            "topic": self.topic_weight,
            "vector": self.vector_weight,
        }
        return weights[leg]


GNOSIS = Recipe(
    name="gnosis",
    legs=("topic", "vector"),
    topic_depth=Depth(48, 192),  # "75% of the vector pool size (48 for standard, 192 for deep)"
    vector_depth=Depth(64, 256),
    fusion_boosts=_frozen({"preference": 1.3, "summary": 1.4}),  # "Reciprocal Rank Fusion"
    rerank_text="document",  # "reads the query paired with each candidate's full text"
    skip_below=5,  # "Smart Skip": fewer than 5 candidates
    rerank_boosts=_frozen({"preference": 1.25, "summary": 1.3}),  # "Post-Rerank Adjustments"
    demotions=_frozen({"result": 0.6}),
    done_penalty=0.7,
    keyword_floor=0.30,  # "The Keyword Floor"
    score_floor=0.03,  # "Score Ranges"
)

DEFAULT = Recipe(
    name="default",
    keyword_depth=Depth(256, 256),
    topic_depth=Depth(48, 192),
    vector_depth=Depth(256, 256),
    variant_depth=Depth(256, 256),
    # Tuned together on the demo notes, Cranfield, XQuAD-de and LoCoMo (docs/quality.md): a keyword
    # match of one word in four, or a vector far behind the best, counts for less than its rank.
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
    expansion="chosen",
    strong_score=0.85,  # QMD, "Strong Signal Detection"
    strong_gap=0.15,
)

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
    strong_score=0.85,  # STRONG_SIGNAL_MIN_SCORE
    strong_gap=0.15,  # STRONG_SIGNAL_MIN_GAP
)

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
    stem_boost=1.5,  # "Identifier Stem Matching"
    stem_share=0.1,  # "at least 10% of query keywords"
    noise=_frozen(  # "Noise Penalties"
        {"tests": 0.3, "compat": 0.3, "examples": 0.3, "barrel": 0.5, "declarations": 0.7}
    ),
    saturation=0.5,  # "File Saturation Decay"
)

RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {recipe.name: recipe for recipe in (DEFAULT, GNOSIS, GNO, QMD, PRX)}
)


def recipe_named(name: str) -> Recipe:
    """The recipe of that name; :class:`BadInputError` (parameter ``recipe``) if there is none."""
    if name not in RECIPES:
        raise BadInputError(
            f"recipe: {name!r} is not one of {', '.join(RECIPES)}", parameter="recipe"
        )
    return RECIPES[name]


@cache
def of_one_leg(name: str) -> Recipe:
    """The recipe of that name for one leg by itself: no neighbours lift it, and how strong each
    match is in itself, which fusion alone asks, is not worked out."""
    return replace(
        recipe_named(name),
        neighbour_weights=(),
        coverage_power=0.0,
        topic_power=0.0,
        similarity_power=0.0,
    )


def by_places(recipe: Recipe, *, types: bool) -> Recipe:
    """The same ranking from nothing but the places in the legs' lists, for those who may not read:
    similarities are the coordinates of a vector, asked for one by one.

    ``types``: whether they may know a memory's type, so that its factors may be seen.
    """
    return replace(
        recipe,
        coverage_power=0.0,
        topic_power=0.0,
        similarity_power=0.0,
        neighbour_weights=(),
        strong_score=None,
        leg_scores=False,
        fusion_boosts=recipe.fusion_boosts if types else _frozen({}),
        demotions=recipe.demotions if types else _frozen({}),
        done_penalty=recipe.done_penalty if types else 1.0,
    )
