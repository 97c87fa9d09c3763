"""Deleting a collection by destroying its key.

Boundary: opens nothing. The first transaction deletes every wrapped copy of the key, the owner's
and others', and overwrites them in the file: from then on what is sealed under it opens no more,
wherever a page of it may linger. The rows go in a second one. Copies of the file that were made
before hold key and rows, and open as they did.
"""

from __future__ import annotations

from msgspec.structs import replace

from memory_store.actions.action import Opened, action
from memory_store.errors import BadInputError
from memory_store.session.whole_vault import WholeVault
from memory_store.vault.audit_events import COLLECTION
from memory_store.vault.settings import Settings
from memory_store.vault.storage import Storage
from memory_store.vault.topic_hashes import end_filling


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
    told = vault.collections.names()[collection]
    if collection == vault.settings.personal:
        raise BadInputError(
            f"{told} is the personal collection, which every vault keeps: delete its memories "
            "instead",
            "collection",
        )
    with vault.writing() as storage:
        with storage.transaction(vault.keyring):
            _destroy_key(storage, vault, collection)
        vault.refresh_settings()
        storage.erase_traces()
        sweep(storage, vault)
    return told


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
