"""Candidates: what the legs list, what one memory becomes, and what the stages hand to the answer.

Boundary: holds ordinals, ids, ranks and vectors; opened memories for as long as the search takes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec import Struct, field

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory_store.index.snapshot import Mask, Snapshot
    from memory_store.index.terms import Matches
    from memory_store.index.terms import Scored as EveryScore
    from memory_store.index.vectors import Compared
    from memory_store.models.embedder import Embedder
    from memory_store.records import Match, Memory
    from memory_store.records.degraded import Degraded
    from memory_store.records.explanation import Verdict
    from memory_store.search.answer.previews import Marker


Item = TypeVar("Item", bound=Hashable)
Value = TypeVar("Value")
AS_CODE = "code"  # the kind of a list in the order of the recipe for source code


class Candidate(NamedTuple):  # made 64 times a search: a third of a dataclass's time
    """One memory that may be an answer, still sealed.

    ``share`` is the fusion score as a share of the best possible (0–1), ``fusion_rank`` its place
    then (from 1). Ranks of legs count from 1 and are ``None`` where the leg missed it; so are
    ``vector_score`` (cosine) and ``window``, the number of the window that was nearest.
    ``late_score`` and ``late_share`` are late interaction's own score and what it made of
    ``share``.
    """

    ordinal: int
    id: str
    type: str
    share: float
    fusion_rank: int
    boost: float = 1.0
    keyword_rank: int | None = None
    topic_rank: int | None = None
    vector_rank: int | None = None
    vector_score: float | None = None
    window: int | None = None
    late_score: float | None = None
    late_share: float | None = None

    @property
    def standing(self) -> float:
        """What decides a candidate's place while no cross-encoder has read it."""
        return self.share if self.late_share is None else self.late_share


class Scored(NamedTuple):
    """A candidate with its final score so far (0–1) and how it came about.

    ``memory`` is ``None`` while the candidate is sealed; ``rerank_score`` is the reranker's own
    calibrated score; ``passage`` is the part of the text that the reranker, else the vectors liked
    best; ``steps`` are ``(name of the adjustment, score after it)``.
    """

    candidate: Candidate
    score: float
    memory: Memory | None = None
    rerank_score: float | None = None
    passage: tuple[int, int] | None = None
    steps: tuple[tuple[str, float], ...] = ()

    def moved(self, name: str, score: float) -> Scored:
        """The same candidate at another score; unchanged scores leave no trace."""
        if score == self.score:
            return self
        steps = (*self.steps, (name, score))
        return Scored(self.candidate, score, self.memory, self.rerank_score, self.passage, steps)

    @property
    def opened(self) -> Memory:
        """The memory, which must be open."""
        assert self.memory is not None, "only opened results are read"
        return self.memory


class LegList(Struct, frozen=True):
    """One ranked list of a leg: ``ordinals`` best first, ``scores`` on the leg's own scale.

    ``kind`` is ``original``, or the kind of the variant that was searched for. ``windows`` are
    the numbers of the nearest windows within their documents (vector leg only). ``strengths`` say
    how good each match is in itself (0–1): the share of the query's words that a memory holds,
    or its similarity as a share of the best one's; empty where the leg does not say. ``model``
    is the fingerprint of the model whose vectors were searched (vector leg only).
    ``own_strengths`` are the strengths before a memory's neighbours counted, where they did.
    ``holding`` is how many memories hold a word of it, however long the list is (keyword leg only).
    ``matches`` and ``every`` are the postings and scores that the list was cut from (keyword leg
    only): what learned fusion asks about memories that another leg found. So are the cosines of
    all that were ``compared`` (vector leg only, where each was).
    Fusion counts the list ``weight`` times; there ``strengths`` scale each place's contribution
    (above 1 where it stands for another list's as well), and where several models made the
    vectors, those of the second are the leg ``vector (2)``.
    """

    leg: str
    ordinals: tuple[int, ...]
    scores: tuple[float, ...] = ()
    kind: str = "original"
    windows: tuple[int, ...] = ()
    strengths: tuple[float, ...] = ()
    model: str = ""
    own_strengths: tuple[float, ...] = ()
    holding: int | None = None
    weight: float = 1.0
    matches: Matches | None = None
    every: EveryScore | None = None
    compared: Compared | None = None

    @classmethod
    def of(
        cls, leg: str, kind: str, holding: int | None = None, model: str = "", **columns: Any
    ) -> LegList:
        """A list from NumPy's arrays."""
        plain: dict[str, Any] = {name: tuple(column.tolist()) for name, column in columns.items()}
        return cls(leg, kind=kind, holding=holding, model=model, **plain)


