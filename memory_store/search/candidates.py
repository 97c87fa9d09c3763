"""Candidates: the three legs, side by side, each a ranked list of documents.

Boundary: works on keyed hashes, vectors and ordinals. Filters are a mask inside each leg, so a
filtered search finds what it would find in a vault of nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from memory_store.index.terms import coverage, keyword_scores, top_k
from memory_store.index.topics import topic_matches
from memory_store.records import ModelMismatchError, ModelUnavailableError
from memory_store.search.analysis import Analysis
from memory_store.search.context import SearchContext
from memory_store.search.recipes import Recipe
from memory_store.search.scopes import (
    Scope,
    missing_model,
    scopes,
    stale_lines,
    unembedded_lines,
)
from memory_store.search.surroundings import (
    blended_meaning,
    lifted_coverage,
    lifted_keywords,
    neighbours_for,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memory_store.index.snapshot import HashGroup, Snapshot
    from memory_store.index.vectors import VectorIndex
    from memory_store.models.embedder import Embedder

LEG_THREADS = 8  # for all searches at once; NumPy and the model release the GIL
NO_VECTORS = "no memory has a vector yet, meaning is not searched. Try: memory-store reindex {}"

MOST_NEWEST = 1_000  # rows of a search by filters only

_legs = ThreadPoolExecutor(max_workers=LEG_THREADS, thread_name_prefix="search-leg")


@dataclass(frozen=True, slots=True)
class Candidate:
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


@dataclass(frozen=True, slots=True)
class LegList:
    """One ranked list of a leg: ``ordinals`` best first, ``scores`` on the leg's own scale.

    ``kind`` is ``original``, or the kind of the variant that was searched for. ``windows`` are
    the numbers of the nearest windows within their documents (vector leg only). ``strengths`` say
    how good each match is in itself (0–1): the share of the query's words that a memory holds,
    or its similarity as a share of the best one's; empty where the leg does not tell. ``model``
    is the fingerprint of the model whose vectors were searched (vector leg only).
    """

    leg: str
    ordinals: tuple[int, ...]
    scores: tuple[float, ...]
    kind: str = "original"
    windows: tuple[int, ...] = ()
    strengths: tuple[float, ...] = ()
    model: str = ""


@dataclass(frozen=True, slots=True)
class QueryModel:
    """A model that embedded the query, and the scope its vectors were searched in.

    ``query_vector`` is the query as typed; ``None`` where only variants were embedded.
    """

    embedder: Embedder
    scope: Scope
    query_vector: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
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


def fetch(
    analysis: Analysis,
    context: SearchContext,
    recipe: Recipe,
    legs: Sequence[str],
    depths: Mapping[str, int],
    probe: LegList | None = None,
) -> Fetched:
    """Run ``legs`` at once and return their lists, as long as :func:`depth_of` says each.

    ``probe`` is the keyword leg's list for the query as typed, where it is there already.
    A missing or foreign model costs the vector leg and a line in ``degraded``; when that is the
    only leg, the error itself is raised.
    """
    tasks: dict[str, Callable[[], Fetched]] = {
        "keyword": lambda: _keyword_leg(analysis, context, recipe, depths, probe),
        "topic": lambda: _topic_leg(analysis, context, recipe, depths["topic"]),
        "vector": lambda: _vector_leg(analysis, context, recipe, depths, len(legs) == 1),
    }
    running = [_legs.submit(_timed, tasks[leg]) for leg in legs[1:]]
    answers = [_timed(tasks[legs[0]]), *(future.result() for future in running)]
    return Fetched(
        lists=deduplicated([one for answer, _ in answers for one in answer.lists], context, depths),
        degraded=(
            *(line for answer, _ in answers for line in answer.degraded),
            *stale_lines(analysis.mask, context),
        ),
        models=tuple(model for answer, _ in answers for model in answer.models),
        milliseconds={leg: spent for leg, (_, spent) in zip(legs, answers, strict=True)},
    )


def newest(analysis: Analysis, context: SearchContext) -> Fetched:
    """For a query of filters only: what they let through, newest first. No rank of any leg."""
    snapshot = context.snapshot
    allowed = np.flatnonzero(analysis.mask)
    words = snapshot.id_words[allowed]
    order = np.lexsort((words[:, 1], words[:, 0], -snapshot.created[allowed]))[:MOST_NEWEST]
    ordinals = tuple(allowed[order].tolist())
    return Fetched((LegList("recent", ordinals, (0.0,) * len(ordinals)),))


def deduplicated(
    lists: Sequence[LegList], context: SearchContext, depths: Mapping[str, int]
) -> tuple[LegList, ...]:
    """The lists with one memory for each content, the same one in every list.

    Of memories that share a content the one a topic found stands for all, else the first of the
    keyword list, else of the vector list.
    """
    tags = context.snapshot.content_tags
    standing: dict[bytes, int] = {}
    for leg in ("topic", "keyword", "vector"):
        for one in lists:
            if one.leg == leg:
                for ordinal in one.ordinals:
                    standing.setdefault(tags[ordinal].tobytes(), ordinal)
    unique = [
        _unique(one, context.snapshot, standing, depth_of(one.leg, one.kind, depths))
        for one in lists
    ]
    return tuple(_of_one_model(unique))


def _of_one_model(lists: Sequence[LegList]) -> Iterator[LegList]:
    """The lists with each memory in those of one model: equal contents may have been in two."""
    claimed: dict[int, str] = {}
    for one in lists:
        if one.model:
            for ordinal in one.ordinals:
                claimed.setdefault(ordinal, one.model)
    for one in lists:
        own = [n for n, o in enumerate(one.ordinals) if claimed.get(o) in (None, one.model)]
        several = one.model and len(own) < len(one.ordinals)
        yield _picked(one, own) if several else one


def _picked(one: LegList, places: Sequence[int]) -> LegList:
    """The list with some of its places."""
    return replace(
        one,
        ordinals=tuple(one.ordinals[place] for place in places),
        scores=tuple(one.scores[place] for place in places),
        windows=tuple(one.windows[place] for place in places) if one.windows else (),
        strengths=tuple(one.strengths[place] for place in places) if one.strengths else (),
    )


def depth_of(leg: str, kind: str, depths: Mapping[str, int]) -> int:
    """How long a list may be: as ``depths`` says for its leg, or for a ``variant``."""
    usual = depths.get(leg, 0)
    return usual if kind == "original" else depths.get("variant", usual)


def _keyword_leg(
    analysis: Analysis,
    context: SearchContext,
    recipe: Recipe,
    depths: Mapping[str, int],
    probe: LegList | None,
) -> Fetched:
    """BM25 over the query as typed, and over each ``lex`` variant."""
    probe = probe or probe_keywords(analysis, context, recipe, depths)
    variants = [
        keyword_list("lex", groups, analysis, context, recipe, depth_of("keyword", "lex", depths))
        for groups in analysis.variant_groups
        if groups
    ]
    return Fetched((*((probe,) if probe else ()), *variants))


def probe_keywords(
    analysis: Analysis, context: SearchContext, recipe: Recipe, depths: Mapping[str, int]
) -> LegList | None:
    """The keyword leg's list for the query as typed; ``None`` for a query without words."""
    if not analysis.groups:
        return None
    return keyword_list("original", analysis.groups, analysis, context, recipe, depths["keyword"])


