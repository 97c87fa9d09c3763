"""The embedding models of an opened vault.

Boundary: no text passes here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_store.actions.action import Opened, action
from memory_store.session.embedders import ModelState

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder


@action(None, writes=False, in_batches=True)
def embedder(opened: Opened, collection: str | None = None) -> Embedder:
    """The embedding model of a collection (name or id), or of the vault, loaded.

    Raises ModelUnavailableError or ModelMismatchError.
    """
    return opened.embedders.load(_id(opened, collection))


@action(None, writes=False)
def embedder_name(opened: Opened, collection: str | None = None) -> str | None:
    """The name or folder under which :func:`embedder` looks; ``None``: the usual model."""
    return opened.embedders.name(_id(opened, collection))


@action(None, writes=False)
def model_state(opened: Opened, collection: str | None = None) -> ModelState:
    """Whether meaning can be searched in a collection, and if not, why and what mends it."""
    return opened.embedders.state(_id(opened, collection))


@action(None, writes=False)
def warm(opened: Opened) -> None:
    """Load the index and the model now rather than in the first search."""
    opened.vault.snapshot()
    opened.embedders.state()


def _id(opened: Opened, collection: str | None) -> str | None:
    return None if collection is None else opened.vault.collections.find(collection)
