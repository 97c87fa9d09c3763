"""The collections of an opened vault: their names, settings, members, and their deletion.

Boundary: opens the names of collections, and nothing of a memory. Who may change members is
decided before, and of an owner once more inside the transaction: another may have gone first.

A collection is deleted by destroying its key. The first transaction deletes every wrapped copy of
the key, the owner's and others', and overwrites them in the file: from then on what is sealed under
it opens no more, wherever a page of it may linger. The rows go in a second one. Copies of the file
that were made before hold key and rows, and open as they did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec.structs import replace

from memory_store.actions.action import Opened, action
from memory_store.errors import BadInputError, NotFoundError
from memory_store.records import CollectionInfo
from memory_store.session.opened_vault import OpenVault
from memory_store.session.whole_vault import WholeVault
from memory_store.text.identifiers import CODE
from memory_store.text.language import LANGUAGES
from memory_store.vault.audit_events import COLLECTION, MEMBERS
from memory_store.vault.members import ROLES, changed_members
from memory_store.vault.settings import AUTO, CollectionSettings, Settings
from memory_store.vault.storage import Storage
from memory_store.vault.topic_hashes import end_filling


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
    return opened.vault.collections.infos()


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


@action(None, writes=False)
def languages(opened: Opened) -> dict[str, dict[str, int]]:
    """Id of a collection → language → how many of its memories are in it, most frequent first."""
    snapshot = opened.vault.snapshot()
    return {one: snapshot.languages_in(one) for one in opened.vault.collections.names()}


def _info(vault: OpenVault, collection: str) -> CollectionInfo:
    return next(info for info in vault.collections.infos() if info.id == collection)


# -- members ------------------------------------------------------------------------------


@action(None, writes=False)
def members(opened: Opened, collection: str) -> Mapping[str, str]:
    """Actor id → role (see :data:`memory_store.vault.members.ROLES`) in a collection.

    Empty where it is open. Raises NotFoundError.
    """
    return _members(opened.vault, collection)


@action(MEMBERS, writes=True)
def change_members(
    opened: Opened,
    name: str,
    add: Mapping[str, str] | None = None,
    remove: Collection[str] = (),
    *,
    by: str | None = None,
    new_name: str | None = None,
) -> Mapping[str, str]:
    """Let actors in by role, or change theirs, and let others go, all at once.

    Returns the members afterwards. The first member closes a collection and owns it; one with
    members keeps an owner. ``by``: an actor who must be an owner when it is written. The collection
    gets a ``new_name`` in the same transaction. Raises NotFoundError, BadInputError.
    """

    def change(present: Mapping[str, str]) -> Mapping[str, str]:
        return changed_members(present, add or {}, remove)

    return _change_members(opened.vault, name, change, by, new_name)


@action(MEMBERS, writes=True)
def open_collection(
    opened: Opened, name: str, *, by: str | None = None, new_name: str | None = None
) -> None:
    """Take away all members of a collection: it is open again. As :func:`change_members`."""
    _change_members(opened.vault, name, lambda _: {}, by, new_name)


def _members(vault: OpenVault, name: str) -> Mapping[str, str]:
    known = vault.collections.membership()  # first: it follows what others have made
    return known[vault.collections.find(name)]


def _change_members(
    vault: OpenVault,
    name: str,
    change: Callable[[Mapping[str, str]], Mapping[str, str]],
    by: str | None,
    new_name: str | None,
) -> Mapping[str, str]:
    collection = vault.collections.find(name)
    fresh = None if new_name is None else vault.collections.new_name(collection, new_name)

    def changed(present: Mapping[str, str]) -> Mapping[str, str]:
        if by is not None and (by not in present or not ROLES[present[by]].manage):
            raise NotFoundError(f"{by!r} is no owner any more")
        return change(present)

    vault.collections.change_members(collection, changed, fresh)
    return _members(vault, collection)


# -- deletion -----------------------------------------------------------------------------


@action(COLLECTION, writes=True)
def delete_collection(opened: Opened, name: str) -> str:
    """Delete a collection: its key first, so that what remains of it anywhere opens no more.

    Backups made before hold its key and rows, and open as they did. The personal collection
    stays. Returns its name. Raises NotFoundError, BadInputError for the personal collection or a
    key that is not the owner's, ReadOnlyError.
    """
    vault = opened.vault.whole_vault()
    vault.keyring.check_owner()
    vault.follow_settings()
    collection = vault.collections.find(name)
    called = vault.collections.names()[collection]
    if collection == vault.settings.personal:
        raise BadInputError(
            f"{called} is the personal collection, which every vault keeps: delete its memories "
            "instead",
            "collection",
        )
    with vault.writing() as storage:
        with storage.transaction(vault.keyring):
            _destroy_key(storage, vault, collection)
        vault.refresh_settings()
        storage.erase_traces()
        sweep(storage, vault)
    return called


def finish(vault: WholeVault) -> None:
    """Delete the rows of a collection whose deletion was stopped after its key was destroyed."""
    vault.keyring.check_owner()
    with vault.gate.entered(), vault.writing() as storage:
        vault.refresh_settings()  # which holds the keys that there are against the settings
        sweep(storage, vault)


def sweep(storage: Storage, vault: WholeVault) -> None:
    """Delete what no key of the owner opens any more."""
    with storage.transaction(vault.keyring):
        storage.collections.sweep()
    storage.erase_traces()


def _destroy_key(storage: Storage, vault: WholeVault, collection: str) -> None:
    settings = vault.stored_settings(storage)
    later = _without(settings, collection)
    kept = {holder.principal for holder in later.holders}
    for holder in settings.holders:
        if holder.principal not in kept:
            storage.principals.forget(holder.principal)
    storage.keys.delete_of(collection)
    storage.collections.delete(collection)
    storage.shares.delete(collection)
    end_filling(storage, collection)
    changed = {
        name: getattr(later, name)
        for name in ("collections", "choices", "members", "epochs", "holders", "names")
    }
    vault.change_settings(storage, present=settings, **changed)


def _without(settings: Settings, collection: str) -> Settings:
    """The settings as if that collection had never been."""
    holders = settings.holders
    for holder in settings.holders:
        left = tuple(one for one in holder.collections if one != collection)
        holders = replace(settings, holders=holders).with_holder(replace(holder, collections=left))
    return replace(
        settings,
        collections=tuple(one for one in settings.collections if one != collection),
        choices=tuple(one for one in settings.choices if one.collection != collection),
        members=tuple(one for one in settings.members if one.collection != collection),
        epochs=tuple(one for one in settings.epochs if one.collection != collection),
        holders=holders,
        names={one: name for one, name in settings.names.items() if one != collection},
    )
