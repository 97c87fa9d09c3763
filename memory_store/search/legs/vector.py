"""The vector leg: the nearest windows to the query, and to each ``vec`` and ``hyde`` variant.

Also to a memory that others should be like, by the vectors that it has already.

Vectors of two models cannot be compared, whatever their length. So each model is asked once, its
answer is looked for among its own collections alone, and fusion gets one list from each.

Boundary: the query and its variants go to the embedding model; the rest is vectors and ordinals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from memory_store.errors import ModelError
from memory_store.index.numpy_vectors import NumpyVectors, best_windows
from memory_store.index.vectors import VectorHits
from memory_store.models.readability import NAMES, is_foreign, is_read, unread_languages
from memory_store.records.degraded import Code, Degraded
from memory_store.search.candidates import Fetched, LegList, QueryModel, Scope
from memory_store.search.context import SearchContext
from memory_store.search.degraded import (
    NO_VECTOR,
    NO_VECTORS,
    REINDEX,
    changing_lines,
    missing_model,
    named_collections,
    other_model,
    read_it,
    unembedded_lines,
    unread_line,
    unread_query,
)
from memory_store.search.legs.contents import enough
from memory_store.search.legs.neighbours import blended_meaning, neighbours_for
from memory_store.search.query.more_like_this import LIKE
from memory_store.search.query.plan import Search

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memory_store.index.snapshot import Mask
    from memory_store.index.vectors import VectorIndex
    from memory_store.models.embedder import Embedder


def vector_leg(search: Search) -> Fetched:
    """The nearest windows to the query as typed, and to each ``vec`` and ``hyde`` variant."""
    context, analysis = search.context, search.analysis
    parsed, index = analysis.parsed, context.vector_index
    wanted = [("original", parsed.text)] if parsed.text else []
    wanted += [(variant.kind, variant.text) for variant in parsed.variants if variant.kind != "lex"]
    if not wanted and analysis.like is None:
        return Fetched(())
    earlier = context.snapshot.earlier_models
    if (index is None or not context.snapshot.vectors) and not earlier:
        if not context.snapshot.total or _words_decide(search):
            return Fetched(())
        command = context.fetch_model()
        fetch = f"{command}, then " if command else ""
        mend = f"{fetch}{REINDEX}{context.typed_vault()}"
        return Fetched((), (Degraded(Code.NOT_EMBEDDED, NO_VECTORS, mend),))
    lists: list[LegList] = []
    models: list[QueryModel] = []
    missing: dict[Degraded, Exception] = {}
    searched = scopes(analysis.mask, context)
    for scope in searched if wanted else ():
        try:
            embedder = _embedder(scope, context)
            vectors = embedder.embed_queries([text for _, text in wanted])
        except ModelError as error:
            missing[missing_model(error, scope, context)] = error
            continue
        models.append(QueryModel(embedder, scope, vectors[0] if parsed.text else None))
        lists += [
            nearest(kind, vector, scope, search)
            for (kind, _), vector in zip(wanted, vectors, strict=True)
        ]
    if len(search.plan.legs) == 1 and missing and not models:
        raise next(iter(missing.values()))
    alike, unlike = _like_list(searched, search)
    lacking = () if _words_decide(search) else unembedded_lines(analysis.mask, context)
    unread = [line for one in models if not one.scope.earlier for line in _unread(one, search)]
    changing = changing_lines(analysis.mask, context, [one.scope.model for one in models])
    degraded = (*missing, *unlike, *lacking, *changing, *unread)
    return Fetched((*lists, *alike), degraded, tuple(models))


def _embedder(scope: Scope, context: SearchContext) -> Embedder:
    if scope.earlier:
        assert context.earlier_embedder is not None
        return context.earlier_embedder(scope.model)
    return context.embedder(scope.chooser)


def _words_decide(search: Search) -> bool:
    """Whether nothing is missed without vectors: the recipe for source code goes by words."""
    return search.recipe.has_code_rules and len(search.plan.legs) > 1


def _unread(model: QueryModel, search: Search) -> tuple[Degraded, ...]:
    """What is to be said where a model does not read a collection that it searches, or the query
    alone."""
    context, snapshot = search.context, search.snapshot
    unread: dict[tuple[str, ...], list[str]] = {}
    for collection in model.scope.collections:
        languages = unread_languages(model.embedder, snapshot.languages_in(collection))
        if languages and (search.analysis.mask & snapshot.visible([collection])).any():
            unread.setdefault(languages, []).append(collection)
    if not unread and not is_read(model.embedder, search.analysis.parsed.text):
        return (unread_query(model.embedder, read_it(context.typed_vault())),)
    return tuple(
        unread_line(
            model.embedder.name,
            named_collections(collections, context),
            languages,
            read_it(context.typed_vault(), _named_apart(collections, context)),
        )
        for languages, collections in unread.items()
    )


def _named_apart(collections: Sequence[str], context: SearchContext) -> list[str]:
    """The names of collections, where there are others."""
    names = context.collection_names
    return [names.get(one, one) for one in collections] if len(names) > 1 else []


def scopes(mask: Mask, context: SearchContext) -> tuple[Scope, ...]:
    """The collections that ``mask`` lets through and that have vectors, by model.

    While a collection changes its model, those of its memories that have vectors of the earlier one
    are in a scope of that.
    """
    snapshot = context.snapshot
    by_model: dict[str, list[str]] = {}
    for collection in dict.fromkeys(p.collection for p in snapshot.parts if p.segment.windows):
        settings = context.indexed_with.get(collection)
        model = settings.fingerprint if settings is not None else ""
        by_model.setdefault(model, []).append(collection)
    earlier = [(model, snapshot.with_vectors_of(model)) for model in snapshot.earlier_models]
    whole = len(by_model) == 1 and not earlier
    found = []
    for model, collections in by_model.items():
        own = mask if whole else mask & snapshot.visible(collections)
        chooser = collections[0] if context.own_models.issuperset(collections) else None
        if whole or own.any():
            found.append(Scope(model, tuple(collections), own, whole, chooser, snapshot))
    for model, held in earlier:
        own = mask & ~held.worked_out("unembedded", held.unembedded)
        if own.any():
            collections = list(dict.fromkeys(p.collection for p in held.parts if p.segment.windows))
            found.append(Scope(model, tuple(collections), own, False, None, held, earlier=True))
    return tuple(found)


def _like_list(
    searched: Sequence[Scope], search: Search
) -> tuple[tuple[LegList, ...], tuple[Degraded, ...]]:
    """The memories nearest to one, window by window, and what cannot be compared with it.

    Each counts with its best pair of windows. No model is asked: vectors are compared with
    vectors, those of other models not at all, nor those of a text that its model does not read.
    """
    like, context = search.analysis.like, search.context
    if like is None:
        return (), ()
    if not len(like.vectors):
        mend = f"{REINDEX}{context.typed_vault()}"
        return (), (Degraded(Code.NOT_EMBEDDED, NO_VECTOR, mend),)
    settings, language = (
        context.indexed_with[like.collection],
        search.snapshot.language(like.ordinal),
    )
    name = context.earlier_models.get(like.model, settings.embedder)
    if is_foreign(name, language):
        named = named_collections([like.collection], context)
        command = read_it(context.typed_vault(), _named_apart([like.collection], context))
        return (), (unread_line(name, named, [NAMES.get(language, language)], command),)
    model = like.model or settings.fingerprint
    lines = tuple(other_model(one, context) for one in searched if one.model != model)
    scope = next((one for one in searched if one.model == model), None)
    if scope is None:
        return (), lines
    index, mask = vectors_in(scope, context), scope.mask

    def best(k: int) -> LegList:
        found = [index.search(vector, k, mask) for vector in like.vectors]
        hits = best_windows(
            scope.snapshot,
            np.concatenate([one.ordinals for one in found]),
            np.concatenate([one.similarities for one in found]),
            np.concatenate([one.windows for one in found]),
            k,
        )
        return _listed(LIKE, hits, hits.similarities, model)

    return (enough(best, "vector", LIKE, search),), lines


def vectors_in(scope: Scope, context: SearchContext) -> VectorIndex:
    """The index over the vectors of a scope's model."""
    if scope.earlier:
        return NumpyVectors(scope.snapshot, reason="of an earlier model")
    assert context.vector_index is not None
    return context.vector_index


