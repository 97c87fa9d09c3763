"""The explanation of a search: what each stage did, how each result came to its place, and why one
memory is, or is not, among the results.

A field that a stage has nothing to say about is ``UNSET`` and is not in the JSON; neither is one
that a surface withheld. Scores are 0–1, ranks count from 1, times are in milliseconds.

Boundary: ranks, scores, names of adjustments and the caller's own words; no text of memories. A
field that does not say who else sees it is for those who may read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType, to_builtins

from memory_store.records.visibility import ForSearchers, InPart, UnlessStrict

Text = str | UnsetType
Number = int | UnsetType
Score = float | UnsetType
Rank = int | None | UnsetType
Names = tuple[str, ...] | UnsetType

TIMES = frozenset({"stage", "milliseconds", "cpu_milliseconds"})
"""What every stage has besides its details."""


class Explained:
    """A part of an explanation. ``part["name"]`` reads a field as the JSON has it."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready data."""
        data: dict[str, Any] = json.loads(json.dumps(to_builtins(self)))  # tuples become lists
        return data

    def __getitem__(self, name: str) -> Any:
        return self.as_dict()[name]


class FilterCount(Explained, Struct, frozen=True):
    """What one filter or condition by itself lets through, in memories."""

    filter: str
    lets_through: int


class LegCount(Explained, Struct, frozen=True):
    """One list of a leg: how many it ``found``, the ``best`` and the ``last`` score on its scale.

    ``kind`` is ``original``, or the kind of the wording that was searched for.
    """

    leg: ForSearchers[str]
    kind: ForSearchers[str]
    found: ForSearchers[int]
    best: float | None
    last: float | None


class ListWeight(Explained, Struct, frozen=True):
    """What one list counts in fusion: the product of ``factors``, by name."""

    leg: str
    kind: str
    weight: float
    factors: Mapping[str, float]


class Contribution(Explained, Struct, frozen=True):
    """What a list, a feature, a bonus or a boost adds to a fusion score.

    ``term`` is the figure in the recipe's formula, ``points`` its share of the score.
    ``own_strength`` is the match's strength before neighbours counted, where they did.
    """

    leg: str
    kind: str
    rank: Number = UNSET
    weight: Score = UNSET
    strength: Score = UNSET
    own_strength: Score = UNSET
    term: float = 0.0
    points: float = 0.0


class Boost(Explained, Struct, frozen=True):
    """A type's factor in fusion; it ``decides`` the ``order``, or who enters the ``pool``."""

    name: str
    factor: float
    decides: str


class Place(Explained, Struct, frozen=True):
    """Where a result stood ``after`` a stage; ``steps`` name what moved the result itself."""

    after: str
    rank: int
    score: float
    steps: Names = UNSET


class ScoreChange(Explained, Struct, frozen=True):
    """An adjustment by name, with the score before and after it."""

    step: str
    before: float
    after: float


class Account(Explained, Struct, frozen=True):
    """How one result came to its place. ``rank`` ``None``: it was not returned.

    ``contributions`` add up to the fusion score, ``ranks`` are its places after each stage that
    reorders, ``steps`` every change of its score after fusion or the reranker.
    """

    rank: ForSearchers[Rank] = UNSET
    id: ForSearchers[Text] = UNSET
    fusion_rank: ForSearchers[Number] = UNSET
    keyword_rank: ForSearchers[Rank] = UNSET
    topic_rank: ForSearchers[Rank] = UNSET
    vector_rank: ForSearchers[Rank] = UNSET
    fusion_score: ForSearchers[Score] = UNSET
    fusion_sum: UnlessStrict[Score] = UNSET
    contributions: UnlessStrict[tuple[Contribution, ...] | UnsetType] = UNSET
    boost: UnlessStrict[Boost | UnsetType | None] = UNSET
    rerank_score: float | UnsetType | None = UNSET
    ranks: UnlessStrict[tuple[Place, ...] | UnsetType] = UNSET
    steps: UnlessStrict[tuple[ScoreChange, ...] | UnsetType] = UNSET
    score: ForSearchers[Score] = UNSET


class LegPlace(Explained, Struct, frozen=True):
    """Where one leg has a memory, however far down. ``taken`` is how many of its list went on,
    ``last_score`` the score of the last of those. A ``rank`` of ``None`` comes with ``because``."""

    leg: ForSearchers[str]
    kind: ForSearchers[str]
    rank: ForSearchers[int | None]
    score: float | None
    taken: ForSearchers[int]
    last_score: float | None
    because: ForSearchers[Text] = UNSET


class WordsHeld(Explained, Struct, frozen=True):
    """Which of the query's words a memory holds."""

    held: tuple[str, ...]
    missing: tuple[str, ...]


