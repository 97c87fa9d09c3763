"""What is told of collections."""

from __future__ import annotations

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
