"""Device keys: which a vault's passphrases need, whether this machine has them, to another one.

Boundary: a device key leaves as a code, for its holder alone, and comes in as one.
Which there are, by their public ids, stands in the file for all to read. What a slot says of its
device key is believed where the caller's root key opens it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from msgspec import Struct

from memory_store.actions.action import Opened, action
from memory_store.addresses import vault_path
from memory_store.crypto.keys import SecretKey, decode_device_key, device_id, encode_device_key
from memory_store.errors import BadInputError, FormatError, NotFoundError, TamperedError
from memory_store.session.whole_vault import WholeVault
from memory_store.vault import device_keys
from memory_store.vault.settings import read_vault_id
from memory_store.vault.slots import OWNER, PASSPHRASE, RECOVERY, Slot, device_key_of, list_slots
from memory_store.vault.storage import Storage
from memory_store.vault.storage.damage import vault_faults
from memory_store.vault.storage.file_access import file_access
from memory_store.vault.storage.schema import check_is_vault

MOST_CODES = 16  # in what is imported at once


class DeviceKey(Struct, frozen=True):
    """A device key that passphrases of a vault need. ``id`` is public.

    ``slots`` are the ids of their key slots, ``owner`` says whether they are the owner's, ``here``
    whether this machine has it, in the file ``path``. ``otherwise`` are the other kinds of key
    that open the same, and from which it can be had again.
    """

    id: str
    owner: bool
    slots: tuple[str, ...]
    here: bool
    path: str
    otherwise: tuple[str, ...]


def listed(path: str | Path) -> list[DeviceKey]:
    """The device keys that a vault's passphrases need, and whether this machine has them.

    Needs no key. Raises NotAVaultError, FormatError, BadInputError without a state folder.
    """
    path = vault_path(path)
    with vault_faults(path):
        vault, slots = _looked_at(path)
    found: dict[str, list[Slot]] = {}
    for slot in slots:
        named = named_device(slot)
        if named:
            found.setdefault(named, []).append(slot)
    return [_described(vault, identifier, users, slots) for identifier, users in found.items()]


def passphrase_refused(path: Path) -> str | None:
    """Why no passphrase opens the vault here: this machine has none of the device keys needed."""
    vault, slots = _looked_at(path)
    named = [named_device(slot) for slot in slots if slot.kind == PASSPHRASE]
    if not named or any(not one or device_keys.is_here(vault, one) for one in named):
        return None
    return device_keys.missing(path)


def _described(vault: bytes, identifier: str, users: list[Slot], slots: list[Slot]) -> DeviceKey:
    principal = users[0].principal
    others = {one.kind for one in slots if one.principal == principal and one.kind != PASSPHRASE}
    return DeviceKey(
        identifier,
        principal == OWNER,
        tuple(slot.id for slot in users),
        device_keys.is_here(vault, identifier),
        str(device_keys.place_of(vault, identifier)),
        tuple(sorted(others)),
    )


def _looked_at(path: Path) -> tuple[bytes, list[Slot]]:
    check_is_vault(path)
    with closing(Storage.open(path, read_only=True, access=file_access(path))) as storage:
        return read_vault_id(storage), list_slots(storage)


def named_device(slot: Slot) -> str:
    """The device key that a slot says it needs; empty where it needs none, or is not readable."""
    try:
        return slot.device()
    except FormatError:
        return ""


def imported(path: str | Path, codes: str) -> list[DeviceKey]:
    """Keep device keys on this machine, from the codes that another one exported.

    Needs no key. Raises BadInputError for what is no device key, or none of this vault's.
    """
    path, known = vault_path(path), {one.id for one in listed(path)}
    vault, _ = _looked_at(path)
    wanted = []
    for line in [line for line in codes.splitlines() if line.strip()][:MOST_CODES]:
        device = decode_device_key(line)
        if device is None:
            raise BadInputError(
                "that is no device key: check for a missing character", "device-key"
            )
        if device_id(device, vault) not in known:
            raise BadInputError(
                f"no passphrase of {path.name} needs that device key: is it of another vault, or "
                "was it replaced?",
                "device-key",
            )
        wanted.append(device)
    if not wanted:
        raise BadInputError("no device key was given", "device-key")
    for device in wanted:
        device_keys.keep(vault, device, path)
    kept = {device_id(device, vault) for device in wanted}
    return [one for one in listed(path) if one.id in kept]


@action(None, writes=False)
def exported(opened: Opened) -> str:
    """The codes of the device keys that your passphrases need, a line each, for another machine.

    They are secrets. Raises NotFoundError where your passphrases need none.
    """
    return "\n".join(map(encode_device_key, _needed(opened.vault.whole_vault())))


@action(None, writes=False)
def restored(opened: Opened) -> list[DeviceKey]:
    """Keep your device keys on this machine, as after the recovery code opened the vault here.

    Raises NotFoundError where your passphrases need none, BadInputError where they cannot be kept.
    """
    vault = opened.vault.whole_vault()
    needed = _needed(vault)
    for device in needed:
        device_keys.keep(vault.vault, device, vault.path)
    mine = {device_id(device, vault.vault) for device in needed}
    return [one for one in listed(vault.path) if one.id in mine]


def _needed(vault: WholeVault) -> list[SecretKey]:
    devices = [*own_devices(vault)]
    if not devices:
        raise NotFoundError(f"no passphrase of yours in {vault.path.name} needs a device key")
    return devices


@action(None, writes=False)
def lacking(opened: Opened) -> bool:
    """Whether the recovery code opened the vault on a machine without its device key."""
    vault = opened.vault.whole_vault()
    present = list_slots(vault.reader(), vault.keyring.principal)
    if not any(slot.id == vault.keyring.slot and slot.kind == RECOVERY for slot in present):
        return False
    named = {named_device(slot) for slot in own_slots(vault, vault.reader())} - {""}
    return any(not device_keys.is_here(vault.vault, one) for one in named)


def device_for(vault: WholeVault) -> SecretKey:
    """The device key of the caller's passphrases, or a new one, written down on this machine."""
    devices = list(own_devices(vault))
    if not devices:
        return device_keys.made(vault.vault, vault.path)
    device_keys.keep(vault.vault, devices[-1], vault.path)
    return devices[-1]


def own_devices(vault: WholeVault) -> Iterator[SecretKey]:
    """The device keys that the caller's own slots need, that of the oldest slot first."""
    seen = set()
    for slot in own_slots(vault, vault.reader()):
        device = None
        with suppress(FormatError, TamperedError):  # a row that the caller's keys did not write
            device = device_key_of(slot, vault.vault, vault.keyring.root)
        if device is not None and slot.device() not in seen:
            seen.add(slot.device())
            yield device


def own_slots(vault: WholeVault, storage: Storage) -> list[Slot]:
    """The caller's slots; of those in the file, for the owner, the ones that he knows of."""
    present = list_slots(storage, vault.keyring.principal)
    if vault.keyring.principal != OWNER:
        return present
    known = vault.stored_settings(storage).slots
    return [slot for slot in present if not known or slot.id in known]
