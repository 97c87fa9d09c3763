"""Public keys and grants, written from docs/how-it-works/format.md alone.

They let the key of another person open a vault.

Nothing of ``memory_store`` is used.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import struct
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from independent_sealing import Refused, derived, prefixed

X25519, HYBRID = 0x0020, 0x647A
HPKE_KEY_BYTES = {X25519: 32, HYBRID: 1184 + 32}
VERIFY_BYTES, SIGNATURE_BYTES = 32, 64
LABEL = b"memory-store/1/"


@dataclass(frozen=True)
class Grant:
    """A wrapped collection key of an actor who is not the owner: where it stands, and what is."""

    vault: bytes
    collection: str
    epoch: int
    principal: int
    blob: Any

    def opened(self, root: bytes, owner: bytes) -> bytes:
        """The keys in it, for a root key, if the owner with that identity signed it."""
        where = "vault_collection_keys.wrapped"
        if not isinstance(self.blob, bytes) or len(self.blob) < 3 + SIGNATURE_BYTES:
            raise Refused("too short", where)
        message, signature = self.blob[:-SIGNATURE_BYTES], self.blob[-SIGNATURE_BYTES:]
        form, kem = struct.unpack(">BH", message[:3])
        if form != 2 or kem not in HPKE_KEY_BYTES:
            raise Refused("unknown format", where)
        info = prefixed(
            LABEL + b"grant",
            self.vault,
            self.collection.encode(),
            struct.pack(">q", self.epoch),
            struct.pack(">q", self.principal),
            owner,
            identity_of(root, kem),
        )
        try:
            signed = prefixed(LABEL + b"signed grant", info, message)
            Ed25519PublicKey.from_public_bytes(owner[-VERIFY_BYTES:]).verify(signature, signed)
            return suite(kem).decrypt(message[3:], private_key(root, kem), info)
        except (InvalidSignature, InvalidTag, ValueError):
            raise Refused("not authentic", where) from None


def share_content(vault: bytes, collection: str, share: bytes, owner: bytes) -> bytes:
    """The JSON in a share, if the owner with that identity signed it."""
    where = "vault_shares.sealed"
    if len(share) < 1 + SIGNATURE_BYTES or share[0] != 3:
        raise Refused("unknown format", where)
    signature, content = share[1 : 1 + SIGNATURE_BYTES], share[1 + SIGNATURE_BYTES :]
    try:
        revision = struct.pack(">q", json.loads(content)["revision"])
        parts = (vault, collection.encode(), revision, content)
        signed = prefixed(LABEL + b"signed share", *parts)
        Ed25519PublicKey.from_public_bytes(owner[-VERIFY_BYTES:]).verify(signature, signed)
    except (InvalidSignature, ValueError, KeyError, TypeError, struct.error):
        raise Refused("not authentic", where) from None
    return content


def known_identity(connection: sqlite3.Connection, principal: int, digest: bytes) -> bytes:
    """A person's public keys, if they are those of the digest."""
    where = f"vault_identities {principal}"
    row = connection.execute(
        "select public from vault_identities where principal = ?", (principal,)
    ).fetchone()
    if row is None or not isinstance(row[0], bytes) or len(row[0]) < 3:
        raise Refused("another identity", where)
    form, kem = struct.unpack(">BH", row[0][:3])
    if form != 1 or len(row[0]) != 3 + HPKE_KEY_BYTES.get(kem, 0) + VERIFY_BYTES:
        raise Refused("unknown format", where)
    if digest_of(row[0]) != digest:
        raise Refused("another identity", where)
    return bytes(row[0])


def digest_of(identity: bytes) -> bytes:
    return hashlib.sha256(LABEL + b"identity\x00" + identity).digest()


def identity_of(root: bytes, kem: int) -> bytes:
    """The public keys of a root key."""
    public = b"".join(half.public_key().public_bytes_raw() for half in halves(root, kem))
    verify = Ed25519PrivateKey.from_private_bytes(derived(root, "identity-sign")).public_key()
    return struct.pack(">BH", 1, kem) + public + verify.public_bytes_raw()


def halves(root: bytes, kem: int) -> list[Any]:
    """The private keys: X25519's, before it ML-KEM-768's in the hybrid."""
    exchange = X25519PrivateKey.from_private_bytes(derived(root, "identity-x25519"))
    if kem == X25519:
        return [exchange]
    from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey

    seed = derived(root, "identity-mlkem-d") + derived(root, "identity-mlkem-z")
    return [MLKEM768PrivateKey.from_seed_bytes(seed), exchange]


def private_key(root: bytes, kem: int) -> Any:
    found = halves(root, kem)
    return found[0] if kem == X25519 else hpke.MLKEM768X25519PrivateKey(*found)


def suite(kem: int) -> hpke.Suite:
    chosen = hpke.KEM.X25519 if kem == X25519 else hpke.KEM.MLKEM768_X25519
    return hpke.Suite(chosen, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)
