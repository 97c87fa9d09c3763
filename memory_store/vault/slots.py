"""Key slots: several secrets, each of which opens the same principal's root key (as LUKS does).

Boundary: takes a secret and a root key, and wraps the one in the other. Which slots exist, of what
kind, is in clear; nothing here is logged. How they are opened: ``opened_slots.py``.
"""

from __future__ import annotations

import hmac
import os
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from memory_store.crypto.keys import (
    KEY_BYTES,
    SALT_BYTES,
    Argon2Parameters,
    SecretKey,
    decode_recovery_code,
    device_id,
    key_from_passphrase,
    key_from_strong_secret,
)
from memory_store.crypto.sealing import Place, SealingKey, seal, unseal
from memory_store.errors import BadInputError, FormatError, TamperedError, WrongKeyError
from memory_store.vault.passphrase_slots import (
    COSTLIEST,
    open_device_key,
    read_parameters,
    seal_device_key,
    times_our_own,
    written,
)
from memory_store.vault.storage import Storage
from memory_store.vault.storage.keys import TEXTS

PASSPHRASE = "passphrase"
KEY_FILE = "key-file"
KEYRING = "keyring"
RECOVERY = "recovery"
KINDS = (PASSPHRASE, KEY_FILE, KEYRING, RECOVERY)
OWNER = 0  # the principal who made the vault and may read all of it
MOST_SLOTS = 64  # a hostile file must not make every try cost thousands of derivations
COMMITMENT_BYTES = KEY_BYTES
MOST_CELL = 4_096  # bytes of any column of a row; ours have 270


class Slot(Struct, frozen=True):
    """One row of ``vault_slots``. The salt and the commitment are public."""

    id: str
    principal: int
    kind: str
    parameters: str
    salt: bytes
    commitment: bytes
    wrapped: bytes
    created: str = ""

    def place(self, vault: bytes) -> Place:
        """The associated data holds everything a thief could tune: kind, parameters and salt."""
        tuned = f"{self.kind}|{self.principal}|{self.parameters}|{self.salt.hex()}"
        return Place(vault, tuned, "vault_slots", "wrapped", self.id)

    def device_place(self, vault: bytes) -> Place:
        """Where the device key is sealed that the slot's passphrase needs."""
        return Place(vault, f"principal {self.principal}", "vault_slots", "device", self.id)

    def device(self) -> str:
        """The public id of the device key that is needed; empty for none. Raises FormatError."""
        return read_parameters(self.parameters).device if self.kind == PASSPHRASE else ""


class Secret(Struct, frozen=True):
    """What a user gave to open a vault: a passphrase as text, or random bytes, of some kind.

    ``two_factors``: whether a slot that is made of the passphrase also needs a device key.
    """

    kind: str
    passphrase: str | None = None
    key: SecretKey | None = None
    two_factors: bool = False

    @staticmethod
    def typed(text: str) -> Iterable[Secret]:
        """The readings of text typed at a prompt: a passphrase, or a recovery code."""
        recovery = decode_recovery_code(text)
        if recovery is not None:
            yield Secret(RECOVERY, key=recovery)
        yield Secret(PASSPHRASE, passphrase=text)

    def key_for(
        self, salt: bytes, cost: Argon2Parameters, device: SecretKey | None = None
    ) -> SecretKey:
        """The key-encryption key of this secret for a slot. The cost is a passphrase's."""
        if self.kind == PASSPHRASE:
            return key_from_passphrase(self.passphrase or "", salt, cost, device)
        if self.key is None:
            raise WrongKeyError("no secret was given")
        return key_from_strong_secret(self.key, salt)

    def __repr__(self) -> str:
        return f"<Secret {self.kind}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Nothing: a Struct's own gives every field to ``rich``, whatever its ``repr`` says."""
        return []


def check_of_another(slot: Slot) -> None:
    """Raise FormatError for a slot that keeps those from opening the vault whom it is not for.

    A passphrase that you type is tried on the slots of all: on one that cannot be read you
    would fail, at one that takes minutes you would wait.
    """
    if slot.kind not in KINDS or len(slot.salt) != SALT_BYTES:
        raise FormatError("this key slot is none that this version makes")
    if len(slot.commitment) != COMMITMENT_BYTES or not slot.wrapped:
        raise FormatError("this key slot is none that this version makes")
    if slot.kind != PASSPHRASE:
        return
    if times_our_own(read_parameters(slot.parameters).cost) > COSTLIEST:
        raise FormatError("this key slot takes everybody too long to try")


def check_room(storage: Storage) -> None:
    """Raise BadInputError where the vault has as many slots as it may have."""
    if storage.slots.count() >= MOST_SLOTS:
        raise BadInputError(f"a vault has at most {MOST_SLOTS} key slots: remove one", "slot")


def made_slot(
    vault: bytes,
    principal: int,
    secret: Secret,
    root: SecretKey,
    pin: bytes = b"",
    device: SecretKey | None = None,
) -> Slot:
    """A new slot that ``secret`` opens, not stored yet.

    ``pin`` is sealed with it: what a principal who is not the owner knows the owner by. A
    passphrase opens it with the ``device`` key alone, if there is one.
    """
    created = datetime.now(UTC).isoformat(timespec="seconds")
    empty = Slot(str(uuid.uuid4()), principal, secret.kind, "{}", b"", b"", b"", created)
    slot, encryption_key = filled(empty, vault, secret, root, pin, device)
    encryption_key.wipe()
    return slot


