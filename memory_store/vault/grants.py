"""Grants: a collection's keys, sealed to a member's public keys and signed by the owner.

Boundary: a bundle goes in, bytes come out that its recipient alone opens, and back. A grant is
verified before it is opened: the owner alone can make one, and it fits one vault, collection,
epoch and recipient. That an older one is put back is not seen from the grant, but from what the
collection itself says of its epoch (``vault/shares.py``).

A grant is ``format (1) ‖ KEM (2) ‖ HPKE message ‖ Ed25519 signature (64)``. Signed are, each after
its length, a label, everything that HPKE is bound to, and the message before the signature; HPKE's
``info`` is a label, vault, collection, epoch, principal, and the public keys of both.
"""

from __future__ import annotations

import struct

from msgspec import Struct

from memory_store.crypto.identities import SIGNATURE_BYTES, Identity, opened, signature
from memory_store.crypto.keys import LABEL_PREFIX, SecretKey, length_prefixed
from memory_store.errors import FormatError, TamperedError
from memory_store.vault.collection_keys import Bundle

FORMAT = 2  # a sealed value, the owner's own wrapping in the same column, begins with 1
HEADER = struct.Struct(">BH")


class GrantPlace(Struct, frozen=True):
    """Whom a grant is from and for, and what it is of."""

    vault: bytes
    collection: str
    epoch: int
    principal: int
    owner: Identity
    recipient: Identity

    def info(self) -> bytes:
        parts = (
            LABEL_PREFIX.encode() + b"grant",
            self.vault,
            self.collection.encode(),
            _number(self.epoch),
            _number(self.principal),
            self.owner.encoded(),
            self.recipient.encoded(),
        )
        return length_prefixed(*parts)

    def __str__(self) -> str:
        return f"vault_collection_keys of {self.collection}, epoch {self.epoch}"


def make_grant(root: SecretKey, place: GrantPlace, bundle: Bundle) -> bytes:
    """The owner's grant of a bundle, by the owner's root key."""
    content = bundle.encoded(place.epoch)
    sealed = place.recipient.sealed(content, place.info())
    content[:] = bytes(len(content))
    message = HEADER.pack(FORMAT, place.recipient.kem) + sealed
    return message + signature(root, _signed(place, message))


def open_grant(root: SecretKey, place: GrantPlace, grant: bytes) -> Bundle:
    """The bundle in a grant, by the recipient's root key.

    Raises TamperedError unless the owner signed it for this very place and recipient.
    """
    if not isinstance(grant, bytes):  # a cell may be emptied
        raise TamperedError(f"{place}: not a grant")
    message, signed = grant[:-SIGNATURE_BYTES], grant[-SIGNATURE_BYTES:]
    if len(message) < HEADER.size:
        raise TamperedError(f"{place}: too short to be a grant")
    form, kem = HEADER.unpack_from(message)
    if form != FORMAT or kem != place.recipient.kem:
        raise TamperedError(f"{place}: no grant for this key")
    place.owner.check_signature(signed, _signed(place, message), str(place))
    try:
        content = opened(root, kem, message[HEADER.size :], place.info(), str(place))
    except FormatError as error:
        raise FormatError(f"{place}: {error}") from None
    try:
        return Bundle.decoded(place.epoch, content)
    finally:
        content[:] = bytes(len(content))


def _number(value: int) -> bytes:
    """Eight bytes, signed: a thief may write any SQLite number, or none."""
    if not isinstance(value, int):
        raise TamperedError("vault_collection_keys: a number was taken away")
    return value.to_bytes(8, "big", signed=True)


def _signed(place: GrantPlace, message: bytes) -> bytes:
    return length_prefixed(LABEL_PREFIX.encode() + b"signed grant", place.info(), message)
