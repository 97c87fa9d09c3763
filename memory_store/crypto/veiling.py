"""Keyed hashes as they stand in the file: enciphered once more, so that their key can be changed.

Boundary: takes 16-byte tags, gives 16-byte tags. A keyed hash cannot be made anew without what it
is of; enciphered, the same hash looks another after a change of the key, and whoever has the old
key alone can no longer compare his guesses with the file.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from memory_store.crypto.blinding import TAG_BYTES
from memory_store.crypto.keys import SecretKey


class Veil:
    """A permutation of tags under one key: AES-256 of the tag's 16 bytes.

    A tag is one block and each stands alone on purpose: equal tags must stay equal.
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: SecretKey) -> None:
        self._secret = secret

    def veiled(self, tag: bytes) -> bytes:
        """The tag as it stands in the file."""
        return self._cipher(tag).encryptor().update(tag)

    def bare(self, stored: bytes) -> bytes:
        """The tag behind one that stands in the file."""
        return self._cipher(stored).decryptor().update(stored)

    def _cipher(self, tag: bytes) -> Cipher[modes.ECB]:
        if len(tag) != TAG_BYTES:
            raise ValueError(f"a tag has {TAG_BYTES} bytes, not {len(tag)}")
        return Cipher(algorithms.AES256(self._secret.buffer), modes.ECB())

    def wipe(self) -> None:
        """Overwrite the key."""
        self._secret.wipe()
