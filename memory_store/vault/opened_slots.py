"""Opening a key slot: a secret is tried on those of its kind, and gives a root key.

Boundary: a wrong secret differs from a right one only by a commitment compared in constant
time. AES-GCM does not commit to its key, so the commitment is checked first.

Anyone who can write to the file can add rows, so a row is believed for nothing but its own content:
one that cannot be read, or that asks for too much, never keeps another from being tried.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, replace

from memory_store.crypto.keys import KEY_BYTES, Argon2Parameters, SecretKey
from memory_store.crypto.sealing import SealingKey, unseal
from memory_store.errors import (
    DeviceKeyError,
    FormatError,
    MemoryStoreError,
    TamperedError,
    WrongKeyError,
)
from memory_store.vault import device_keys
from memory_store.vault.passphrase_slots import (
    COSTLIEST,
    COSTLIEST_FILE,
    read_parameters,
    times_our_own,
)
from memory_store.vault.slots import (
    KEY_FILE,
    KEYRING,
    KINDS,
    PASSPHRASE,
    RECOVERY,
    Secret,
    Slot,
    device_key_of,
    filled,
    read_slots,
)
from memory_store.vault.storage import Storage


class OpenedSlot(Struct, frozen=True):
    """What a slot held: the principal's root key, and how the owner is known (not for owners).

    ``key`` is the slot's key-encryption key, ``secret`` what opened it.
    """

    slot: Slot
    key: SecretKey
    root: SecretKey
    secret: Secret
    pin: bytes = b""

    __repr__ = object.__repr__


def open_root(
    storage: Storage,
    vault: bytes,
    secrets: Iterable[Secret],
    database: Path | None = None,
) -> OpenedSlot:
    """The slot that one of the secrets opens; ``database`` is the file, for device keys.

    Raises WrongKeyError; DeviceKeyError where a passphrase could not be tried for want of one;
    FormatError, TamperedError where a slot that it may open is not what was written.
    """
    slots, damaged = read_slots(storage)
    tries = _Tries(vault, database, damaged)
    for secret in secrets:
        opened = tries.first_opened(secret, slots)
        if opened is not None:
            return opened
    raise tries.refusal({slot.kind for slot in slots})


class _Tries:
    """What was tried on a vault's slots, and how those answered that it did not open."""

    def __init__(
        self, vault: bytes, database: Path | None, damaged: Sequence[TamperedError]
    ) -> None:
        self.vault, self.database = vault, database
        self.kinds: set[str] = set()  # of the secrets
        self.wrong: set[str] = set()  # kinds of slots that a secret was tried on, in vain
        self.changed: TamperedError | None = None  # the secret was right, and the slot is not
        self.lacking: DeviceKeyError | None = None
        self.unread: list[MemoryStoreError] = list(damaged)

    def first_opened(self, secret: Secret, slots: Iterable[Slot]) -> OpenedSlot | None:
        self.kinds.add(secret.kind)
        matching = [slot for slot in slots if slot.kind == secret.kind]
        for slot in self._worth_it(matching) if secret.kind == PASSPHRASE else matching:
            try:
                opened = _try_slot(slot, self.vault, secret, self.database)
            except DeviceKeyError as error:
                self.lacking = self.lacking or error
            except TamperedError as error:
                self.changed = self.changed or error
            except FormatError as error:
                self.unread.append(error)
            else:
                if opened is not None:
                    return opened
                self.wrong.add(secret.kind)
        return None

    def _worth_it(self, slots: Iterable[Slot]) -> list[Slot]:
        """Those whose cost can be read, the cheap ones first; not those that cost too much
        together."""
        costs: list[tuple[float, Slot]] = []
        for slot in slots:
            try:
                costs.append((times_our_own(read_parameters(slot.parameters).cost), slot))
            except FormatError as error:
                self.unread.append(error)
        costs.sort(key=lambda one: one[0])
        if sum(cost for cost, _ in costs) > COSTLIEST_FILE:
            self.unread.append(
                FormatError("this vault's passphrase slots together ask for an unreasonable cost")
            )
            costs = [(cost, slot) for cost, slot in costs if cost <= COSTLIEST]
        return [slot for _, slot in costs]

    def refusal(self, present: set[str]) -> MemoryStoreError:
        """Why none of them opened."""
        if self.changed is not None:
            return self.changed
        if not self.wrong and (self.lacking or self.unread):
            return self.lacking or self.unread[0]
        message = _wrong_key_message(self.kinds, present)
        if PASSPHRASE in self.kinds and self.lacking is not None:
            message += f"; for another passphrase of it: {self.lacking}"
        if self.unread:
            message += f"; another key slot was not tried: {self.unread[0]}"
        return WrongKeyError(message)


