"""Keys, sealed values, slots and keyed hashes, written from docs/how-it-works/format.md alone.

Where the format says that something is to be refused, :class:`Refused` is raised, whose ``outcome``
is the word that the test kit uses for it. Nothing of ``memory_store`` is used.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import re
import struct
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESGCMSIV, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

FORMAT = 1
HEADER_BYTES, NONCE_BYTES, TAG_BYTES, LEAST_PADDED = 18, 12, 16, 64
SUITES = {1: AESGCM, 2: AESGCMSIV, 3: ChaCha20Poly1305}


class Refused(Exception):
    """Something that the format forbids. ``outcome`` says what, in the words of the kit."""

    def __init__(self, outcome: str, where: str = "") -> None:
        super().__init__(f"{where}: {outcome}" if where else outcome)
        self.outcome = outcome


# -- keys -----------------------------------------------------------------------------------


def derived(secret: bytes, label: str, context: bytes = b"") -> bytes:
    """HKDF-SHA256, no salt, 32 bytes: extract and one block of expand."""
    key = hmac.digest(bytes(32), secret, "sha256")
    info = b"memory-store/1/" + label.encode() + b"\x00" + context
    return hmac.digest(key, info + b"\x01", "sha256")


def prefixed(*parts: bytes) -> bytes:
    """Each part after its length in four bytes."""
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


def tag(key: bytes, *parts: bytes, length: int = 16) -> bytes:
    """A keyed hash."""
    return hmac.digest(key, prefixed(*parts), "sha256")[:length]


def block(key: bytes, data: bytes) -> bytes:
    """AES-256 of one block of 16 bytes."""
    return Cipher(algorithms.AES256(key), modes.ECB()).encryptor().update(data)


def term(blind: bytes, language: str, stem: str) -> int:
    key = derived(blind, "term")
    return int.from_bytes(tag(key, language.encode(), stem.encode(), length=8), "little")


def pair(blind: bytes, first: int, second: int) -> int:
    key = derived(blind, "pair")
    return int.from_bytes(block(key, struct.pack("<QQ", first, second))[:8], "little")


def topic_hash(blind: bytes, topic: str) -> bytes:
    key = derived(blind, "topic")
    return tag(key, normalised_topic(topic).encode())


def content_hash(dedupe: bytes, title: str, text: str) -> bytes:
    kind, content = (b"text", text) if text.strip() else (b"title", title)
    return tag(dedupe, kind, content.encode("utf-8", "surrogatepass"))


def own_hash(dedupe: bytes, memory: str) -> bytes:
    return tag(dedupe, b"own", memory.encode())


def element(collection_key: bytes, memory: str, version: int) -> int:
    """Of an account before format 3."""
    key = derived(collection_key, "manifest-element")
    hashed = tag(key, memory.encode(), struct.pack(">Q", version), length=32)
    return int.from_bytes(hashed, "big")


def row_tag(dedupe: bytes, memory: str, version: int, head: bytes) -> bytes:
    return tag(derived(dedupe, "row"), memory.encode(), struct.pack(">q", version), head)


def account_total(collection_key: bytes, tags: Iterable[bytes]) -> int:
    key = derived(collection_key, "account-element")
    return sum(int.from_bytes(block(key, one), "big") for one in tags) % 2**128


@dataclass(frozen=True)
class Bundle:
    """What a wrapped collection key holds: the keys of one epoch."""

    key: bytes
    blind: bytes
    dedupe: bytes
    source: bytes
    epoch: int

    @classmethod
    def of(cls, epoch: int, content: bytes) -> Bundle:
        if len(content) != (192 if epoch else 32):
            raise Refused("not authentic", "vault_collection_keys.wrapped")
        if epoch == 0:
            carried = tuple(derived(content, label) for label in ("blind", "dedupe", "source"))
            return cls(content, *carried, epoch)
        return cls(*(content[start : start + 32] for start in range(0, 128, 32)), epoch)

    def stored(self, tag: bytes) -> bytes:
        """A keyed hash as it stands in the file."""
        return block(derived(self.key, "veil"), tag) if self.epoch else tag


# -- sealed values --------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where a sealed value stands."""

    vault: bytes
    collection: str
    table: str
    column: str
    row: str
    version: int = 0

    def encoded(self) -> bytes:
        names = (self.collection, self.table, self.column, self.row)
        version = struct.pack(">q", self.version)
        return prefixed(self.vault, *(name.encode() for name in names), version)


