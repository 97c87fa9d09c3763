"""Replacing the key of a collection, or of the vault's own scope, while others use the vault.

Boundary: every value is opened under the old key and sealed under the new one, a batch in each
transaction. Both keys are held until nothing is sealed under the old one; then its wrapped copies
are deleted and their traces erased. A reader meanwhile opens each value under the epoch that
it names, and a writer looks for a new epoch at the beginning of every transaction.

Stopped at any moment, it goes on where it was when it is run again: the settings say which epoch
is being left, and every sealed value says which one it is sealed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memory_store.actions.action import Opened, action, batches
from memory_store.actions.collections import finish
from memory_store.errors import (
    FormatError,
    LockedError,
    MemoryStoreError,
    NotFoundError,
    TamperedError,
)
from memory_store.session.sealed_segments import collection_tags
from memory_store.session.whole_vault import WholeVault
from memory_store.vault import audit, expansions, sources, sync_state, topic_hashes
from memory_store.vault.collection_keys import Bundle, CollectionKeys
from memory_store.vault.grants import GrantPlace, make_grant
from memory_store.vault.identities import known_identity
from memory_store.vault.keyring import VAULT_SCOPE
from memory_store.vault.resealing import STEPS, Step, new_account, rows_of
from memory_store.vault.settings import Epoch, KeyHolder, Settings
from memory_store.vault.storage import Storage
from memory_store.vault.storage.damage import vault_faults

Progress = Callable[[str, int, "int | None"], None]


class Rotation(Struct, frozen=True):
    """What a change of keys did. ``name`` is ``None`` for the vault's own scope (its settings).

    ``resumed``: whether it finished an earlier one.
    """

    collection: str | None
    name: str | None
    epoch: int
    resumed: bool


@action(None, writes=True, in_batches=True)
def rotate(opened: Opened, *collections: str, progress: Progress | None = None) -> list[Rotation]:
    """New keys for some collections (names or ids), or for all, and the vault's settings.

    Everything of them is sealed anew, in batches: others may search and write meanwhile, and
    what was stopped goes on when it is called again. What an earlier change left unfinished is
    finished instead. What was tampered with in one of them keeps none of the others from its new
    key. Raises NotFoundError, BadInputError for a key that is not the owner's, TamperedError,
    FormatError, ReadOnlyError, StorageError.
    """
    vault = opened.vault.whole_vault()
    vault.keyring.check_owner()
    with vault.gate.entered():
        scopes = [vault.collections.find(name) for name in collections]
        if not collections:
            vault.follow_settings()
            scopes = [VAULT_SCOPE, *vault.settings.collections]
    done, refused = list[Rotation](), list[MemoryStoreError]()
    for scope in dict.fromkeys(scopes):
        try:
            done.append(rotate_scope(vault, scope, progress))
        except (TamperedError, FormatError) as error:
            refused.append(error)
    with vault.gate.entered(), vault.writing() as storage:
        storage.erase_traces()
    finish(vault)
    if refused:
        raise refused[0]
    return done


@action(None, writes=False)
def unfinished(opened: Opened) -> list[str]:
    """The names of collections whose keys are being replaced, ``settings`` for the vault's."""
    vault = opened.vault.whole_vault()
    names = vault.collections.names()  # follows what others have written
    left = [one.collection for one in vault.settings.epochs if one.before is not None]
    return [names.get(one, "settings") for one in left]


@action(None, writes=False, in_batches=True)
def superseded(opened: Opened) -> bool:
    """Whether the key that opened the vault was replaced or removed: it must be unlocked anew.

    Looks at the file.
    """
    try:
        with vault_faults(opened.vault.path), opened.vault.gate.entered():
            opened.vault.refresh_settings()
    except (LockedError, NotFoundError):
        return True
    except MemoryStoreError:
        return False  # whatever else is wrong, the next use of the vault says so
    return False


def rotate_scope(vault: WholeVault, scope: str, progress: Progress | None = None) -> Rotation:
    """A new key for one collection (id) or the vault's scope; see :func:`rotate`."""
    with vault.gate.entered():
        vault.follow_settings()
        resumed = vault.settings.epoch_of(scope).before is not None
        if not resumed:
            begin(vault, scope)
        name = None if scope == VAULT_SCOPE else vault.collections.names()[scope]
    _reseal(vault, scope, name or "settings", progress)
    epoch = vault.settings.epoch_of(scope).epoch
    return Rotation(None if scope == VAULT_SCOPE else scope, name, epoch, resumed)


def begin(vault: WholeVault, scope: str) -> None:
    """Make the next epoch of a scope's key, wrapped for all who may read it.

    From the moment this is committed everybody writes in it.
    """
    with vault.writing() as storage:
        with storage.transaction(vault.keyring):
            settings = vault.stored_settings(storage)
            if (
                settings.epoch_of(scope).before is None
            ):  # else another program began at the same time
                begin_in(storage, vault, settings, [scope])
        vault.refresh_settings()


