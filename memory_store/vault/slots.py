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
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from memory_store.crypto.keys import (
    SALT_BYTES,
    Argon2Parameters,
    SecretKey,
    decode_recovery_code,
    key_from_passphrase,
    key_from_strong_secret,
)
from memory_store.crypto.sealing import Place, SealingKey, seal, unseal
from memory_store.errors import FormatError, WrongKeyError
from memory_store.sqlite import sqlite3

PASSPHRASE = "passphrase"
KEY_FILE = "key-file"
KEYRING = "keyring"
RECOVERY = "recovery"
KINDS = (PASSPHRASE, KEY_FILE, KEYRING, RECOVERY)
MOST_SLOTS = 64  # a hostile file must not make every try cost thousands of derivations


@dataclass(frozen=True, slots=True)
class Slot:
    """One row of ``vault_slots``. The salt and the commitment are public."""

    id: str
    principal: int
    kind: str
    parameters: str
    salt: bytes
    commitment: bytes
    wrapped: bytes

    def place(self, vault: bytes) -> Place:
        """The associated data holds everything a thief could tune: kind, parameters and salt."""
        tuned = f"{self.kind}|{self.principal}|{self.parameters}|{self.salt.hex()}"
        return Place(vault, tuned, "vault_slots", "wrapped", self.id)


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
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


def _argon2(parameters: str) -> Argon2Parameters:
    try:
        cost = Argon2Parameters(**json.loads(parameters))
        cost.check()
    except (TypeError, ValueError):
        raise FormatError("this vault's passphrase slot has parameters nobody can read") from None
    return cost


def add_slot(
    connection: sqlite3.Connection, vault: bytes, principal: int, secret: Secret, root: SecretKey
) -> str:
    """Let ``secret`` open the principal's root key. Returns the new slot's id."""
    parameters = json.dumps(asdict(Argon2Parameters())) if secret.kind == PASSPHRASE else "{}"
    salt = os.urandom(SALT_BYTES)
    encryption_key = secret.key_for(salt, parameters)
    commitment = bytes(encryption_key.derive("commitment").buffer)
    slot = Slot(str(uuid.uuid4()), principal, secret.kind, parameters, salt, commitment, b"")
    wrapped = seal(SealingKey(encryption_key.derive("wrap")), slot.place(vault), root.buffer)
    encryption_key.wipe()
    connection.execute(
        """
        insert into vault_slots
            (id, principal, kind, parameters, salt, commitment, wrapped, created)
        values (?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            slot.id,
            principal,
            secret.kind,
            parameters,
            salt,
            commitment,
            wrapped,
            datetime.now(UTC).isoformat(timespec="seconds"),
        ),
    )
    return slot.id


def list_slots(connection: sqlite3.Connection) -> list[Slot]:
    """Every slot. Raises FormatError when there are more than any honest vault has."""
    rows = connection.execute(
        """
        select id, principal, kind, parameters, salt, commitment, wrapped
        from vault_slots order by created, id limit ?
        """,
        (MOST_SLOTS + 1,),
    ).fetchall()
    if len(rows) > MOST_SLOTS:
        raise FormatError(f"this vault has more than {MOST_SLOTS} key slots")
    return [Slot(*row) for row in rows]


def open_root(
    connection: sqlite3.Connection, vault: bytes, secrets: Iterable[Secret]
) -> tuple[int, SecretKey]:
    """The principal and root key that one of the secrets opens. Raises WrongKeyError."""
    slots = list_slots(connection)
    tried: set[str] = set()
    for secret in secrets:
        tried.add(secret.kind)
        for slot in slots:
            if slot.kind == secret.kind:
                root = _try_slot(slot, vault, secret)
                if root is not None:
                    return slot.principal, root
    raise WrongKeyError(_wrong_key_message(tried, {slot.kind for slot in slots}))


def _try_slot(slot: Slot, vault: bytes, secret: Secret) -> SecretKey | None:
    encryption_key = secret.key_for(slot.salt, slot.parameters)
    try:
        commitment = encryption_key.derive("commitment")
        if not hmac.compare_digest(commitment.buffer, slot.commitment):
            return None
        opened = unseal(SealingKey(encryption_key.derive("wrap")), slot.place(vault), slot.wrapped)
        return SecretKey(opened)
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
