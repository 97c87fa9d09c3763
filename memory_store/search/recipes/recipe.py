"""A ranking as data: only numbers and switches that the stages read.

A ranking that cannot be written here means that a stage lacks a switch, not that it needs a second
code path. Each figure names its source: *Gnosis*, *GNO*, *QMD* and *prx* are the four systems'
published descriptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct, field

CERTAIN = 0.5
"""The probability from which more results are answers than are not."""
LEGS = ("keyword", "topic", "vector")


def frozen(values: Mapping[str, float]) -> Mapping[str, float]:
    """The same figures, read-only."""
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

    # For source code, by what is sealed in the index of its files
    definition_boost: float = 0.0  # × (1 + this × share of the query's names that a file defines)
    symbol_boost: float = 0.0  # instead of this, for a query that is a single name
    name_boost: float = 0.0  # the same for what is part of a defined name
    file_boost: float = 0.0  # and of the file's own name
    # then × (1 + this × the share of the query's words, but one, that one definition is about)
    description_boost: float = 0.0
    # × for tests, examples and what is prose, unless the query asks for them
    path_factors: Mapping[str, float] = field(default_factory=lambda: frozen({}))

    # Candidates per leg
    keyword_depth: Depth = Depth(64, 256)
    topic_depth: Depth = Depth(48, 192)  # Gnosis: 75 % of the vector pool
    vector_depth: Depth = Depth(64, 256)  # Gnosis, "Parallel Candidate Fetch"
    variant_depth: Depth = Depth(64, 256)  # of each list for another wording, and for feedback
    over_fetch: float = 2.0  # Gnosis, "Collection Fan-Out": up to 2x, then deduplicated

    # Fusion: by the evidence for each memory, where the search has only the query as typed to go by
    # (search/fusion/evidence.py), else by ranks
    learned: bool = False
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
    # In sequential collections: the weight of neighbours one, two, three places away
    neighbour_weights: tuple[float, ...] = ()
    symbol_alpha: float | None = None  # vector's share for symbol-like queries; 1 − α is keyword's
    text_alpha: float | None = None  # the same for any other query
    foreign_vector_weight: float = 1.0  # × when the embedder does not know the query's language
    disagreement_weight: float = 1.0  # × on the vector leg when it shares nothing with keywords
    fusion_boosts: Mapping[str, float] = field(default_factory=lambda: frozen({}))
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
    rerank_boosts: Mapping[str, float] = field(default_factory=lambda: frozen({}))  # capped at 1
    demotions: Mapping[str, float] = field(default_factory=lambda: frozen({}))
    done_penalty: float = 1.0
    keyword_floor: float = 0.0
    score_floor: float = 0.0
    excellent: float = 0.30  # bands of calibrated scores: Gnosis, "Score Ranges"
    good: float = 0.20
    normalise: bool = False  # min–max of the final scores, per query
    one_per_file: bool = False  # of memories from one file only the best

    # Rules that go by the file a memory came from (prx), instead of a model, in this order
    coherence: float = 0.0  # highest score × this × share of the strongest file's sum
    definition_factor: float = 1.0  # multiplied: a file that defines a name of the query
    symbol_definition_factor: float = 1.0  # the same, where the query is like an identifier
    definition_stem_factor: float = 1.0  # and once more, where the file is called like the name
    proximity: float = 0.0  # highest score × this ÷ steps of imports from the first results
    stem_boost: float = 0.0  # highest score × share of keywords in the file's name × this
    stem_share: float = 0.0  # the least such share
    noise: Mapping[str, float] = field(default_factory=lambda: frozen({}))  # multiplied
    saturation: float = 1.0  # ** (n − 1) on the n-th memory of a file

    # Expansion by a language model: "never"; "chosen": when one is chosen; "expected": that none
    # is chosen is said as something missing
    expansion: str = "never"
    # How it is asked: with our "instructions", or with QMD's own prompt and sampling ("qmd")
    expander_style: str = "instructions"
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
    def has_code_rules(self) -> bool:
        """Whether keyword scores depend on what is known of source files."""
        of_words = self.definition_boost, self.symbol_boost, self.name_boost, self.file_boost
        return any((*of_words, self.description_boost)) or bool(self.path_factors)

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
