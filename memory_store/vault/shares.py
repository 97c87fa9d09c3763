"""What somebody must know of a vault with whom one of its collections is shared.

Boundary: sealed under the collection's own key, so that who reads the collection can read it. It
tells of no other collection. It holds the key of the tags that tell equal contents of all
collections apart: those tags stand inside of sealed indexes alone, where nobody else sees them.
"""

from __future__ import annotations

from typing import Any

from msgspec import MsgspecError, Struct, field
from msgspec.json import decode, encode

from memory_store.errors import FormatError, TamperedError
from memory_store.sqlite import sqlite3
from memory_store.vault.collection_keys import CollectionKeys

TABLE = "vault_shares"


class Share(Struct, frozen=True):
    """The vault's profile and usual model, the collection's own choice, and its key's epochs.

    ``choice`` are fields of ``CollectionSettings`` without the folder, which is the owner's.
    ``topics`` says where the vault keeps them.
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

    def __repr__(self) -> str:
        return f"<Share of epoch {self.epoch}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Nothing: a Struct's own tells every field to ``rich``, whatever its ``repr`` says."""
        return []


def write_share(connection: sqlite3.Connection, keys: CollectionKeys, share: Share) -> None:
    """Replace what is told to those who read a collection (inside the caller's transaction)."""
    sealed = keys.seal("share", keys.place(TABLE, "sealed", keys.collection), encode(share))
    connection.execute(
        f"insert or replace into {TABLE} (collection, sealed) values (?, ?)",
        (keys.collection, sealed),
    )


def read_share(connection: sqlite3.Connection, keys: CollectionKeys) -> Share:
    """What is told of a collection. Raises TamperedError where it is missing or was changed.

    FormatError where it tells something else: everybody who reads the collection has its key.
    """
    row = connection.execute(
        f"select sealed from {TABLE} where collection = ?", (keys.collection,)
    ).fetchone()
    if row is None:
        raise TamperedError(f"{TABLE} of {keys.collection}: is missing")
    place = keys.place(TABLE, "sealed", keys.collection)
    try:
        return decode(keys.unseal("share", place, row[0]), type=Share)
    except MsgspecError:
        raise FormatError(f"{TABLE} of {keys.collection}: is nothing that this reads") from None


def remove_share(connection: sqlite3.Connection, collection: str) -> None:
    """Tell nothing of a collection any more (inside the caller's transaction)."""
    connection.execute(f"delete from {TABLE} where collection = ?", (collection,))
