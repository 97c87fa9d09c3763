"""Identities: the public keys of a principal, derived from a root key.

Boundary: private keys are derived when they are used and dropped at once; public ones, sealed
messages and signatures go out. HPKE (RFC 9180) is that of ``cryptography``: in base mode with
HKDF-SHA256 and AES-256-GCM. The key encapsulation is the hybrid of ML-KEM-768 and X25519 where the
library has it (post-quantum: what is copied today is not opened in thirty years), X25519 where it
has not; which one is said by its number in IANA's registry.

A public identity is ``format (1) ‖ KEM (2) ‖ HPKE public key ‖ Ed25519 public key (32)``, the HPKE
key being ML-KEM-768's encapsulation key (1,184 bytes) and X25519's (32), or X25519's alone.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any

from cryptography.exceptions import InvalidSignature, InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from msgspec import Struct

from memory_store.crypto.keys import LABEL_PREFIX, SecretKey
from memory_store.errors import FormatError, TamperedError

FORMAT = 1
HEADER = struct.Struct(">BH")
X25519 = 0x0020  # RFC 9180, 7.1
HYBRID = 0x647A  # draft-ietf-hpke-pq: X-Wing, ML-KEM-768 with X25519
KEY_LENGTHS = {X25519: 32, HYBRID: 1184 + 32}
MLKEM_BYTES = 1184
VERIFY_BYTES = 32
SIGNATURE_BYTES = 64


class Identity(Struct, frozen=True):
    """A principal's public keys."""

    kem: int
    hpke_key: bytes
    verify_key: bytes

    def encoded(self) -> bytes:
        return HEADER.pack(FORMAT, self.kem) + self.hpke_key + self.verify_key

    @classmethod
    def decoded(cls, data: bytes) -> Identity:
        """Raises FormatError for what is no identity, or one of a kind this version cannot use."""
        if len(data) < HEADER.size or data[0] != FORMAT:
            raise FormatError("this is no identity that this version can read")
        _, kem = HEADER.unpack_from(data)
        keys = data[HEADER.size :]
        if kem not in KEY_LENGTHS or len(keys) != KEY_LENGTHS[kem] + VERIFY_BYTES:
            raise FormatError("this identity has keys of a kind that this version cannot use")
        return cls(kem, keys[:-VERIFY_BYTES], keys[-VERIFY_BYTES:])

    def digest(self) -> bytes:
        """SHA-256 of the public keys: what an identity is known by."""
        return hashlib.sha256(LABEL_PREFIX.encode() + b"identity\x00" + self.encoded()).digest()

    def fingerprint(self) -> str:
        """The digest as people read it to one another: groups of five digits."""
        return fingerprint(self.digest())

    def principal(self) -> int:
        """The principal's number in every vault: from the keys, so that it fits no others."""
        return int.from_bytes(self.digest()[-6:], "big") | 1

    def sealed(self, content: bytes | bytearray, info: bytes) -> bytes:
        """``content`` for the holder of the private keys alone, bound to ``info``."""
        return suite(self.kem).encrypt(bytes(content), _public(self.kem, self.hpke_key), info)

    def check_signature(self, signature: bytes, message: bytes, what: str) -> None:
        """Raise TamperedError unless the holder of the private keys signed ``message``."""
        try:
            Ed25519PublicKey.from_public_bytes(self.verify_key).verify(signature, message)
        except (InvalidSignature, ValueError):
            raise TamperedError(f"{what}: not signed by whom it says") from None


def fingerprint(digest: bytes) -> str:
    """Groups of five digits, each from four bytes of a digest."""
    groups = (int.from_bytes(digest[n : n + 4], "big") for n in range(0, 32, 4))
    return " ".join(f"{group % 100_000:05}" for group in groups)


def strongest_kem() -> int:
    """The hybrid where the cryptography library and its OpenSSL have ML-KEM, else X25519."""
    try:
        _mlkem_private(SecretKey(bytes(64)))
    except (ImportError, AttributeError, UnsupportedAlgorithm):
        return X25519
    return HYBRID


def identity_of(root: SecretKey, kem: int) -> Identity:
    """The public keys that belong to a root key."""
    halves = (half.public_key().public_bytes_raw() for half in _halves(root, kem))
    return Identity(kem, b"".join(halves), _signing(root).public_key().public_bytes_raw())


def signature(root: SecretKey, message: bytes) -> bytes:
    """A root key's Ed25519 signature."""
    return _signing(root).sign(message)


def opened(root: SecretKey, kem: int, sealed: bytes, info: bytes, what: str) -> bytearray:
    """What was sealed for the identity of a root key. Raises TamperedError."""
    try:
        return bytearray(suite(kem).decrypt(sealed, _private(root, kem), info))
    except (InvalidTag, ValueError):
        raise TamperedError(f"{what}: not sealed for this key, or changed since") from None


def suite(kem: int) -> hpke.Suite:
    """HPKE as identities use it. Raises FormatError where this machine has not that KEM."""
    kems = {X25519: "X25519", HYBRID: "MLKEM768_X25519"}
    chosen = getattr(hpke.KEM, kems.get(kem, ""), None)
    if chosen is None:
        raise FormatError(f"this machine cannot use the key encapsulation {kem:#06x}")
    return hpke.Suite(chosen, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)


def _signing(root: SecretKey) -> Ed25519PrivateKey:
    seed = root.derive("identity-sign")
    try:
        return Ed25519PrivateKey.from_private_bytes(seed.buffer)
    finally:
        seed.wipe()


def _private(root: SecretKey, kem: int) -> Any:
    """The HPKE private key of a root key."""
    halves = _halves(root, kem)
    return halves[0] if kem == X25519 else hpke.MLKEM768X25519PrivateKey(*halves)


def _halves(root: SecretKey, kem: int) -> list[Any]:
    """The private keys that it is made of, in the order of the public ones."""
    exchange = root.derive("identity-x25519")
    ordinary = X25519PrivateKey.from_private_bytes(exchange.buffer)
    exchange.wipe()
    if kem == X25519:
        return [ordinary]
    parts = [root.derive("identity-mlkem-d"), root.derive("identity-mlkem-z")]
    seed = SecretKey(parts[0].buffer + parts[1].buffer)  # FIPS 203's d and z, 32 bytes each
    lattice = _mlkem_private(seed)
    for key in (*parts, seed):
        key.wipe()
    return [lattice, ordinary]


def _mlkem_private(seed: SecretKey) -> Any:
    from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey

    return MLKEM768PrivateKey.from_seed_bytes(seed.buffer)


def _public(kem: int, key: bytes) -> Any:
    if kem == X25519:
        return X25519PublicKey.from_public_bytes(key)
    from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PublicKey

    lattice = MLKEM768PublicKey.from_public_bytes(key[:MLKEM_BYTES])
    ordinary = X25519PublicKey.from_public_bytes(key[MLKEM_BYTES:])
    return hpke.MLKEM768X25519PublicKey(lattice, ordinary)
