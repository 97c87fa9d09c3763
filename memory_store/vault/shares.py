"""Shares: what the owner signs for the members of a shared collection.

Boundary: sealed under the collection's own key, so that who reads the collection can read it, and
signed by the owner: who reads the collection has its key, but cannot make a share. It says
nothing of any other collection. It holds the key of the tags by which equal contents of all
collections are known: those tags stand inside of sealed indexes alone, where no others see them.

A share is ``format (1) ‖ Ed25519 signature (64) ‖ JSON``. Signed are, each after its length, a
label, the vault, the collection, the share's revision and the JSON. The revision is that of the
settings that the share was made from. The newest stands in the collection's account, too, which
cannot be put back without its memories; who shares the collection can write there as well, so each
machine keeps the newest that it saw (``vault/machine.py``).
"""

from __future__ import annotations

from typing import Any

from msgspec import MsgspecError, Struct, field
from msgspec.json import decode, encode

from memory_store.crypto.identities import SIGNATURE_BYTES, Identity, signature
from memory_store.crypto.keys import LABEL_PREFIX, SecretKey, length_prefixed
from memory_store.errors import FormatError, TamperedError
from memory_store.vault.collection_keys import CollectionKeys
from memory_store.vault.storage import Storage
from memory_store.vault.storage.schema import FORMAT_VERSION
from memory_store.vault.trash import KEPT_DAYS

TABLE = "vault_shares"
FORMAT = 3  # a share of the vault format before, which was not signed, begins with "{"


class Share(Struct, frozen=True):
    """The vault's profile and usual model, the collection's own choice and name, its key's epochs.

    ``choice`` are fields of ``CollectionSettings`` without the folder, which is the owner's.
    ``topics`` says where the vault keeps them, ``trash`` how many days what was deleted is kept.
    ``name`` is the owner's name of the collection; ``revision`` that of his settings.
    """

    profile: str
    analyser: int
    embedder: str
    fingerprint: str
    dimensions: int
    epoch: int
    before: int | None
    dedupe: bytes
    choice: dict[str, str | int] = field(default_factory=dict)
    topics: str = "table"
    name: str = ""
    revision: int = 0
    format: int = FORMAT_VERSION
    trash: int = KEPT_DAYS

    def __repr__(self) -> str:
        return f"<Share of epoch {self.epoch}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Nothing: a Struct's own gives every field to ``rich``, whatever its ``repr`` says."""
        return []


def write_share(storage: Storage, keys: CollectionKeys, share: Share, root: SecretKey) -> None:
    """Sign and store a collection's share, by the owner's root key.

    Inside the caller's transaction.
    """
    content = encode(share)
    signed = signature(root, _signed(keys, share.revision, content))
    sealed = keys.seal(
        "share", keys.place(TABLE, "sealed", keys.collection), bytes([FORMAT]) + signed + content
    )
    storage.shares.write(keys.collection, sealed)


def read_share(storage: Storage, keys: CollectionKeys, owner: Identity) -> Share:
    """A collection's share.

    Raises TamperedError where it is missing, was changed, or is signed by another, and FormatError
    where it is one of an earlier format, or nothing that this version reads.
    """
    sealed = storage.shares.of(keys.collection)
    if sealed is None:
        raise TamperedError(f"{TABLE} of {keys.collection}: is missing")
    place = keys.place(TABLE, "sealed", keys.collection)
    opened = bytes(keys.unseal("share", place, sealed))
    if opened[:1] == b"{":
        raise FormatError(
            f"{TABLE} of {keys.collection}: of an earlier format, without a signature. The vault's "
            "owner has to open it once with this version"
        )
    signed, content = opened[1 : 1 + SIGNATURE_BYTES], opened[1 + SIGNATURE_BYTES :]
    try:
        share = decode(content, type=Share)
    except MsgspecError:
        share = None
    if share is None or opened[0] != FORMAT:
        raise FormatError(f"{TABLE} of {keys.collection}: is nothing that this reads")
    owner.check_signature(
        signed, _signed(keys, share.revision, content), f"{TABLE} of {keys.collection}"
    )
    return share


def _signed(keys: CollectionKeys, revision: int, content: bytes) -> bytes:
    label = LABEL_PREFIX.encode() + b"signed share"
    try:
        number = revision.to_bytes(8, "big", signed=True)
    except OverflowError:
        raise FormatError(f"{TABLE} of {keys.collection}: is nothing that this reads") from None
    return length_prefixed(label, keys.vault, keys.collection.encode(), number, content)
