"""The collections of an opened vault: their settings, how current they are, the topics in them.

Boundary: opens the names of collections and, for topics, the heads of memories; no body.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from memory_store.errors import BadInputError
from memory_store.records import CollectionInfo
from memory_store.session.embedders import Embedders
from memory_store.session.opened_vault import OpenVault
from memory_store.text.canonical import normalise_topic
from memory_store.text.identifiers import CODE
from memory_store.text.language import LANGUAGES
from memory_store.vault.heads import count_topics
from memory_store.vault.settings import AUTO, FILLING, CollectionSettings
from memory_store.vault.topic_hashes import asked_epoch


def collection_ids(vault: OpenVault, names: Sequence[str]) -> tuple[str, ...] | None:
    """The ids of collections by name or id; ``None``, for all, where none is named."""
    return tuple(vault.collections.find(name) for name in names) or None


def checked_analyser(name: str) -> str:
    """An analyser's name. Raises BadInputError for one that there is not."""
    analyser = name.strip().lower()
    if analyser not in (AUTO, CODE, *LANGUAGES):
        known = f"{AUTO}, {CODE}, or a language: {' '.join(sorted(LANGUAGES))}"
        raise BadInputError(f"no analyser {name!r}; there is: {known}", "analyser")
    return analyser


def create_collection(
    vault: OpenVault,
    embedders: Embedders,
    name: str,
    embedder: str | None,
    analyser: str,
    owner: str | None = None,
) -> CollectionInfo:
    """A new collection with a choice of its own; see :meth:`MemoryStore.create_collection`."""
    choice = CollectionSettings("", checked_analyser(analyser))
    choice = embedders.chosen(choice, embedder) if embedder else choice
    return _info(vault, vault.collections.create(name, choice, owner))


def set_collection(
    vault: OpenVault, embedders: Embedders, name: str, embedder: str | None, analyser: str | None
) -> CollectionInfo:
    """Another choice for a collection; see :meth:`MemoryStore.set_collection`."""
    vault.follow_settings()
    collection = vault.collections.find(name)
    choice = vault.settings.chosen(collection)
    if analyser is not None:
        choice = replace(choice, analyser=checked_analyser(analyser))
    if embedder is not None:
        choice = embedders.chosen(choice, embedder)
    if choice != vault.settings.chosen(collection):
        vault.collections.choose(choice)
    return _info(vault, collection)


def stale(vault: OpenVault) -> dict[str, int]:
    """Collection name → how many of its memories are indexed with earlier settings."""
    snapshot = vault.snapshot()
    names = vault.collections.names()
    counts = Counter(map(snapshot.collection, snapshot.stale.nonzero()[0].tolist()))
    return {names[collection]: count for collection, count in counts.items()}


def topics(vault: OpenVault, names: Sequence[str]) -> dict[str, int]:
    """Topic → how many memories carry it, most frequent first. Opens every head, no body."""
    wanted = collection_ids(vault, names) or vault.keyring.readable()
    with vault.moment() as (connection, known):
        return count_topics(connection, vault.keyring, set(wanted), known)


def topic_hash(vault: OpenVault, text: str, name: str | None) -> str | None:
    """The keyed hash of a topic as ``memory_topics`` stores it, in hex.

    ``None`` while that table is being filled: who compares with it finds nothing, or everything.
    """
    vault.follow_settings()  # or the hash might be one of before a change of the key
    if vault.settings.topics_kept == FILLING:
        vault.collections.find(name)
        return None
    keys = vault.keyring.of(vault.collections.find(name))
    tag = keys.blinder.topic(normalise_topic(text))
    return keys.stored(tag, asked_epoch(vault.reader(), keys)).hex()


def _info(vault: OpenVault, collection: str) -> CollectionInfo:
    return next(info for info in vault.collections.told() if info.id == collection)
