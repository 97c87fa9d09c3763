"""What a vault says of itself."""

from __future__ import annotations

from msgspec import Struct

from memory_store.records.fusion import FittedFusion


class VaultSettings(Struct, frozen=True):
    """How a vault is set up, as far as the key that opened it may know.

    ``topics`` is ``table`` or ``memory`` (see :meth:`MemoryStore.set_topics`);
    ``topics_unfinished``: a change of that was stopped on its way. ``model``, ``fingerprint`` and
    ``dimensions`` are those of its vectors, ``None`` before the first one. ``trash``: for how many
    days what was deleted or replaced is kept, sealed; 0: not at all. ``rankings`` are numbers of
    learned fusion that were fitted to the owner's judgements.
    """

    vault: str
    format: int
    profile: str
    topics: str
    topics_unfinished: bool
    model: str | None
    fingerprint: str | None
    dimensions: int | None
    trash: int
    collections: int
    created: str | None
    revision: int
    rankings: tuple[FittedFusion, ...] = ()
