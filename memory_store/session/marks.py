"""Marks: what the entries of a segment were made with, the model and the text analysis.

Boundary: stands in clear in the column ``model`` of ``vault_segments`` and is bound to the sealed
parts. It tells the model's fingerprint; the analyser, which would tell a collection's language, is
a keyed hash. Segments of different marks are never merged, so a mark holds for all entries of its
segment, and what has another mark than its collection asks for is what ``reindex`` renews.

``<fingerprint>`` alone means: analysed automatically, by the version the settings name. All that
was written before collections had settings has such a mark.
"""

from __future__ import annotations

from memory_store.text.tokens import ANALYSER_VERSION
from memory_store.vault.keyring import CollectionKeys
from memory_store.vault.settings import AUTO, Settings

_SEPARATOR = "+"
_HASH_BYTES = 8


def wanted_mark(settings: Settings, keys: CollectionKeys) -> str:
    """The mark of entries made now for the collection of ``keys``."""
    chosen = settings.of(keys.collection)
    if chosen.analyser == AUTO and settings.analyser == ANALYSER_VERSION:
        return chosen.fingerprint
    name, version = chosen.analyser.encode(), str(ANALYSER_VERSION).encode()
    hashed = keys.plain_source.tag(b"analyser", name, version, length=_HASH_BYTES).hex()
    return f"{chosen.fingerprint}{_SEPARATOR}{hashed}"


def same_model(mark: str, wanted: str) -> bool:
    """Whether the vectors of two marks may be compared."""
    return mark.partition(_SEPARATOR)[0] == wanted.partition(_SEPARATOR)[0]


def same_analysis(mark: str, wanted: str) -> bool:
    """Whether the terms of two marks were made in the same way."""
    return mark.partition(_SEPARATOR)[2] == wanted.partition(_SEPARATOR)[2]
