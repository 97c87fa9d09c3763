"""The key slots of the one who opened a vault: which there are, one more, one less; a new root key.

Boundary: takes secrets that were made ready (``session/credentials.py``), keeps none. What is
said of a slot is not secret. The owner's sealed settings say which slots are his: a row that is
put into the file does not become one by standing there when another is added or removed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from memory_store.actions.action import Opened, action
from memory_store.actions.key_devices import device_for, named_device, own_slots
from memory_store.crypto.keys import SecretKey
from memory_store.errors import BadInputError, NotFoundError, WrongKeyError
from memory_store.session.credentials import new_recovery, passphrase_to_set, secrets_to_set
from memory_store.session.whole_vault import WholeVault
from memory_store.vault import device_keys, sync_state
from memory_store.vault.identities import publish_owner
from memory_store.vault.keyring import OWNER, WholeKeyring, next_root
from memory_store.vault.opened_slots import open_root
from memory_store.vault.slots import (
    PASSPHRASE,
    Secret,
    Slot,
    check_room,
    insert_slots,
    list_slots,
    made_slot,
    with_new_root,
)
from memory_store.vault.storage import Storage

SHORTEST_PREFIX = 4  # characters of a slot's id that name it, if only one begins with them


class KeySlot(Struct, frozen=True):
    """A way to open the vault. ``kind`` is passphrase, key-file, keyring or recovery; ``opened``
    says that the vault was opened by it now, ``device`` which device key a passphrase also needs
    (its public id; empty for none)."""

    id: str
    kind: str
    created: str
    opened: bool
    device: str = ""


@action(None, writes=False)
def slots(opened: Opened) -> list[KeySlot]:
    """The ways to open the vault that the principal who opened it has, oldest first."""
    vault = opened.vault.whole_vault()
    keyring = vault.keyring
    return [_described(vault, slot) for slot in list_slots(vault.reader(), keyring.principal)]


def _described(vault: WholeVault, slot: Slot) -> KeySlot:
    device = named_device(slot) or ""
    return KeySlot(slot.id, slot.kind, slot.created, slot.id == vault.keyring.slot, device)


@action(None, writes=True)
def add(
    opened: Opened,
    *,
    key_file: str | Path | None = None,
    passphrase: str | None = None,
    keyring: bool = False,
    device_key: bool | None = None,
) -> KeySlot:
    """Let one more key open the vault. A key file that is absent is made.

    ``device_key``: whether a passphrase also needs a device key, which is then on this machine;
    ``None`` as was chosen for the vault.

    Raises BadInputError unless exactly one is given, for a passphrase that is too short, a key
    file beside the vault, or too many slots; ReadOnlyError.
    """
    vault = opened.vault.whole_vault()
    if device_key is None:
        vault.follow_settings()
        device_key = not vault.settings.passphrase_alone
    (secret,) = secrets_to_set(
        vault.path,
        key_file=key_file,
        passphrase=passphrase,
        keyring=keyring,
        device_key=device_key,
        one=True,
    )
    return _added(vault, secret)


@action(None, writes=True)
def add_recovery_code(opened: Opened) -> tuple[KeySlot, str]:
    """One more recovery code, shown once and stored nowhere in clear."""
    secret, code = new_recovery()
    return _added(opened.vault.whole_vault(), secret), code


def _added(vault: WholeVault, secret: Secret) -> KeySlot:
    """One more slot. A passphrase that also needs a device key is given the one that the principal
    has, or a new one; either is on this machine then."""
    keyring = vault.keyring
    device = device_for(vault) if secret.two_factors else None
    slot = made_slot(vault.vault, keyring.principal, secret, keyring.root, keyring.pin, device)
    chosen: dict[str, Any] = {}
    if secret.kind == PASSPHRASE:
        chosen["passphrase_alone"] = device is None
    with vault.writing() as storage, storage.transaction(keyring):
        check_room(storage)
        insert_slots(storage, slot)
        _note(storage, vault, added=slot.id, **chosen)
    return _described(vault, slot)


@action(None, writes=True)
def give_device_key(opened: Opened, passphrase: str) -> KeySlot:
    """Make a passphrase need a new device key, which is written down on this machine.

    Its slot is replaced: the passphrase on its own, or with the device key of before, opens the
    vault no more. Raises WrongKeyError where that is no passphrase of yours; BadInputError.
    """
    vault, secret = opened.vault.whole_vault(), passphrase_to_set(passphrase, device_key=True)
    keyring = vault.keyring
    used = open_root(vault.reader(), vault.vault, [secret], vault.path)
    used.key.wipe()
    used.root.wipe()
    before = used.slot
    if before.principal != keyring.principal:
        raise WrongKeyError("that is the passphrase of another person who uses this vault")
    device = device_keys.made(vault.vault, vault.path)
    slot = made_slot(vault.vault, keyring.principal, secret, keyring.root, keyring.pin, device)
    with vault.writing() as storage:
        with storage.transaction(keyring):
            storage.slots.delete(before.id)
            insert_slots(storage, slot)
            _note(storage, vault, added=slot.id, removed=before.id, passphrase_alone=False)
        if keyring.slot == before.id:
            keyring.slot, keyring.slot_key = None, None
        storage.erase_traces()
    return _described(vault, slot)


@action(None, writes=True)
def remove(opened: Opened, slot: str) -> KeySlot:
    """Take a key slot away, by its id or the beginning of it: its secret opens nothing any more.

    The root key that it opened may have been kept: :func:`replace_root` replaces it. Raises
    NotFoundError, BadInputError for the last slot.
    """
    vault = opened.vault.whole_vault()
    keyring = vault.keyring
    with vault.writing() as storage:
        with storage.transaction(keyring):
            found = _found(list_slots(storage, keyring.principal), slot)
            if [found.id] == [one.id for one in own_slots(vault, storage)]:
                raise BadInputError(
                    "slot: this is the last one; add another before you remove it", "slot"
                )
            storage.slots.delete(found.id)
            _note(storage, vault, removed=found.id)
        removed = _described(vault, found)
        if removed.opened:
            keyring.slot = None
        storage.erase_traces()
    return removed


class NewRoot(Struct, frozen=True):
    """What a new root key took away: other key slots, and those with whom something was shared."""

    removed: tuple[KeySlot, ...]
    no_longer_shared: tuple[str, ...]


@action(None, writes=True)
def replace_root(opened: Opened) -> tuple[NewRoot, str]:
    """A new root key for the owner: the old one, if a copy was kept, opens no key from now on.

    It is put into the slot that opened the vault, and into a new one for a recovery code. The other
    slots cannot be given it without their secrets, and go. So do all grants, which the old key
    could have made. Collection keys stay as they are until ``rotate`` replaces them, too: the old
    root key opened those. Returns what went, and the recovery code, shown once. Raises
    BadInputError for a key that is not the owner's.
    """
    vault = opened.vault.whole_vault()
    recovery, shown = new_recovery()
    vault.keyring.check_owner()
    keyring, root = vault.keyring, SecretKey.generate()
    fresh = WholeKeyring(vault.vault, OWNER, root)
    code = made_slot(vault.vault, OWNER, recovery, root)
    with vault.writing() as storage:
        with storage.transaction(keyring):
            settings = vault.stored_settings(storage)
            removed = _replace_slots(storage, vault, root, code)
            storage.keys.insert(
                [
                    (collection, epoch, OWNER, fresh.wrapped(collection, epoch, bundle))
                    for collection, keys in keyring.collections.items()
                    for epoch, bundle in keys.bundles().items()
                ]
            )
            storage.principals.forget_others(OWNER)
            publish_owner(storage, root)
            generation = next_root(storage)
            sync_state.note_root(storage, keyring, root, generation)
            names = tuple(holder.name for holder in settings.holders)
            kept = (keyring.slot or "", code.id)
            vault.change_settings(storage, present=settings, slots=kept, holders=())
        keyring.replace_root(root, generation)
        storage.erase_traces()
    return NewRoot(removed, names), shown


def _replace_slots(
    storage: Storage, vault: WholeVault, root: SecretKey, code: Slot
) -> tuple[KeySlot, ...]:
    """Give the slot that opened the vault the new root, and take all others away."""
    keyring = vault.keyring
    present = {slot.id: slot for slot in list_slots(storage, OWNER)}
    used = present.pop(keyring.slot or "", None)
    if used is None or keyring.slot_key is None:
        raise BadInputError("the key that opened the vault was removed: unlock it again", "slot")
    storage.slots.delete_of(OWNER)
    kept = with_new_root(used, vault.vault, keyring.slot_key, keyring.root, root)
    insert_slots(storage, kept, code)
    return tuple(_described(vault, slot) for slot in present.values())


def _found(present: list[Slot], given: str) -> Slot:
    wanted = given.strip().lower()
    matches = [slot for slot in present if slot.id.startswith(wanted)]
    if len(wanted) < SHORTEST_PREFIX or not matches:
        raise NotFoundError(f"no key slot {given!r}; memory-store keys list shows them")
    if len(matches) > 1:
        raise BadInputError(f"slot: {len(matches)} key slots begin with {given!r}", "slot")
    return matches[0]


def _note(
    storage: Storage,
    vault: WholeVault,
    *,
    added: str | None = None,
    removed: str | None = None,
    **changes: Any,
) -> None:
    """Enter which slots there are into the sealed settings, so that none can be put back."""
    if vault.keyring.principal != OWNER:
        return
    known = vault.stored_settings(storage).slots
    known = known or tuple(slot.id for slot in list_slots(storage, OWNER))
    kept = tuple(dict.fromkeys((*known, *([added] if added else []))))
    kept = tuple(one for one in kept if one != removed)
    vault.change_settings(storage, slots=kept, **changes)
