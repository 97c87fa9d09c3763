"""Key slots: several secrets, each of which opens the same principal's root key (as LUKS does).

Boundary: takes a secret, gives a root key. Which slots exist, of what kind, is in clear; nothing
here is logged, and a wrong secret is told apart from a right one only by a commitment compared in
constant time. AES-GCM does not commit to its key, so the commitment is checked first.
"""

from __future__ import annotations

import hmac
import json
import os
import uuid
from collections.abc import Iterable
from contextlib import suppress
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
    key_from_passphrase,
    key_from_strong_secret,
)
from memory_store.crypto.sealing import Place, SealingKey, seal, unseal
from memory_store.errors import BadInputError, FormatError, TamperedError, WrongKeyError
from memory_store.sqlite import sqlite3

PASSPHRASE = "passphrase"
KEY_FILE = "key-file"
KEYRING = "keyring"
RECOVERY = "recovery"
KINDS = (PASSPHRASE, KEY_FILE, KEYRING, RECOVERY)
OWNER = 0  # the principal who made the vault and may read all of it
MOST_SLOTS = 64  # a hostile file must not make every try cost thousands of derivations
COSTLIEST = 4  # times our own passphrase's: of a slot that comes from somebody else
COSTLIEST_FILE = 512  # times our own: of all slots together, a minute or two where all are tried
COMMITMENT_BYTES = KEY_BYTES


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


class Secret(Struct, frozen=True):
    """What a user gave to open a vault: a passphrase as text, or random bytes, of some kind."""

    kind: str
    passphrase: str | None = None
    key: SecretKey | None = None

    @staticmethod
    def typed(text: str) -> Iterable[Secret]:
        """The readings of text typed at a prompt: a passphrase, or a recovery code."""
        recovery = decode_recovery_code(text)
        if recovery is not None:
            yield Secret(RECOVERY, key=recovery)
        yield Secret(PASSPHRASE, passphrase=text)

    def key_for(self, salt: bytes, parameters: str) -> SecretKey:
        """The key-encryption key of this secret for a slot."""
        if self.kind == PASSPHRASE:
            return key_from_passphrase(self.passphrase or "", salt, _argon2(parameters))
        if self.key is None:
            raise WrongKeyError("no secret was given")
        return key_from_strong_secret(self.key, salt)

    def __repr__(self) -> str:
        return f"<Secret {self.kind}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Nothing: a Struct's own tells every field to ``rich``, whatever its ``repr`` says."""
        return []


def _argon2(parameters: str) -> Argon2Parameters:
    try:
        cost = Argon2Parameters(**json.loads(parameters))
        cost.check()
    except (TypeError, ValueError):
        raise FormatError("this vault's passphrase slot has parameters nobody can read") from None
    return cost


def _times_our_own(cost: Argon2Parameters) -> float:
    """How many derivations of our own parameters would take as long."""
    usual = Argon2Parameters()
    return cost.memory_kib * cost.iterations / (usual.memory_kib * usual.iterations)


def check_of_another(slot: Slot) -> None:
    """Raise FormatError for a slot that keeps those from opening the vault whom it is not for.

    Whoever types a passphrase has it tried on the slots of all: on one that nobody can read they
    would fail, at one that takes minutes they would wait.
    """
    if slot.kind not in KINDS or len(slot.salt) != SALT_BYTES:
        raise FormatError("this key slot is none that this version makes")
    if len(slot.commitment) != COMMITMENT_BYTES or not slot.wrapped:
        raise FormatError("this key slot is none that this version makes")
    if slot.kind == PASSPHRASE and _times_our_own(_argon2(slot.parameters)) > COSTLIEST:
        raise FormatError("this key slot takes everybody too long to try")


def add_slot(
    connection: sqlite3.Connection,
    vault: bytes,
    principal: int,
    secret: Secret,
    root: SecretKey,
    pin: bytes = b"",
) -> str:
    """Let ``secret`` open the principal's root key. Returns the new slot's id.

    ``pin`` is sealed with it: what a principal who is not the owner knows the owner by.
    """
    check_room(connection)
    slot = made_slot(vault, principal, secret, root, pin)
    insert_slot(connection, slot)
    return slot.id


