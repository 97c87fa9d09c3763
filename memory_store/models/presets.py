"""Model presets: one name for what searches are made with, in ``config.yaml`` and for a new vault.

Boundary: names alone; nothing is looked for, loaded or fetched.
"""

from __future__ import annotations

from msgspec import Struct

from memory_store.models.offline import MODEL_NAME, MULTILINGUAL


class Preset(Struct, frozen=True):
    """An embedding model, the reranker that goes with it (``None``: the usual one, where it is on
    this machine), and what both are ``best_for``."""

    name: str
    embedder: str
    reranker: str | None
    best_for: str

    @property
    def models(self) -> tuple[str, ...]:
        """The names of its models."""
        return (self.embedder, self.reranker) if self.reranker else (self.embedder,)


PRESETS = (
    Preset("small", MODEL_NAME, None, "English, the quickest"),
    Preset("multilingual", MULTILINGUAL, None, "100 languages, also across them; twice the time"),
    Preset("reranked", MODEL_NAME, "ms-marco-MiniLM-L-12-v2", "English, the best answers first"),
)


def preset(name: str | None) -> Preset | None:
    """The preset of that name."""
    return next((one for one in PRESETS if one.name == name), None)
