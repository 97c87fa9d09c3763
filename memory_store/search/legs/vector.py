"""The vector leg: the nearest windows to the query, and to each ``vec`` and ``hyde`` variant.

Also to a memory that others should be like, by the vectors that it has already.

Boundary: the query and its variants go to the embedding model; the rest is vectors and ordinals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from memory_store.errors import ModelMismatchError, ModelUnavailableError
from memory_store.index.numpy_vectors import best_windows
from memory_store.search.candidates import Fetched, LegList, QueryModel
from memory_store.search.context import SearchContext
from memory_store.search.degraded import (
    NO_VECTOR,
    NO_VECTORS,
    missing_model,
    other_model,
    unembedded_lines,
)
from memory_store.search.legs.depth import depth_of, enough
from memory_store.search.legs.model_scopes import Scope, scopes
from memory_store.search.legs.neighbours import blended_meaning, neighbours_for
from memory_store.search.query.analysis import Analysis
from memory_store.search.query.more_like_this import LIKE
from memory_store.search.recipes import Recipe

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memory_store.index.vectors import VectorIndex


def vector_leg(
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
    if not wanted and analysis.like is None:
        return Fetched(())
    index = context.vector_index
    if index is None or not context.snapshot.vectors:
        fetch = f"{context.fetch_model}, then " if context.fetch_model else ""
        line = NO_VECTORS.format(fetch, context.database)
        return Fetched((), (line,) if context.snapshot.total else ())
    lists: list[LegList] = []
    models: list[QueryModel] = []
    missing: dict[str, Exception] = {}
    searched = scopes(analysis.mask, context)
    for scope in searched if wanted else ():
        try:
            embedder = scope.embedder(context)
            vectors = embedder.embed_queries([text for _, text in wanted])
        except (ModelUnavailableError, ModelMismatchError) as error:
            missing[missing_model(error, scope, context)] = error
            continue
        models.append(QueryModel(embedder, scope, vectors[0] if parsed.text else None))
        for (kind, _), vector in zip(wanted, vectors, strict=True):
            depth = depth_of("vector", kind, depths)
            lists.append(nearest(kind, vector, index, scope, context, recipe, depth))
    if alone and missing and not models:
        raise next(iter(missing.values()))
    alike, unlike = like_list(analysis, index, searched, context, recipe, depths)
    lacking = unembedded_lines(analysis.mask, context)
    return Fetched((*lists, *alike), (*missing, *unlike, *lacking), tuple(models))


def like_list(
    analysis: Analysis,
    index: VectorIndex,
    searched: Sequence[Scope],
    context: SearchContext,
    recipe: Recipe,
    depths: Mapping[str, int],
) -> tuple[tuple[LegList, ...], tuple[str, ...]]:
    """The memories nearest to one, window by window, and what cannot be compared with it.

    Each counts with its best pair of windows. No model is asked: vectors are compared with
    vectors, those of other models not at all.
    """
    like = analysis.like
    if like is None:
        return (), ()
    if not len(like.vectors):
        return (), (NO_VECTOR.format(context.database),)
    model = context.indexed_with[like.collection].fingerprint
    scope = next((one for one in searched if one.model == model), None)
    others = [one for one in searched if one is not scope]
    lines = tuple(other_model(one, context) for one in others)
    if scope is None:
        return (), lines
    within, depth = scope, depth_of("vector", LIKE, depths)

    def best(k: int) -> LegList:
        found = [index.search(vector, k, within.mask) for vector in like.vectors]
        hits = best_windows(
            context.snapshot,
            np.concatenate([one.ordinals for one in found]),
            np.concatenate([one.similarities for one in found]),
            np.concatenate([one.windows for one in found]),
            k,
        )
        return LegList(
            "vector",
            tuple(hits.ordinals.tolist()),
            tuple(hits.similarities.tolist()),
            LIKE,
            tuple(hits.windows.tolist()),
            _of_the_best(hits.similarities),
            within.model,
        )

    return (enough(best, depth, context, recipe),), lines


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
            () if evidence is found.similarities else _of_the_best(found.similarities),
        )

    return enough(best, depth, context, recipe)


def _of_the_best(similarities: NDArray[np.floating]) -> tuple[float, ...]:
    """Each cosine as a share of the first one, 0–1."""
    if not len(similarities) or similarities[0] <= 0:
        return (0.0,) * len(similarities)
    return tuple(np.clip(similarities / similarities[0], 0.0, 1.0).tolist())