def check_room(connection: sqlite3.Connection) -> None:
    """Raise BadInputError where the vault has as many slots as it may have."""
    (held,) = connection.execute("select count(*) from vault_slots").fetchone()
    if held >= MOST_SLOTS:
        raise BadInputError(f"a vault has at most {MOST_SLOTS} key slots: remove one", "slot")


def made_slot(
    vault: bytes, principal: int, secret: Secret, root: SecretKey, pin: bytes = b""
) -> Slot:
    """A new slot that ``secret`` opens, not stored yet."""
    parameters = json.dumps(asdict(Argon2Parameters())) if secret.kind == PASSPHRASE else "{}"
    salt = os.urandom(SALT_BYTES)
    encryption_key = secret.key_for(salt, parameters)
    commitment = bytes(encryption_key.derive("commitment").buffer)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    slot = Slot(
        str(uuid.uuid4()), principal, secret.kind, parameters, salt, commitment, b"", created
    )
    wrapped = rewrapped(slot, vault, encryption_key, root, pin)
    encryption_key.wipe()
    return wrapped


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


def insert_slot(connection: sqlite3.Connection, slot: Slot) -> None:
    """Store a slot, in the place of one of its id (inside the caller's transaction)."""
    connection.execute(
        """
        insert or replace into vault_slots
            (id, principal, kind, parameters, salt, commitment, wrapped, created)
        values (:id, :principal, :kind, :parameters, :salt, :commitment, :wrapped, :created)
        """,
        asdict(slot),
    )


def list_slots(connection: sqlite3.Connection, principal: int | None = None) -> list[Slot]:
    """Every slot, or those of a principal. Raises FormatError for more than a vault ever has."""
    rows = connection.execute(
        """
        select id, principal, kind, parameters, salt, commitment, wrapped, created
        from vault_slots order by created, id limit ?
        """,
        (MOST_SLOTS + 1,),
    ).fetchall()
    if len(rows) > MOST_SLOTS:
        raise FormatError(f"this vault has more than {MOST_SLOTS} key slots")
    slots = [_whole(Slot(*row)) for row in rows]
    return [slot for slot in slots if principal is None or slot.principal == principal]


def _whole(slot: Slot) -> Slot:
    if all(isinstance(part, bytes) for part in (slot.salt, slot.commitment, slot.wrapped)):
        return slot
    raise TamperedError(f"vault_slots of {slot.id}: a part of it was taken away")


class OpenedSlot(Struct, frozen=True):
    """What a slot held: the principal's root key, and how the owner is known (not for owners).

    ``key`` is the slot's key-encryption key.
    """

    slot: Slot
    key: SecretKey
    root: SecretKey
    pin: bytes = b""

    __repr__ = object.__repr__


def open_root(
    connection: sqlite3.Connection, vault: bytes, secrets: Iterable[Secret]
) -> OpenedSlot:
    """The slot that one of the secrets opens. Raises WrongKeyError."""
    slots = list_slots(connection)
    tried: set[str] = set()
    for secret in secrets:
        tried.add(secret.kind)
        matching = [slot for slot in slots if slot.kind == secret.kind]
        if secret.kind == PASSPHRASE:
            _check_tries(matching)
        for slot in matching:
            opened = _try_slot(slot, vault, secret)
            if opened is not None:
                return opened
    raise WrongKeyError(_wrong_key_message(tried, {slot.kind for slot in slots}))


def _check_tries(slots: Iterable[Slot]) -> None:
    """Raise FormatError where a passphrase that opens none of these slots would take very long."""
    cost = 0.0
    for slot in slots:
        with suppress(FormatError):  # refused when its turn comes: one before it may open
            cost += _times_our_own(_argon2(slot.parameters))
    if cost > COSTLIEST_FILE:
        raise FormatError("this vault's passphrase slots together ask for an unreasonable cost")


def _try_slot(slot: Slot, vault: bytes, secret: Secret) -> OpenedSlot | None:
    encryption_key = secret.key_for(slot.salt, slot.parameters)
    try:
        commitment = encryption_key.derive("commitment")
        if not hmac.compare_digest(commitment.buffer, slot.commitment):
            return None
        opened = unseal(SealingKey(encryption_key.derive("wrap")), slot.place(vault), slot.wrapped)
        root, pin = SecretKey(opened[:KEY_BYTES]), bytes(opened[KEY_BYTES:])
        return OpenedSlot(slot, SecretKey(encryption_key.buffer), root, pin)
    finally:
        encryption_key.wipe()


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