class Verdict(Account, frozen=True):
    """Why a memory is, or is not, among the results.

    ``stage`` names where its way ended, and ``reason`` says it in a sentence; the rest are the
    figures behind that.
    """

    returned: ForSearchers[bool | UnsetType] = UNSET
    stage: Text = UNSET
    reason: InPart[Text] = UNSET
    filters: ForSearchers[Names] = UNSET
    twin: Text = UNSET
    words: ForSearchers[WordsHeld | UnsetType] = UNSET
    coverage: Score = UNSET
    pool: ForSearchers[Number] = UNSET
    last_score: ForSearchers[Score] = UNSET
    legs: InPart[tuple[LegPlace, ...] | UnsetType] = UNSET
    page: ForSearchers[Number] = UNSET

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready data, the answer before its figures."""
        data = super().as_dict()
        first = ("id", "returned", "stage", "reason")
        return {name: data[name] for name in first if name in data} | data


class Stage(Explained, Struct, tag_field="stage", tag=str.lower):
    """What one stage of a search did. The search fills it in while the stage runs.

    ``cpu_milliseconds`` is what the whole process spent meanwhile, other searches included.
    """

    milliseconds: ForSearchers[float] = 0.0
    cpu_milliseconds: ForSearchers[float] = 0.0

    @property
    def stage(self) -> str:
        """Its name."""
        return str(self.__struct_config__.tag)

    @property
    def details(self) -> dict[str, Any]:
        """JSON-ready data without the name and the times."""
        return {name: value for name, value in self.as_dict().items() if name not in TIMES}


class Analyse(Stage):
    """What was searched for, in how many memories, and what each filter alone lets through."""

    words: Names = UNSET
    language: ForSearchers[Text] = UNSET
    keywords: ForSearchers[Names] = UNSET
    topic_groups: ForSearchers[Number] = UNSET
    like: Mapping[str, int] | UnsetType = UNSET
    searchable: ForSearchers[Number] = UNSET
    of: ForSearchers[Number] = UNSET
    filters: ForSearchers[tuple[FilterCount, ...] | UnsetType] = UNSET


class Expand(Stage):
    """Which other wordings a language model gave; ``skipped`` says why it was not asked.

    ``sent`` is all that the model received, ``lines`` how many it wrote; ``cached`` says that the
    answer was kept from an earlier search.
    """

    model: ForSearchers[Text] = UNSET
    cached: bool | UnsetType = UNSET
    sent: Text = UNSET
    lines: Number = UNSET
    skipped: ForSearchers[Text] = UNSET
    variants: ForSearchers[Names] = UNSET
    dropped: ForSearchers[Number] = UNSET
    dropped_for: ForSearchers[Mapping[str, int] | UnsetType] = UNSET


class Fetch(Stage):
    """The lists that the legs came back with, the index and the model of the vector leg.

    ``sequential_collections`` are those whose neighbours count (0–1), ``feedback_from`` is how many
    memories the second vector search went towards, ``candidates`` how many hold a pattern's words.
    """

    sequential_collections: Mapping[str, float] | UnsetType = UNSET
    feedback_from: ForSearchers[Number] = UNSET
    candidates: ForSearchers[Number] = UNSET
    lists: InPart[tuple[LegCount, ...] | UnsetType] = UNSET
    leg_milliseconds: ForSearchers[Mapping[str, float] | UnsetType] = UNSET
    model: ForSearchers[Text] = UNSET
    index: ForSearchers[Text] = UNSET


class Fuse(Stage):
    """The recipe, what each list counts and why, and where the pool was cut.

    Of learned fusion: what each feature counts, and how well each model reads what it compares
    (``read``, 0-1, which its vectors count by).
    """

    recipe: ForSearchers[Text] = UNSET
    candidates: ForSearchers[Number] = UNSET
    pool: ForSearchers[Number] = UNSET
    k: ForSearchers[Score] = UNSET
    weights: ForSearchers[Mapping[str, float] | UnsetType] = UNSET
    read: ForSearchers[Mapping[str, float] | UnsetType] = UNSET
    lists: ForSearchers[tuple[ListWeight, ...] | UnsetType] = UNSET


class Open(Stage):
    """How many memories were opened and kept; of a pattern: how many it ``matched``."""

    opened: ForSearchers[Number] = UNSET
    kept: ForSearchers[Number] = UNSET
    matched: Number = UNSET
    results: InPart[tuple[Account, ...] | UnsetType] = UNSET


class Rerank(Stage):
    """Who read how many of the pool, or why no reranker did (``skipped``)."""

    skipped: ForSearchers[Text] = UNSET
    how: ForSearchers[Text] = UNSET
    reranked: ForSearchers[Number] = UNSET
    calibrated: ForSearchers[bool | UnsetType] = UNSET


class Adjust(Stage):
    """How many results each adjustment moved, and the account of every row of the page."""

    moved: Mapping[str, int] | UnsetType = UNSET
    results: InPart[tuple[Account, ...] | UnsetType] = UNSET


class Preview(Stage):
    """How many rows are shown, how many of them whole, and what that spent of a token budget."""

    returned: ForSearchers[Number] = UNSET
    complete: Number = UNSET
    budget: Number = UNSET
    tokens: Number = UNSET
    tokens_counted_with: Text = UNSET
    skipped_for_budget: Number = UNSET


Stages = Analyse | Expand | Fetch | Fuse | Open | Rerank | Adjust | Preview