def filled(
    slot: Slot,
    vault: bytes,
    secret: Secret,
    root: SecretKey,
    pin: bytes,
    device: SecretKey | None,
) -> tuple[Slot, SecretKey]:
    """The slot with a new salt, at today's cost, and its key-encryption key."""
    cost, salt = Argon2Parameters(), os.urandom(SALT_BYTES)
    encryption_key = secret.key_for(salt, cost, device)
    commitment = bytes(encryption_key.derive("commitment").buffer)
    slot = replace(slot, salt=salt, commitment=commitment)
    if secret.kind == PASSPHRASE:
        slot = replace(slot, parameters=_with_device(slot, vault, cost, root, device))
    return rewrapped(slot, vault, encryption_key, root, pin), encryption_key


def _with_device(
    slot: Slot, vault: bytes, cost: Argon2Parameters, root: SecretKey, device: SecretKey | None
) -> str:
    if device is None:
        return written(cost)
    sealed = seal_device_key(slot.device_place(vault), root, device)
    return written(cost, device_id(device, vault), sealed)


def device_key_of(slot: Slot, vault: bytes, root: SecretKey) -> SecretKey | None:
    """The device key that a passphrase's slot needs, by the principal's root key; None for none.

    Raises TamperedError where it is another's, FormatError for parameters that cannot be read.
    """
    if slot.kind != PASSPHRASE:
        return None
    stated = read_parameters(slot.parameters)
    if not stated.device:
        return None
    device = open_device_key(slot.device_place(vault), root, stated.device_key)
    if device_id(device, vault) != stated.device:
        raise TamperedError(f"vault_slots.parameters of {slot.id}: name another device key")
    return device


def with_new_root(
    slot: Slot, vault: bytes, encryption_key: SecretKey, before: SecretKey, root: SecretKey
) -> Slot:
    """The owner's same slot with another root key in it. Raises TamperedError, FormatError.

    ``before`` is the root key of until now, ``encryption_key`` the slot's.
    """
    commitment = encryption_key.derive("commitment")
    if not hmac.compare_digest(commitment.buffer, slot.commitment):
        raise BadInputError("this key was wrapped anew meanwhile: unlock the vault again", "slot")
    unseal(SealingKey(encryption_key.derive("wrap")), slot.place(vault), slot.wrapped)
    device = device_key_of(slot, vault, before)
    if device is not None:
        cost = read_parameters(slot.parameters).cost
        slot = replace(slot, parameters=_with_device(slot, vault, cost, root, device))
    return rewrapped(slot, vault, encryption_key, root)


def rewrapped(
    slot: Slot, vault: bytes, encryption_key: SecretKey, root: SecretKey, pin: bytes = b""
) -> Slot:
    """The same slot with another root key in it."""
    content = root.buffer + pin
    key = SealingKey(encryption_key.derive("wrap"))
    try:
        return replace(slot, wrapped=seal(key, slot.place(vault), content))
    finally:
        content[:] = bytes(len(content))
        key.wipe()


def insert_slots(storage: Storage, *slots: Slot) -> None:
    """Store slots, in the places of those of their ids (inside the caller's transaction)."""
    storage.slots.insert([asdict(slot) for slot in slots])


def list_slots(storage: Storage, principal: int | None = None) -> list[Slot]:
    """Every slot that can be read, or those of a principal.

    Raises FormatError for more than a vault ever has.
    """
    slots, _ = read_slots(storage)
    return [slot for slot in slots if principal is None or slot.principal == principal]


def read_slots(storage: Storage) -> tuple[list[Slot], list[TamperedError]]:
    """Every slot that can be read, oldest first, and what is wrong with the other rows.

    Raises FormatError for more than a vault ever has.
    """
    rows = storage.slots.cells(MOST_SLOTS + 1, MOST_CELL)
    if len(rows) > MOST_SLOTS:
        raise FormatError(f"this vault has more than {MOST_SLOTS} key slots")
    slots: list[Slot] = []
    damaged: list[TamperedError] = []
    for row in rows:
        try:
            slots.append(_slot(*row))
        except TamperedError as error:
            damaged.append(error)
    return slots, damaged


def _slot(*cells: Any) -> Slot:
    """What :meth:`.Slots.cells` gives. Raises TamperedError for what is no slot."""
    *found, principal = cells
    name = found[0].decode("utf-8", "replace")[:36] if found[0] else "?"
    if any(cell is None for cell in cells):
        raise TamperedError(f"vault_slots of {name}: a part of it was taken away")
    if any(len(cell) > MOST_CELL for cell in found):
        raise TamperedError(f"vault_slots of {name}: is larger than a key slot is")
    try:
        id, kind, parameters, created = (cell.decode() for cell in found[: len(TEXTS)])
    except UnicodeDecodeError:
        raise TamperedError(f"vault_slots of {name}: holds what is no text") from None
    salt, commitment, wrapped = found[len(TEXTS) :]
    return Slot(id, principal, kind, parameters, salt, commitment, wrapped, created)
