"""What a store says about its collections."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class CollectionInfo(Struct, frozen=True):
    """A collection the opened principal can read: random ``id``, opened ``name``, ``memories``.

    ``analyser`` is ``auto``, a language code or ``code``; ``embedder`` the name of the model of its
    vectors, its own or the vault's (``None`` before the first vector), as ``own_model`` says.
    """

    id: str
    name: str
    memories: int
    created: str
    analyser: str = "auto"
    embedder: str | None = None
    own_model: bool = False


def several_of_that_name(name: str, ids: Sequence[str]) -> str:
    """Why a name is refused that several collections have, and what to say instead."""
    return (
        f"collection: {len(ids)} are called {name!r}. Say which by its id, or rename one: "
        f"{', '.join(ids)}"
    )
