"""Candidates, still sealed: what the legs list, and what one memory may become in an answer.

Boundary: holds ordinals, ids, ranks and vectors; no text.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec import Struct, field

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory_store.models.embedder import Embedder
    from memory_store.search.legs.model_scopes import Scope


Item = TypeVar("Item", bound=Hashable)
Value = TypeVar("Value")


class Candidate(NamedTuple):  # made 64 times a search: a third of a dataclass's time
    """One memory that may be an answer, still sealed.

    ``share`` is the fusion score as a share of the best possible (0–1), ``fusion_rank`` its place
    then (from 1). Ranks of legs count from 1 and are ``None`` where the leg missed it; so are
    ``vector_score`` (cosine) and ``window``, the character span that was nearest. ``late_score``
    and ``late_share`` are late interaction's own score and what it made of ``share``.
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
    window: tuple[int, int] | None = None
    late_score: float | None = None
    late_share: float | None = None

    @property
    def standing(self) -> float:
        """What decides a candidate's place while no cross-encoder has read it."""
        return self.share if self.late_share is None else self.late_share


class LegList(Struct, frozen=True):
    """One ranked list of a leg: ``ordinals`` best first, ``scores`` on the leg's own scale.

    ``kind`` is ``original``, or the kind of the variant that was searched for. ``windows`` are
    the numbers of the nearest windows within their documents (vector leg only). ``strengths`` say
    how good each match is in itself (0–1): the share of the query's words that a memory holds,
    or its similarity as a share of the best one's; empty where the leg does not say. ``model``
    is the fingerprint of the model whose vectors were searched (vector leg only).
    ``own_strengths`` are the strengths before a memory's neighbours counted, where they did.
    ``holding`` is how many memories hold a word of it, however long the list is (keyword leg only).
    """

    leg: str
    ordinals: tuple[int, ...]
    scores: tuple[float, ...]
    kind: str = "original"
    windows: tuple[int, ...] = ()
    strengths: tuple[float, ...] = ()
    model: str = ""
    own_strengths: tuple[float, ...] = ()
    holding: int | None = None


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
    degraded: tuple[str, ...] = ()
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


def first_places(ranked: Sequence[Item], values: Sequence[Value]) -> dict[Item, Value]:
    """Item → which of ``values`` stands at its first place, best first."""
    places = dict(zip(ranked, values, strict=False))
    if len(places) < len(ranked):
        places = {}
        for item, value in zip(ranked, values, strict=False):
            places.setdefault(item, value)
    return places
