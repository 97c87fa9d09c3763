"""The collections of an opened vault: their names, their settings, how current they are.

Boundary: opens the names of collections, and nothing of a memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from memory_store.actions.action import Opened, action
from memory_store.errors import BadInputError
from memory_store.records import CollectionInfo
from memory_store.session.opened_vault import OpenVault
from memory_store.text.identifiers import CODE
from memory_store.text.language import LANGUAGES
from memory_store.vault.audit_events import COLLECTION
from memory_store.vault.settings import AUTO, CollectionSettings


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


@action(None, writes=False)
def listed(opened: Opened) -> list[CollectionInfo]:
    """The collections this key may read, with counts."""
    return opened.vault.collections.told()


@action(None, writes=False)
def names(opened: Opened) -> dict[str, str]:
    """Id → name of the collections this key may read, in the order they were made."""
    return opened.vault.collections.names()


@action(None, writes=False)
def find(opened: Opened, named: str) -> str:
    """The id of the collection of that name or id. Raises NotFoundError."""
    return opened.vault.collections.find(named)


@action(None, writes=False)
def analysers(opened: Opened) -> list[tuple[str, str]]:
    """The name and the analyser of each collection this key may read; nothing is counted."""
    return opened.vault.collections.analysers()


@action(None, writes=False)
def membership(opened: Opened) -> Mapping[str, Mapping[str, str]]:
    """Id of every collection → actor → role; no actor where it is open.

    Cheap enough for every request: made anew only when the settings changed.
    """
    return opened.vault.collections.membership()


@action(COLLECTION, writes=True)
def create(
    opened: Opened,
    name: str,
    *,
    embedder: str | None = None,
    analyser: str = AUTO,
    owner: str | None = None,
) -> CollectionInfo:
    """A new collection. ``embedder`` (a name or folder) and ``analyser`` are for it alone.

    With an ``owner`` (an actor's id) it is closed to all but its members. Raises BadInputError
    for a name that is taken or an analyser that there is not, ModelUnavailableError.
    """
    choice = CollectionSettings("", checked_analyser(analyser))
    choice = opened.embedders.chosen(choice, embedder) if embedder else choice
    return _info(opened.vault, opened.vault.collections.create(name, choice, owner))


@action(COLLECTION, writes=True)
def choose(
    opened: Opened, name: str, *, embedder: str | None = None, analyser: str | None = None
) -> CollectionInfo:
    """Choose another model or analyser for a collection; what is None stays.

    The ``embedder`` ``default`` is the vault's. What the collection holds stays as it is until
    ``reindex``. Raises NotFoundError, BadInputError, ModelUnavailableError.
    """
    vault = opened.vault
    vault.follow_settings()
    collection = vault.collections.find(name)
    choice = vault.settings.chosen(collection)
    if analyser is not None:
        choice = replace(choice, analyser=checked_analyser(analyser))
    if embedder is not None:
        choice = opened.embedders.chosen(choice, embedder)
    if choice != vault.settings.chosen(collection):
        vault.collections.choose(choice)
    return _info(vault, collection)


@action(COLLECTION, writes=True)
def rename(opened: Opened, name: str, new_name: str) -> None:
    """Give a collection another name. Raises NotFoundError, BadInputError."""
    opened.vault.collections.rename(name, new_name)


@action(None, writes=False)
def stale(opened: Opened) -> dict[str, int]:
    """Collection name → how many of its memories are indexed with earlier settings."""
    snapshot = opened.vault.snapshot()
    names = opened.vault.collections.names()
    counts = Counter(map(snapshot.collection, snapshot.stale.nonzero()[0].tolist()))
    return {names[collection]: count for collection, count in counts.items()}


def _info(vault: OpenVault, collection: str) -> CollectionInfo:
    return next(info for info in vault.collections.told() if info.id == collection)