def padded_length(length: int) -> int:
    if length <= LEAST_PADDED:
        return LEAST_PADDED
    exponent = length.bit_length() - 1
    step = 1 << exponent - exponent.bit_length()
    return -(-length // step) * step


def opened(key: bytes, place: Place, blob: Any, epoch: int = 0) -> bytes:
    """The content of a sealed value."""
    where = f"{place.table}.{place.column}"
    if not isinstance(blob, bytes) or len(blob) < HEADER_BYTES + LEAST_PADDED + TAG_BYTES:
        raise Refused("too short", where)
    header, body = blob[:HEADER_BYTES], blob[HEADER_BYTES:]
    version, suite, named = struct.unpack(">BBI", header[:6])
    if version != FORMAT:
        raise Refused("unknown format", where)
    if suite not in SUITES or named != epoch:
        raise Refused("unknown suite or epoch", where)
    try:
        padded = SUITES[suite](key).decrypt(header[6:], body, header + place.encoded())
    except InvalidTag:
        raise Refused("not authentic", where) from None
    end = 4 + int.from_bytes(padded[:4], "big")
    if end > len(padded) or len(padded) != padded_length(end) or any(padded[end:]):
        raise Refused("bad padding", where)
    return padded[4:end]


# -- secrets and slots ----------------------------------------------------------------------


def key_file_secret(content: bytes) -> bytes:
    try:
        secret = base64.b64decode(content.strip(), validate=True)
    except binascii.Error:
        raise Refused("not a key file") from None
    if len(secret) != 32:
        raise Refused("not a key file")
    return secret


def recovery_secret(code: str) -> bytes:
    return _of_code(code, 20, "not a recovery code")


def device_secret(code: str) -> bytes:
    return _of_code(code, 32, "not a device key")


def _of_code(code: str, length: int, refusal: str) -> bytes:
    folded = "".join(code.upper().split()).replace("-", "")
    for read, meant in zip("018", "OIB", strict=True):
        folded = folded.replace(read, meant)
    try:
        secret = base64.b32decode(folded + "=" * (-len(folded) % 8))
    except (binascii.Error, ValueError):
        raise Refused(refusal) from None
    if len(secret) != length:
        raise Refused(refusal)
    return secret


def needed_device(parameters: str) -> tuple[str, str]:
    """The id of the device key that a passphrase needs besides, and that key, sealed; or none."""
    reported = _parameters(parameters)
    return reported.get("device", ""), reported.get("device_key", "")


def _parameters(parameters: str) -> dict[str, Any]:
    """What a passphrase's slot says, if it is of the fields and kinds that there are."""
    kinds = {"memory_kib": int, "iterations": int, "lanes": int, "device": str, "device_key": str}
    try:
        reported = json.loads(parameters) if len(parameters) <= 512 else None
        if any(type(value) is not kinds.get(name) for name, value in reported.items()):
            raise ValueError
        if not {"memory_kib", "iterations", "lanes"} <= reported.keys():
            raise ValueError
        if not re.fullmatch("([0-9a-f]{32})?", reported.get("device", "")):
            raise ValueError
    except (ValueError, AttributeError, RecursionError):
        raise Refused("unreadable cost") from None
    return dict(reported)


def device_id(device: bytes, vault: bytes) -> str:
    """The public name of a device key in a vault."""
    return derived(device, "device-id", vault)[:16].hex()


def argon2id(passphrase: str, salt: bytes, parameters: str) -> bytes:
    """The key of a passphrase, unless its cost is out of bounds."""
    cost = _parameters(parameters)
    memory, passes, lanes = (cost[name] for name in ("memory_kib", "iterations", "lanes"))
    if memory < 19_456 or passes < 2:
        raise Refused("weak cost")
    if memory > 1_048_576 or passes > 64 or not 1 <= lanes <= 16:
        raise Refused("excessive cost")
    if len(salt) != 16:
        raise Refused("bad salt")
    derivation = Argon2id(salt=salt, length=32, iterations=passes, lanes=lanes, memory_cost=memory)
    return derivation.derive(passphrase.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True)
class Slot:
    """A row of ``vault_slots``."""

    id: str
    principal: int
    kind: str
    parameters: str
    salt: bytes
    commitment: bytes
    wrapped: bytes

    def root(self, vault: bytes, kind: str, secret: str, device: str | None = None) -> bytes:
        """The principal's root key, by a secret as its user writes it."""
        return self.content(vault, kind, secret, device)[:32]

    def content(self, vault: bytes, kind: str, secret: str, device: str | None = None) -> bytes:
        """The root key, and behind it, for others than the owner, the digest of his identity.

        ``device`` is the code of a device key that is at hand.
        """
        if self.kind != kind:
            raise Refused("wrong secret")
        if kind == "passphrase":
            encryption_key = self._of_passphrase(vault, secret, device)
        else:
            raw = (
                recovery_secret(secret) if kind == "recovery" else key_file_secret(secret.encode())
            )
            encryption_key = derived(raw, "slot", self.salt)
        if not hmac.compare_digest(derived(encryption_key, "commitment"), self.commitment):
            raise Refused("wrong secret")
        tuned = f"{self.kind}|{self.principal}|{self.parameters}|{self.salt.hex()}"
        place = Place(vault, tuned, "vault_slots", "wrapped", self.id)
        return opened(derived(encryption_key, "wrap"), place, self.wrapped)

    def _of_passphrase(self, vault: bytes, secret: str, device: str | None) -> bytes:
        needed, _ = needed_device(self.parameters)
        key = device_secret(device) if device else b""
        if needed and (not key or device_id(key, vault) != needed):
            raise Refused("missing device key")
        slow = argon2id(secret, self.salt, self.parameters)
        return derived(slow + key, "two-factors", self.salt) if needed else slow

    def device_key(self, vault: bytes, root: bytes) -> bytes:
        """The device key that the passphrase needs, by the principal's root key."""
        _, sealed = needed_device(self.parameters)
        place = Place(vault, f"principal {self.principal}", "vault_slots", "device", self.id)
        return opened(derived(root, "device-wrap"), place, base64.b64decode(sealed, validate=True))


# -- topics ---------------------------------------------------------------------------------

INVISIBLE = (
    {0xAD, 0x34F, 0xFEFF, *range(9)}
    | {*range(0x200B, 0x2010), *range(0x2060, 0x2065)}
    | {*range(0xFE00, 0xFE10)}
)


def normalised_topic(topic: str) -> str:
    """Folded, without leading ``#``, with ``-`` between words."""
    folded = topic.lower()
    if not topic.isascii():
        composed = unicodedata.normalize("NFKC", topic)
        folded = "".join(c for c in composed if ord(c) not in INVISIBLE)
        for _ in range(2):
            folded = unicodedata.normalize("NFD", folded).casefold()
            folded = unicodedata.normalize("NFKC", folded)
    return re.sub(r"[\s_-]+", "-", folded).lstrip("#-").rstrip("-")
