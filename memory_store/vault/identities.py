"""The public keys that a vault's file holds: the owner's, and those of whom he shares with.

Boundary: public keys alone. They stand in clear, so nothing is believed of them by itself: the
owner knows others by the digests in his sealed settings, they know him by the digest that is sealed
in their key slots.
"""

from __future__ import annotations

from memory_store.crypto.identities import Identity, identity_of, strongest_kem
from memory_store.crypto.keys import SecretKey
from memory_store.errors import FormatError, TamperedError
from memory_store.vault.slots import OWNER
from memory_store.vault.storage import Storage

TABLE = "vault_identities"


def read_identity(storage: Storage, principal: int) -> Identity | None:
    """A principal's public keys, ``None`` where the file holds none. Raises TamperedError."""
    public = storage.principals.public(principal)
    if public is None:
        return None
    try:
        return Identity.decoded(public)
    except FormatError as error:
        raise TamperedError(f"{TABLE} {principal}: {error}") from None


def known_identity(storage: Storage, principal: int, digest: bytes) -> Identity:
    """A principal's public keys, if they are those of that digest. Raises TamperedError."""
    found = read_identity(storage, principal)
    if found is None or found.digest() != digest:
        raise TamperedError(f"{TABLE} {principal}: the keys of another person")
    return found


def publish_owner(storage: Storage, root: SecretKey) -> Identity:
    """Store the owner's public keys, if they are not there yet (in the caller's transaction)."""
    present = read_identity(storage, OWNER)
    identity = identity_of(root, present.kem if present else strongest_kem())
    if identity != present:
        identity = identity_of(root, strongest_kem())
        storage.principals.write_public(OWNER, identity.encoded())
    return identity
