"""What the entries of a segment are made with: the embedding model and the text analysis.

Boundary: the mark of it stands in clear in the column ``model`` of ``vault_segments`` and is bound
to the sealed parts. It holds the model's fingerprint; the analyser, which would give away a
collection's language, is a keyed hash. Segments of different marks are never merged, so a mark
holds for all entries of its segment; ``reindex`` renews those whose collection has another by now.

``<fingerprint>`` alone means: analysed automatically, by the version the settings name. All that
was written before collections had settings has such a mark.
"""

from __future__ import annotations

from msgspec import Struct

from memory_store.text.tokens import ANALYSER_VERSION
from memory_store.vault.keyring import CollectionKeys
from memory_store.vault.settings import AUTO, Settings

_SEPARATOR = "+"
_HASH_BYTES = 8


class IndexModel(Struct, frozen=True):
    """The mark of a segment's entries, and how many dimensions their vectors have."""

    mark: str = ""
    dimensions: int = 0


def index_model(settings: Settings, keys: CollectionKeys) -> IndexModel:
    """What entries of the collection of ``keys`` are made with now."""
    return IndexModel(wanted_mark(settings, keys), settings.of(keys.collection).dimensions)


def wanted_mark(settings: Settings, keys: CollectionKeys) -> str:
    """The mark of entries made now for the collection of ``keys``."""
    chosen = settings.of(keys.collection)
    if chosen.analyser == AUTO and settings.analyser == ANALYSER_VERSION:
        return chosen.fingerprint
    name, version = chosen.analyser.encode(), str(ANALYSER_VERSION).encode()
    hashed = keys.plain_source.tag(b"analyser", name, version, length=_HASH_BYTES).hex()
    return f"{chosen.fingerprint}{_SEPARATOR}{hashed}"


def is_stale(mark: str, wanted: str, windows: int) -> bool:
    """Whether a segment of that many windows has entries for ``reindex`` to renew."""
    return not same_analysis(mark, wanted) or (windows > 0 and not same_model(mark, wanted))


def same_model(mark: str, wanted: str) -> bool:
    """Whether the vectors of two marks may be compared."""
    return mark.partition(_SEPARATOR)[0] == wanted.partition(_SEPARATOR)[0]


def same_analysis(mark: str, wanted: str) -> bool:
    """Whether the terms of two marks were made in the same way."""
    return mark.partition(_SEPARATOR)[2] == wanted.partition(_SEPARATOR)[2]