def nearest(kind: str, query: NDArray[np.float32], scope: Scope, search: Search) -> LegList:
    """The vector leg's list for one query vector, among the memories of its model."""
    near, index = neighbours_for(search), vectors_in(scope, search.context)

    def best(k: int) -> LegList:
        found = index.search(query, k, scope.mask)
        evidence: NDArray[np.floating] = found.similarities
        if near is not None and len(found.ordinals):
            found, evidence = blended_meaning(found, query, near, scope, search)
        return _listed(kind, found, evidence, scope.model)

    return enough(best, "vector", kind, search)


def _listed(kind: str, found: VectorHits, evidence: NDArray[np.floating], model: str) -> LegList:
    """What was found as a list whose matches are as strong as the ``evidence`` for them."""
    own = np.empty(0) if evidence is found.similarities else _of_the_best(found.similarities)
    listed = LegList.of(
        "vector",
        kind,
        model=model,
        ordinals=found.ordinals,
        scores=found.similarities,
        windows=found.windows,
        strengths=_of_the_best(evidence),
        own_strengths=own,
    )
    return listed if found.every is None else replace(listed, compared=found.every)


def _of_the_best(similarities: NDArray[np.floating]) -> NDArray[np.floating]:
    """Each cosine as a share of the first one, 0–1."""
    if not len(similarities) or similarities[0] <= 0:
        return np.zeros(len(similarities))
    shares: NDArray[np.floating] = np.clip(similarities / similarities[0], 0.0, 1.0)
    return shares