def _try_slot(slot: Slot, vault: bytes, secret: Secret, database: Path | None) -> OpenedSlot | None:
    encryption_key = _key_of(slot, vault, secret, database)
    try:
        return _opened(slot, vault, encryption_key, secret)
    finally:
        encryption_key.wipe()


def _opened(slot: Slot, vault: bytes, key: SecretKey, secret: Secret) -> OpenedSlot | None:
    """What a key-encryption key finds in a slot; ``None`` where it is another's."""
    commitment = key.derive("commitment")
    if not hmac.compare_digest(commitment.buffer, slot.commitment):
        return None
    opened = unseal(SealingKey(key.derive("wrap")), slot.place(vault), slot.wrapped)
    root, pin = SecretKey(opened[:KEY_BYTES]), bytes(opened[KEY_BYTES:])
    return OpenedSlot(slot, SecretKey(key.buffer), root, secret, pin)


def _key_of(slot: Slot, vault: bytes, secret: Secret, database: Path | None) -> SecretKey:
    if secret.kind != PASSPHRASE:
        return secret.key_for(slot.salt, Argon2Parameters())
    stated = read_parameters(slot.parameters)
    device = device_keys.read(vault, stated.device, database) if stated.device else None
    try:
        return secret.key_for(slot.salt, stated.cost, device)
    finally:
        if device is not None:
            device.wipe()


def reopened(slot: Slot, vault: bytes, key: SecretKey) -> OpenedSlot:
    """A slot that was opened before, perhaps with another root key in it by now.

    ``key`` is its key-encryption key. Raises TamperedError where it is not.
    """
    opened = _opened(slot, vault, key, Secret(slot.kind))
    if opened is None:
        raise TamperedError(f"vault_slots of {slot.id}: another key opens it now")
    return opened


def is_cheap(slot: Slot) -> bool:
    """Whether guessing at a passphrase's slot costs less than at one that is made today."""
    return slot.kind == PASSPHRASE and times_our_own(read_parameters(slot.parameters).cost) < 1


def strengthened(storage: Storage, vault: bytes, opened: OpenedSlot) -> OpenedSlot:
    """A cheap slot at today's cost, stored in its place under the same id, with a new salt.

    It needs the same device key, if it needed one. Raises what writing raises; where another
    process was faster, the slot is as it was opened.
    """
    before = opened.slot
    device = device_key_of(before, vault, opened.root)
    fresh, key = filled(before, vault, opened.secret, opened.root, opened.pin, device)
    try:
        with storage.transaction():
            changed = storage.slots.replace(asdict(fresh), before.commitment)
    except BaseException:
        key.wipe()
        raise
    superseded = opened.key if changed else key
    superseded.wipe()
    return replace(opened, slot=fresh, key=key) if changed else opened


_NAMES: dict[str, str] = {
    PASSPHRASE: "passphrase",
    KEY_FILE: "key file",
    KEYRING: "key in the OS keyring",
    RECOVERY: "recovery code",
}


def _wrong_key_message(tried: set[str], present: set[str]) -> str:
    def listed(kinds: set[str]) -> str:
        return " or ".join(_NAMES[kind] for kind in KINDS if kind in kinds)

    if tried & present:
        return f"wrong {listed(tried & present)}: it opens no key slot of this vault"
    return f"this vault is not opened by a {listed(tried)}; it has: {listed(present)}"
