"""Collections as rows: a random id, and when it was made. Their names are in the settings.

Boundary: a name stands in the owner's sealed settings alone, and in what he signs for those with
whom he shares. Under the collection's key, where names stood in earlier formats, any of those could
have given a collection another one's name.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from memory_store.errors import BadInputError, TamperedError
from memory_store.vault.keyring import VAULT_SCOPE, CollectionKeys, Keyring, WholeKeyring
from memory_store.vault.manifest import Manifest, write_manifest
from memory_store.vault.storage import Storage

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
    """Whether it may be the id of a collection that is hidden or gone."""
    try:
        uuid.UUID(name)
    except ValueError:
        return False
    return True


def insert_collection(storage: Storage, keyring: WholeKeyring) -> str:
    """A new collection's row, key and account (inside the caller's transaction). Returns its id.

    The caller writes its name into the settings.
    """
    collection = str(uuid.uuid4())
    keys = keyring.create_collection_key(storage, collection)
    storage.collections.insert(collection, datetime.now(UTC).isoformat(timespec="seconds"))
    write_manifest(storage, keys, Manifest())
    return collection


def check_named(storage: Storage, principal: int) -> None:
    """Raise TamperedError where a collection has keys for the principal, and no row."""
    missing = storage.keys.without_row(principal, VAULT_SCOPE)
    if missing is not None:
        raise TamperedError(f"collections: the row of {missing} is missing")


def earlier_names(storage: Storage, keyring: Keyring) -> dict[str, str]:
    """Id → name, as the rows of earlier formats have them. Raises TamperedError.

    Any of those who shared the collection may have written it. One that this version would not
    take becomes the beginning of the collection's id.
    """
    check_named(storage, keyring.principal)
    names = storage.collections.earlier_names()
    readable = set(keyring.readable())
    return {
        one: _earlier_name(keyring.of(one), name) for one, name in names.items() if one in readable
    }


def _earlier_name(keys: CollectionKeys, sealed: bytes) -> str:
    place = keys.place("collections", "name", keys.collection)
    try:
        return checked_name(str(keys.unseal("name", place, sealed), "utf-8"))
    except (BadInputError, UnicodeDecodeError):
        return f"collection {keys.collection[:8]}"