def begin_in(
    storage: Storage,
    vault: WholeVault,
    settings: Settings,
    scopes: Sequence[str],
    given: Mapping[str, tuple[int, Bundle]] = MappingProxyType({}),
    **changes: Any,
) -> dict[tuple[str, int], Bundle]:
    """The next epoch of some scopes' keys, inside the caller's transaction; returns the new keys.

    ``given`` are epoch and keys of a scope that another device made. ``changes`` are made to the
    settings with it: holders, who get the new keys or not.
    """
    later, made = replace(settings, **changes), dict[tuple[str, int], Bundle]()
    for scope in scopes:
        present = settings.epoch_of(scope).epoch
        epoch, _ = given.get(scope, (present + 1, None))
        later = replace(later, epochs=later.with_epoch(Epoch(scope, epoch, present)))
    vault.change_settings(storage, present=settings, **changes, epochs=later.epochs)
    for scope in scopes:
        keys, epoch = vault.keyring.of(scope), later.epoch_of(scope).epoch
        bundle = given[scope][1] if scope in given else keys.bundle.next()
        made[scope, epoch] = bundle
        wrapped = vault.keyring.wrapped(scope, epoch, bundle)
        storage.keys.insert([(scope, epoch, vault.keyring.principal, wrapped)])
        readers = [holder for holder in later.holders if scope in holder.collections]
        grant_all(storage, vault, readers, scope, epoch, bundle)
        if scope != VAULT_SCOPE:
            tags, upcoming = collection_tags(storage, keys), keys.upcoming(epoch, bundle)
            new_account(storage, keys, upcoming, tags, vault.settings.revision)
            topic_hashes.begin_filling(storage, scope, settings.epoch_of(scope).epoch)
    return made


def grant_all(
    storage: Storage,
    vault: WholeVault,
    holders: Sequence[KeyHolder],
    collection: str,
    epoch: int,
    bundle: Bundle,
) -> None:
    """Wrap a collection's key for those with whom it is shared, by the keys that the owner knows
    them by (inside the caller's transaction). Raises TamperedError where the file has others."""
    if not holders:
        return
    owner = vault.keyring.identity(storage)
    granted = []
    for one in holders:
        try:
            recipient = known_identity(storage, one.principal, bytes.fromhex(one.identity))
        except TamperedError as error:
            raise TamperedError(
                f"{error}, not of {one.name!r}: revoke {one.name!r} first, or replace the root key "
                "(memory-store keys rotate --root), which ends all sharing"
            ) from None
        place = GrantPlace(vault.vault, collection, epoch, one.principal, owner, recipient)
        wrapped = make_grant(vault.keyring.root, place, bundle)
        granted.append((collection, epoch, one.principal, wrapped))
    storage.keys.insert(granted)


def _reseal(vault: WholeVault, scope: str, name: str, progress: Progress | None) -> None:
    """Seal everything of a scope anew, and delete the key it was sealed under before."""
    with vault.gate.entered():
        total = rows_of(vault.reader(), scope)
    done = 0

    def report(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(name, min(done, total), total)

    def reseal(step: Step, start: int) -> Iterator[int]:
        return batches(
            vault, start, lambda storage, place: step(storage, vault.keyring.of(scope), place)
        )

    for exchange in topic_hashes.STEPS if scope != VAULT_SCOPE else ():
        for _ in reseal(exchange, topic_hashes.END):
            report(0)
    finished = False
    while not finished:  # until no process wrote under the old key meanwhile
        for step in STEPS if scope != VAULT_SCOPE else ():
            for count in reseal(step, 0):
                report(count)
        finished = _finish(vault, scope)


def _finish(vault: WholeVault, scope: str) -> bool:
    """Delete the key that is left, if nothing is sealed under it any more. Returns whether."""
    with vault.gate.entered(), vault.writing() as storage:
        with storage.transaction(vault.keyring):
            settings = vault.stored_settings(storage)
            present = settings.epoch_of(scope)
            if present.before is None:
                return True
            keys = vault.keyring.of(scope)
            if _anything_left(storage, keys):
                return False
            storage.keys.delete_before(scope, present.epoch)
            finished = settings.with_epoch(Epoch(scope, present.epoch))
            vault.change_settings(storage, present=settings, epochs=finished)
        vault.refresh_settings()
        storage.erase_traces()
    return True


def _anything_left(storage: Storage, keys: CollectionKeys) -> bool:
    """Whether something is still sealed under an earlier key; of the vault's scope nothing, once
    this is done: it is little, and sealed at once."""
    if keys.collection == VAULT_SCOPE:
        expansions.reseal(storage, keys)
        sources.reseal(storage, keys)
        audit.reseal(storage, keys)
        sync_state.reseal(storage, keys)
        return False
    return any(step(storage, keys, 0)[0] is not None for step in STEPS)