def keyword_list(
    kind: str,
    groups: Sequence[HashGroup],
    analysis: Analysis,
    context: SearchContext,
    recipe: Recipe,
    depth: int,
) -> LegList:
    snapshot = context.snapshot
    found = keyword_scores(
        snapshot,
        groups,
        k1=recipe.k1,
        b=recipe.b,
        title_weight=recipe.title_weight,
        mask=analysis.mask,
    )

    near = neighbours_for(snapshot, recipe)
    if near is not None:
        found = lifted_keywords(found, near, recipe, analysis.mask)

    def best(k: int) -> LegList:
        top = top_k(snapshot, found.ordinals, found.scores, k)
        held = np.empty(0)
        if recipe.coverage_power and near is not None:
            held = lifted_coverage(snapshot, groups, top.ordinals, near, recipe, analysis.mask)
        elif recipe.coverage_power:
            held = coverage(snapshot, groups, top.ordinals)
        return LegList(
            "keyword",
            tuple(top.ordinals.tolist()),
            tuple(top.scores.tolist()),
            kind,
            strengths=tuple(held.tolist()),
        )

    return enough(best, depth, context, recipe)


def _topic_leg(analysis: Analysis, context: SearchContext, recipe: Recipe, depth: int) -> Fetched:
    """Memories tagged with the query's words: words matched, then rarity, then the newest."""
    if not analysis.topics:
        return Fetched(())
    found = topic_matches(context.snapshot, analysis.topics, analysis.mask)
    matched = found.matched / len(analysis.topics)

    def best(k: int) -> LegList:
        return LegList("topic", tuple(found.ordinals[:k].tolist()), tuple(matched[:k].tolist()))

    return Fetched((enough(best, depth, context, recipe),))


