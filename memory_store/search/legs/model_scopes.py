"""Model scopes: the searched collections, by the model that made their vectors.

Vectors of two models cannot be compared, whatever their length. So each model is asked once, its
answer is looked for among its own collections alone, and fusion gets one list from each.

Boundary: works on collection ids and ordinals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from memory_store.index.snapshot import Mask
from memory_store.search.context import SearchContext

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder


class Scope(Struct, frozen=True, eq=False):
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
