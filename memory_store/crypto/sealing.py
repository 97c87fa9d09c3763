"""Sealed values: authenticated encryption bound to the place a value stands in.

Boundary: the only module that encrypts or decrypts. Every sealed value passes through :func:`seal`
and :func:`unseal`; the latter counts what it opens by table and column, so that "how many records
were opened" is a count of what really happened. Errors name the place, never the content.

A sealed value is ``format (1) ‖ suite (1) ‖ epoch (4) ‖ nonce (12) ‖ ciphertext ‖ tag (16)``. Its
associated data is every one of those 18 header bytes and the place, each length-prefixed. What is
encrypted is ``length (4) ‖ content ‖ zeros``, padded to a Padmé length. Of values that are never
stored, ``least`` may be smaller: all of one kind have the same length.
"""

from __future__ import annotations

import functools
import os
import struct
import threading
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESGCMSIV, ChaCha20Poly1305
from msgspec import Struct, field

from memory_store.crypto.keys import KEY_BYTES, SecretKey, length_prefixed
from memory_store.errors import FormatError, TamperedError

FORMAT = 1
HEADER = struct.Struct(">BBI12s")
LENGTH = struct.Struct(">I")
TAG_BYTES = 16
NONCE_BYTES = 12
LEAST_PADDED = 64  # shortest padded content: a tag list and a one-line note look alike
MOST_CONTENT = 2**30


class Cipher(Protocol):
    """What the suites of ``cryptography`` have in common."""

    def encrypt(
        self, nonce: bytes, data: bytes | bytearray, associated_data: bytes | None
    ) -> bytes: ...

    def decrypt_into(
        self, nonce: bytes, data: memoryview, associated_data: bytes | None, buf: bytearray
    ) -> int: ...


SUITES: dict[int, Callable[[bytearray], Cipher]] = {1: AESGCM, 2: AESGCMSIV, 3: ChaCha20Poly1305}
DEFAULT_SUITE = 1


class Place(Struct, frozen=True):
    """Where a sealed value stands. A value moved to another place does not open."""

    vault: bytes
    collection: str
    table: str
    column: str
    row: str
    version: int = 0

    def encoded(self) -> bytes:
        """Its six parts, each after its length. Raises TamperedError for a version from a file
        that is no number."""
        if not isinstance(self.version, int):
            raise TamperedError(f"{self}: its version is no number")
        parts = (
            self.vault,
            self.collection.encode(),
            self.table.encode(),
            self.column.encode(),
            self.row.encode(),
            struct.pack(">q", self.version),  # signed: a thief may write any SQLite number
        )
        return length_prefixed(*parts)

    def __str__(self) -> str:
        return f"{self.table}.{self.column} of {self.row}"


class OpenCounter(Struct):
    """How many values of each ``table.column`` were opened since the vault was unlocked."""

    counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, place: Place) -> None:
        with self._lock:
            self.counts[f"{place.table}.{place.column}"] += 1


class SealingKey:
    """One key under one suite and epoch, ready to seal and unseal. Dropped at lock."""

    __slots__ = ("ciphers", "epoch", "secret", "suite")

    def __init__(self, secret: SecretKey, *, epoch: int = 0, suite: int = DEFAULT_SUITE) -> None:
        self.secret = secret
        self.epoch = epoch
        self.suite = suite
        self.ciphers: dict[int, Cipher] = {}

    def cipher(self, suite: int) -> Cipher:
        """The cipher of a suite, made once. Raises KeyError for an unknown suite."""
        found = self.ciphers.get(suite)
        if found is None:
            found = self.ciphers[suite] = SUITES[suite](self.secret.buffer)
        return found

    def wipe(self) -> None:
        self.ciphers.clear()
        self.secret.wipe()

    def __repr__(self) -> str:
        return f"<SealingKey epoch {self.epoch}>"


def padded_length(length: int, least: int = LEAST_PADDED) -> int:
    """The Padmé length for ``length`` bytes (Nikitin et al., PURBs, 2019): at most 12 % more."""
    if length <= least:
        return least
    exponent = length.bit_length() - 1
    kept_bits = exponent.bit_length()
    step = (1 << (exponent - kept_bits)) - 1
    return (length + step) & ~step