def _vector_leg(
    analysis: Analysis,
    context: SearchContext,
    recipe: Recipe,
    depths: Mapping[str, int],
    alone: bool,
) -> Fetched:
    """The nearest windows to the query as typed, and to each ``vec`` and ``hyde`` variant."""
    parsed = analysis.parsed
    wanted = [("original", parsed.text)] if parsed.text else []
    wanted += [(variant.kind, variant.text) for variant in parsed.variants if variant.kind != "lex"]
    if not wanted:
        return Fetched(())
    index = context.vector_index
    if index is None or not context.snapshot.vectors:
        return Fetched((), (NO_VECTORS.format(context.database),) if context.snapshot.total else ())
    lists: list[LegList] = []
    models: list[QueryModel] = []
    missing: dict[str, Exception] = {}
    for scope in scopes(analysis.mask, context):
        try:
            embedder = scope.embedder(context)
        except (ModelUnavailableError, ModelMismatchError) as error:
            missing[missing_model(error, scope, context)] = error
            continue
        vectors = embedder.embed_queries([text for _, text in wanted])
        models.append(QueryModel(embedder, scope, vectors[0] if parsed.text else None))
        for (kind, _), vector in zip(wanted, vectors, strict=True):
            depth = depth_of("vector", kind, depths)
            lists.append(nearest(kind, vector, index, scope, context, recipe, depth))
    if alone and missing and not models:
        raise next(iter(missing.values()))
    lacking = unembedded_lines(analysis.mask, context)
    return Fetched(tuple(lists), (*missing, *lacking), tuple(models))


def nearest(
    kind: str,
    query: NDArray[np.float32],
    index: VectorIndex,
    scope: Scope,
    context: SearchContext,
    recipe: Recipe,
    depth: int,
) -> LegList:
    """The vector leg's list for one query vector, among the collections of its model."""
    near = neighbours_for(context.snapshot, recipe)

    def best(k: int) -> LegList:
        found = index.search(query, k, scope.mask)
        evidence: NDArray[np.floating] = found.similarities
        if near is not None and len(found.ordinals):
            found, evidence = blended_meaning(
                found, query, context.snapshot, near, recipe, scope.mask
            )
        return LegList(
            "vector",
            tuple(found.ordinals.tolist()),
            tuple(found.similarities.tolist()),
            kind,
            tuple(found.windows.tolist()),
            _of_the_best(evidence),
            scope.model,
        )

    return enough(best, depth, context, recipe)


def _of_the_best(similarities: NDArray[np.floating]) -> tuple[float, ...]:
    """Each cosine as a share of the first one, 0–1."""
    if not len(similarities) or similarities[0] <= 0:
        return (0.0,) * len(similarities)
    return tuple(np.clip(similarities / similarities[0], 0.0, 1.0).tolist())


def enough(
    fetch: Callable[[int], LegList], depth: int, context: SearchContext, recipe: Recipe
) -> LegList:
    """A list long enough that ``depth`` are left of it when equal contents are counted once.

    Starts with the recipe's over-fetch where several collections are searched (published copies
    are expected there), and doubles as long as copies fill the list.
    """
    k = depth
    if len(context.snapshot.collections) > 1:
        k = math.ceil(depth * recipe.over_fetch)
    while True:
        found = fetch(k)
        tags = context.snapshot.content_tags[list(found.ordinals)]
        if len(found.ordinals) < k or len({tag.tobytes() for tag in tags}) >= depth:
            return found
        k *= 2


def _unique(one: LegList, snapshot: Snapshot, standing: Mapping[bytes, int], depth: int) -> LegList:
    places: dict[int, int] = {}
    for place, ordinal in enumerate(one.ordinals):
        places.setdefault(standing[snapshot.content_tags[ordinal].tobytes()], place)
    kept = list(places.items())[:depth]
    picked = _picked(one, [place for _, place in kept])
    return replace(picked, ordinals=tuple(ordinal for ordinal, _ in kept))


def _timed(task: Callable[[], Fetched]) -> tuple[Fetched, float]:
    start = perf_counter()
    answer = task()
    return answer, (perf_counter() - start) * 1_000
