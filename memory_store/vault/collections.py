"""Collections as rows: a random id in clear, a name sealed under the collection's own key.

Boundary: keys in, sealed names out, and back.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from memory_store.crypto.sealing import Place
from memory_store.errors import BadInputError, TamperedError
from memory_store.sqlite import sqlite3
from memory_store.vault.keyring import VAULT_SCOPE, CollectionKeys, Keyring
from memory_store.vault.manifest import Manifest, write_manifest

NAME_LIMIT = 200  # characters of a collection's name


def checked_name(name: str) -> str:
    """A collection's name, stripped. Raises BadInputError for an empty or overlong one."""
    name = name.strip()
    if not name or len(name) > NAME_LIMIT or not name.isprintable():
        raise BadInputError(
            f"a collection's name is 1 to {NAME_LIMIT} printable characters", "collection"
        )
    if _looks_like_id(name):
        raise BadInputError("a collection's name must not look like an id", "collection")
    return name


def _looks_like_id(name: str) -> bool:
    """Whether somebody wrote the id of a collection that they may not use, or that is gone."""
    try:
        uuid.UUID(name)
    except ValueError:
        return False
    return True


def insert_collection(connection: sqlite3.Connection, keyring: Keyring, name: str) -> str:
    """A new collection's row, key and account (inside the caller's transaction). Returns its id."""
    collection = str(uuid.uuid4())
    keys = keyring.create_collection_key(connection, collection)
    connection.execute(
        "insert into collections (id, name, created) values (?, ?, ?)",
        (collection, seal_name(keys, name), datetime.now(UTC).isoformat(timespec="seconds")),
    )
    write_manifest(connection, keys, Manifest())
    return collection


def check_named(connection: sqlite3.Connection, principal: int) -> None:
    """Raise TamperedError where a collection has keys for the principal, and no row."""
    row = connection.execute(
        """
        select collection from vault_collection_keys
        where principal = ? and collection != ?
          and collection not in (select id from collections) limit 1
        """,
        (principal, VAULT_SCOPE),
    ).fetchone()
    if row is not None:
        raise TamperedError(f"collections: the row of {row[0]} is missing")


def seal_name(keys: CollectionKeys, name: str) -> bytes:
    """A collection's name, sealed."""
    return keys.seal("name", _place(keys), name.encode())


def open_name(keys: CollectionKeys, sealed: bytes) -> str:
    """A collection's name. Raises TamperedError."""
    return str(keys.unseal("name", _place(keys), sealed), "utf-8")


def _place(keys: CollectionKeys) -> Place:
    return keys.place("collections", "name", keys.collection)
