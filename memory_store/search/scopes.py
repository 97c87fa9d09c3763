"""Scopes: the searched collections, told apart by the model that made their vectors.

Vectors of two models cannot be compared, whatever their length. So each model is asked once, its
answer is looked for among its own collections alone, and fusion gets one list from each.

Boundary: works on collection ids and ordinals; names appear in what is said to be missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memory_store.index.snapshot import Mask, Snapshot
from memory_store.records import ModelMismatchError, ModelUnavailableError
from memory_store.search.context import SearchContext

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder

STALE = "{} is indexed with earlier settings in part (memories: {:,}). Try: memory-store reindex {}"
UNEMBEDDED = "{} has no vectors, meaning is not searched there. Try: memory-store reindex {}"
UNNAMED = "collection "  # how a line begins that names collections
HIDDEN = "in part of the collections meaning is not searched as it should be; see doctor"


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """Searched ``collections`` whose vectors one model made: ``model`` is its fingerprint.

    ``mask`` is what of them may be an answer; ``whole``, that nothing else has vectors. The model
    is that of the collection ``chooser``, or the vault's (``None``).
    """

    model: str
    collections: tuple[str, ...]
    mask: Mask
    whole: bool
    chooser: str | None

    def embedder(self, context: SearchContext) -> Embedder:
        """The model. Raises ModelUnavailableError or ModelMismatchError."""
        return context.embedder() if self.chooser is None else context.embedder(self.chooser)


def scopes(mask: Mask, context: SearchContext) -> tuple[Scope, ...]:
    """The collections that ``mask`` lets through and that have vectors, by model."""
    snapshot = context.snapshot
    embedded = dict.fromkeys(p.collection for p in snapshot.parts if p.segment.windows)
    by_model: dict[str, list[str]] = {}
    for collection in embedded:
        settings = context.indexed_with.get(collection)
        model = settings.fingerprint if settings is not None else ""
        by_model.setdefault(model, []).append(collection)
    whole = len(by_model) == 1
    found = []
    for model, collections in by_model.items():
        own = mask if whole else mask & snapshot.visible(collections)
        following = any(collection not in context.own_models for collection in collections)
        chooser = None if following else collections[0]
        if whole or own.any():
            found.append(Scope(model, tuple(collections), own, whole, chooser))
    return tuple(found)


def missing_model(
    error: ModelUnavailableError | ModelMismatchError, scope: Scope, context: SearchContext
) -> str:
    """The line for ``degraded`` when queries cannot be embedded by the model of a scope."""
    line = missing_embedder(error, context.database)
    if scope.whole and scope.chooser is None:
        return line
    model = context.indexed_with[scope.collections[0]].embedder
    named = named_collections(scope.collections, context)
    return f"{named} cannot be searched by meaning without {model}: {line}"


def missing_embedder(error: ModelUnavailableError | ModelMismatchError, database: str) -> str:
    """That an embedding model is missing, ending in what mends it."""
    reindex = f"memory-store reindex {database}"
    remedy = error.remedy if isinstance(error, ModelUnavailableError) else reindex
    message = str(error).rstrip(".")
    return message if remedy in message else f"{message}. Try: {remedy}"


def stale_lines(mask: Mask, context: SearchContext) -> tuple[str, ...]:
    """What is to be said of searched collections whose settings changed since they were indexed."""
    snapshot = context.snapshot
    stale = snapshot.stale & mask
    if not stale.any():
        return ()
    return tuple(
        STALE.format(named_collections([collection], context), count, context.database)
        for collection, count in _counted(stale, snapshot).items()
    )


def unembedded_lines(mask: Mask, context: SearchContext) -> tuple[str, ...]:
    """What is to be said of searched collections none of whose memories has a vector.

    Nothing of those that are stale: that is said already.
    """
    snapshot = context.snapshot
    embedded = {part.collection for part in snapshot.parts if part.segment.windows}
    if embedded.issuperset(snapshot.collections):
        return ()
    return tuple(
        UNEMBEDDED.format(named_collections([collection], context), context.database)
        for collection in _counted(mask & ~snapshot.stale, snapshot)
        if collection not in embedded
    )


def named_collections(collections: Iterable[str], context: SearchContext) -> str:
    """``collection 'a'``, or ``collection 'a', 'b'``."""
    names = (repr(context.collection_names.get(one, one)) for one in collections)
    return UNNAMED + ", ".join(names)


def without_names(lines: Iterable[str]) -> tuple[str, ...]:
    """Lines of ``degraded`` for those who may not read the names of collections."""
    shown = (HIDDEN if line.startswith(UNNAMED) else line for line in lines)
    return tuple(dict.fromkeys(shown))


def _counted(mask: Mask, snapshot: Snapshot) -> dict[str, int]:
    counts = np.bincount(snapshot.collection_codes[mask], minlength=len(snapshot.collections))
    return {name: int(n) for name, n in zip(snapshot.collections, counts, strict=True) if n}
