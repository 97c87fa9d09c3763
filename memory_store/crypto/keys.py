"""Secret keys and how they come from one another.

Boundary: key bytes live in :class:`SecretKey` buffers, which :meth:`SecretKey.wipe` overwrites.
They never appear in a repr, an exception, a log line, a pickle or on disk unsealed. OpenSSL keeps
copies of its own inside cipher objects while those live; they are freed, not overwritten by us.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import threading

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from msgspec import Struct

from memory_store.errors import BadInputError, FormatError, MemoryStoreError

KEY_BYTES = 32
SALT_BYTES = 16
LABEL_PREFIX = "memory-store/1/"
RECOVERY_BYTES = 20  # 160 bits: beyond guessing, so no slow derivation is needed
CODE_GROUP = 4
DEVICE_ID_BYTES = 16

ARGON2_MEMORY_KIB = 65_536  # RFC 9106, second recommended choice: 64 MiB, t = 3, p = 4
ARGON2_ITERATIONS = 3
ARGON2_LANES = 4
ARGON2_LEAST_MEMORY_KIB = 19_456  # OWASP's floor, 19 MiB with t = 2: below it is a downgrade
ARGON2_LEAST_ITERATIONS = 2
ARGON2_MOST_MEMORY_KIB = 1_048_576  # 1 GiB: above it is a hostile file
ARGON2_MOST_ITERATIONS = 64
ARGON2_MOST_LANES = 16
ARGON2_QUEUE = 4  # derivations that may wait behind the one at work

_one_derivation = threading.Lock()
_admitted = threading.BoundedSemaphore(1 + ARGON2_QUEUE)


class SecretKey:
    """A secret of a few bytes in a buffer that can be overwritten."""

    __slots__ = ("_buffer",)

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self._buffer = bytearray(data)

    @classmethod
    def generate(cls) -> SecretKey:
        """A new random key of 32 bytes."""
        return cls(os.urandom(KEY_BYTES))

    @property
    def buffer(self) -> bytearray:
        """The live bytes. Hand them to a cipher; do not copy, keep or print them."""
        if not self._buffer:
            raise MemoryStoreError("this key was wiped")
        return self._buffer

    def derive(self, label: str, context: bytes = b"") -> SecretKey:
        """A subkey of 32 bytes for one purpose (HKDF-SHA256, RFC 5869, ``info`` = label, context).

        The label ends in a NUL, so that no label with a context reads like another label.
        """
        derived = SecretKey(bytes(KEY_BYTES))
        info = LABEL_PREFIX.encode() + label.encode() + b"\x00" + context
        expand(self.buffer, info, derived._buffer)
        return derived

    def wipe(self) -> None:
        """Overwrite the bytes with zeros and forget them."""
        self._buffer[:] = bytes(len(self._buffer))
        self._buffer = bytearray()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretKey) and hmac.compare_digest(self.buffer, other.buffer)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "<SecretKey>"

    def __reduce__(self) -> str:
        raise TypeError("a secret key is not written anywhere")


def expand(secret: bytearray, info: bytes, into: bytearray) -> None:
    """As many bytes as ``into`` holds, by HKDF-SHA256 (RFC 5869) without a salt."""
    HKDF(hashes.SHA256(), len(into), salt=None, info=info).derive_into(secret, into)


def length_prefixed(*parts: bytes) -> bytes:
    """Each part after its length in four bytes, so that none can run into the next."""
    return b"".join([len(part).to_bytes(4, "big") + part for part in parts])


class Argon2Parameters(Struct, frozen=True):
    """Cost of the passphrase derivation: memory in KiB, passes, lanes."""

    memory_kib: int = ARGON2_MEMORY_KIB
    iterations: int = ARGON2_ITERATIONS
    lanes: int = ARGON2_LANES

    def check(self) -> None:
        """Raise FormatError when the cost is a downgrade, or would exhaust this machine."""
        if any(type(part) is not int for part in (self.memory_kib, self.iterations, self.lanes)):
            raise FormatError("this vault's passphrase slot has parameters that cannot be read")
        if self.memory_kib < ARGON2_LEAST_MEMORY_KIB or self.iterations < ARGON2_LEAST_ITERATIONS:
            raise FormatError("this vault's passphrase slot is weaker than Argon2id 19 MiB, t 2")
        if (
            self.memory_kib > ARGON2_MOST_MEMORY_KIB
            or self.iterations > ARGON2_MOST_ITERATIONS
            or not 1 <= self.lanes <= ARGON2_MOST_LANES
        ):
            raise FormatError("this vault's passphrase slot asks for an unreasonable Argon2id cost")


def key_from_passphrase(
    passphrase: str, salt: bytes, cost: Argon2Parameters, device: SecretKey | None = None
) -> SecretKey:
    """The key-encryption key of a passphrase (Argon2id). One derivation at a time in a process.

    With a ``device`` key it is the key of both: see :func:`key_from_both`.

    Raises FormatError for a cost out of bounds or a salt that is none of ours, MemoryStoreError
    ("busy") when too many derivations wait already.
    """
    cost.check()
    if len(salt) != SALT_BYTES:
        raise FormatError(f"this vault's passphrase slot has no salt of {SALT_BYTES} bytes")
    if not passphrase:
        raise BadInputError("an empty passphrase opens nothing", "passphrase")
    if not _admitted.acquire(blocking=False):
        raise MemoryStoreError("busy: too many passphrases are being checked; try again shortly")
    try:
        with _one_derivation:
            derivation = Argon2id(
                salt=salt,
                length=KEY_BYTES,
                iterations=cost.iterations,
                lanes=cost.lanes,
                memory_cost=cost.memory_kib,
            )
            derived = SecretKey(bytes(KEY_BYTES))
            derivation.derive_into(passphrase.encode("utf-8", "surrogatepass"), derived.buffer)
    finally:
        _admitted.release()
    return derived if device is None else key_from_both(derived, device, salt)


def key_from_both(derived: SecretKey, device: SecretKey, salt: bytes) -> SecretKey:
    """The key-encryption key of a passphrase's key and a device key. ``derived`` is wiped.

    Both are joined and go through HKDF (NIST SP 800-133r2, 6.3), so that without one
    of them you know nothing of the result. Argon2's own ``secret`` would do the same, but many
    libraries do not offer it, and ``cryptography`` takes it in a buffer alone that cannot be wiped.
    """
    joined = SecretKey(bytes(2 * KEY_BYTES))
    joined.buffer[:KEY_BYTES], joined.buffer[KEY_BYTES:] = derived.buffer, device.buffer
    try:
        return joined.derive("two-factors", salt)
    finally:
        joined.wipe()
        derived.wipe()


def device_id(device: SecretKey, vault: bytes) -> str:
    """The public name of a device key in one vault, in hex. It says nothing of the key."""
    derived = device.derive("device-id", vault)
    return bytes(derived.buffer[:DEVICE_ID_BYTES]).hex()


def key_from_strong_secret(secret: SecretKey, salt: bytes) -> SecretKey:
    """The key-encryption key of a random secret: of a key file, keyring or recovery code."""
    return secret.derive("slot", salt)


def encode_key_file(key: SecretKey) -> bytes:
    """The one line of a key file: base64 of the 32 bytes."""
    return base64.b64encode(key.buffer) + b"\n"


def decode_key_file(data: bytes, name: str) -> SecretKey:
    """The key in a key file's bytes. The error says the ``name``, the content never."""
    try:
        raw = base64.b64decode(data.strip(), validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != KEY_BYTES:
        raise BadInputError(
            f"{name} is not a key file: it must hold one line, base64 of {KEY_BYTES} bytes",
            "key-file",
        )
    return SecretKey(raw)


def new_recovery_code() -> str:
    """160 random bits as base32 in groups of four, to be written down."""
    return _grouped(os.urandom(RECOVERY_BYTES))


def decode_recovery_code(code: str) -> SecretKey | None:
    """The secret behind a recovery code, or None where the text is no such code.

    Letters may be lower case, groups may be apart by spaces or dashes; 0, 1 and 8 are read as
    O, I and B, which base32 does not hold.
    """
    return _decoded_code(code, RECOVERY_BYTES)


def encode_device_key(device: SecretKey) -> str:
    """The 256 bits of a device key, written as a recovery code is."""
    return _grouped(device.buffer)


def decode_device_key(code: str) -> SecretKey | None:
    """The device key behind its code, or None where the text is no such code."""
    return _decoded_code(code, KEY_BYTES)


def _grouped(data: bytes | bytearray) -> str:
    text = base64.b32encode(data).decode().rstrip("=")
    return "-".join(text[start : start + CODE_GROUP] for start in range(0, len(text), CODE_GROUP))


def _decoded_code(code: str, length: int) -> SecretKey | None:
    folded = "".join(code.upper().split()).replace("-", "").translate(str.maketrans("018", "OIB"))
    try:
        raw = base64.b32decode(folded + "=" * (-len(folded) % 8))
    except (binascii.Error, ValueError):
        return None
    return SecretKey(raw) if len(raw) == length else None