class Scope(Struct, frozen=True, eq=False):
    """Searched ``collections`` whose vectors one model made: ``model`` is its fingerprint.

    ``mask`` is what of them may be an answer; ``whole``, that nothing else has vectors. The model
    is that of the collection ``chooser``, or the vault's (``None``); ``earlier``: it is one of
    before, which some memories still have vectors of. ``snapshot`` has the vectors.
    """

    model: str
    collections: tuple[str, ...]
    mask: Mask
    whole: bool
    chooser: str | None
    snapshot: Snapshot
    earlier: bool = False


class QueryModel(Struct, frozen=True):
    """A model that embedded the query, and the scope its vectors were searched in.

    ``query_vector`` is the query as typed; ``None`` where only variants were embedded.
    """

    embedder: Embedder
    scope: Scope
    query_vector: NDArray[np.float32] | None = None


class Fetched(Struct, frozen=True):
    """What all legs found, duplicates of one content removed, and what went missing.

    ``models`` are those that embedded the query, one for each kind of vectors that was searched.
    """

    lists: tuple[LegList, ...]
    degraded: tuple[Degraded, ...] = ()
    models: tuple[QueryModel, ...] = ()
    milliseconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def embedder(self) -> Embedder | None:
        """The first of the models, whose tokenizer counts for all."""
        return self.models[0].embedder if self.models else None

    def of(self, leg: str, model: str = "") -> LegList | None:
        """The leg's list for the query as typed: that of a model, or the first."""
        typed = (one for one in self.lists if one.leg == leg and one.kind == "original")
        return next((one for one in typed if model in ("", one.model)), None)


class Outcome(Struct, frozen=True):
    """What the stages hand to the answer.

    ``rows`` are the page's opened results; ``ranking`` is the whole order as far as it is known,
    sealed rows and those of earlier pages included; ``refused`` are the ordinals in it that were
    opened and are no answers. ``found`` counts all candidates, ``reranked`` those a model read,
    ``opened`` those decrypted, ``tried`` those of them that pages opened so far for what only texts
    can show, ``holding`` the memories that hold a word of the query (``None``: not counted).
    ``nearest`` is what to say of rows that no word of the query led to. ``marker`` gives the
    highlighter for a row. ``why`` makes of the ids of the rows that are shown what became of the
    memory asked about. ``listed`` (bool [documents]) is all of a list by filters alone;
    ``conditional`` says that opened text decides what is an answer, ``met`` that a memory is one
    for all that is known, or was on a page before. Of a pattern ``candidates`` are
    all that may match, in order, of which ``refused`` were tried and do not; ``matches`` are what
    it matched, by ordinal.
    """

    rows: tuple[Scored, ...]
    marker: Callable[[Scored], Marker]
    ranking: tuple[Scored, ...] = ()
    refused: frozenset[int] = frozenset()
    tried: int = 0
    found: int = 0
    opened: int = 0
    holding: int | None = None
    reranked: int = 0
    calibrated: bool = False
    degraded: tuple[Degraded, ...] = ()
    nearest: str | None = None
    embedder: Embedder | None = None
    candidates: tuple[Scored, ...] = ()
    matches: Mapping[int, tuple[Match, ...]] = field(default_factory=dict)
    why: Callable[[Collection[str]], Verdict] | None = None
    listed: Mask | None = None
    conditional: bool = False
    met: bool = True


def first_places(ranked: Sequence[Item], values: Sequence[Value]) -> dict[Item, Value]:
    """Item → which of ``values`` stands at its first place, best first."""
    places = dict(zip(ranked, values, strict=False))
    if len(places) < len(ranked):
        places = {}
        for item, value in zip(ranked, values, strict=False):
            places.setdefault(item, value)
    return places