def _pad(content: bytes | bytearray | memoryview, least: int) -> bytearray:
    """A copy of ``content`` to be encrypted, that :func:`seal` overwrites."""
    length = LENGTH.size + len(content)
    zeros = bytes(padded_length(length, least) - length)
    return bytearray().join((LENGTH.pack(len(content)), content, zeros))


def _unpad(padded: bytearray, least: int) -> memoryview | None:
    (length,) = LENGTH.unpack_from(padded)
    end = LENGTH.size + length
    if end > len(padded) or padded_length(end, least) != len(padded):
        return None
    if padded.count(0, end) != len(padded) - end:
        return None
    return memoryview(padded)[LENGTH.size : end]


@functools.cache
def _cipher_of_zeros(suite: int) -> Cipher:
    return SUITES[suite](bytearray(KEY_BYTES))


def _leave_no_key_behind(suite: int) -> None:
    """Overwrite what a cipher left of its key on the stack of this thread.

    OpenSSL spreads a key out on the stack at each use and leaves it there: in a server's idle
    thread it stood until the thread had other work. The same work under zeros takes its place.
    """
    _cipher_of_zeros(suite).encrypt(bytes(NONCE_BYTES), b"", None)


def seal(
    key: SealingKey,
    place: Place,
    content: bytes | bytearray | memoryview,
    least: int = LEAST_PADDED,
) -> bytes:
    """Encrypt ``content`` for ``place``. Sealing the same content twice gives different bytes."""
    if len(content) > MOST_CONTENT:
        raise FormatError(f"{place}: {len(content)} bytes are too many for one sealed value")
    header = HEADER.pack(FORMAT, key.suite, key.epoch, os.urandom(NONCE_BYTES))
    nonce = header[-NONCE_BYTES:]
    padded = _pad(content, least)
    try:
        sealed = key.cipher(key.suite).encrypt(nonce, padded, header + place.encoded())
    finally:
        padded[:] = bytes(len(padded))
        _leave_no_key_behind(key.suite)
    return header + sealed


def sealed_epoch(blob: bytes, place: Place, least: int = LEAST_PADDED) -> int:
    """The key epoch a sealed value names (not yet authenticated: only to choose the key)."""
    if not isinstance(blob, bytes):  # a cell may be emptied, or hold text instead
        raise TamperedError(f"{place}: not a sealed value")
    if len(blob) < HEADER.size + least + TAG_BYTES:
        raise TamperedError(f"{place}: too short to be a sealed value")
    version, _suite, epoch, _nonce = HEADER.unpack_from(blob)
    if version != FORMAT:
        raise FormatError(f"{place}: sealed in format {version}; this version reads {FORMAT}")
    return int(epoch)


def unseal(
    key: SealingKey,
    place: Place,
    blob: bytes,
    counter: OpenCounter | None = None,
    least: int = LEAST_PADDED,
) -> memoryview:
    """Open a sealed value, into a buffer of its own that the caller may overwrite.

    The only place in the package where anything is decrypted.

    Raises TamperedError when the value was changed, cut, or stands in another place than it was
    sealed for, FormatError when a newer version wrote it.
    """
    epoch = sealed_epoch(blob, place, least)
    _version, suite, _epoch, nonce = HEADER.unpack_from(blob)
    if suite not in SUITES or epoch != key.epoch:
        raise TamperedError(f"{place}: sealed under a suite or key that this vault does not have")
    header, body = blob[: HEADER.size], memoryview(blob)[HEADER.size :]
    padded = bytearray(len(body) - TAG_BYTES)
    try:
        key.cipher(suite).decrypt_into(nonce, body, header + place.encoded(), padded)
    except InvalidTag:
        raise TamperedError(f"{place}: changed, cut or moved since it was sealed") from None
    finally:
        _leave_no_key_behind(suite)
    if counter is not None:
        counter.add(place)
    content = _unpad(padded, least)
    if content is None:
        raise TamperedError(f"{place}: its padding is not ours")
    return content
