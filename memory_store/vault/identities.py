"""The public keys that a vault's file holds: the owner's, and those of whom he shares with.

Boundary: public keys alone. They stand in clear, so nothing is believed of them by itself: the
owner knows others by the digests in his sealed settings, they know him by the digest that is sealed
in their key slots.
"""

from __future__ import annotations

from memory_store.crypto.identities import Identity, identity_of, strongest_kem
from memory_store.crypto.keys import SecretKey
from memory_store.errors import FormatError, TamperedError
from memory_store.sqlite import sqlite3
from memory_store.vault.slots import OWNER

TABLE = "vault_identities"


def read_identity(connection: sqlite3.Connection, principal: int) -> Identity | None:
    """A principal's public keys, ``None`` where the file holds none. Raises TamperedError."""
    if not has_table(connection, TABLE):
        return None
    row = connection.execute(
        f"select public from {TABLE} where principal = ?", (principal,)
    ).fetchone()
    if row is None:
        return None
    try:
        return Identity.decoded(row[0])
    except FormatError as error:
        raise TamperedError(f"{TABLE} {principal}: {error}") from None


def known_identity(connection: sqlite3.Connection, principal: int, digest: bytes) -> Identity:
    """A principal's public keys, if they are those of that digest. Raises TamperedError."""
    found = read_identity(connection, principal)
    if found is None or found.digest() != digest:
        raise TamperedError(f"{TABLE} {principal}: the keys of somebody else")
    return found


def write_identity(connection: sqlite3.Connection, principal: int, identity: Identity) -> None:
    """Store a principal's public keys (inside the caller's transaction)."""
    connection.execute(
        f"insert or replace into {TABLE} (principal, public) values (?, ?)",
        (principal, identity.encoded()),
    )


def publish_owner(connection: sqlite3.Connection, root: SecretKey) -> Identity:
    """Store the owner's public keys, if they are not there yet (in the caller's transaction)."""
    present = read_identity(connection, OWNER)
    identity = identity_of(root, present.kem if present else strongest_kem())
    if identity != present:
        identity = identity_of(root, strongest_kem())
        write_identity(connection, OWNER, identity)
    return identity


def forget_holders(connection: sqlite3.Connection) -> None:
    """Take away everybody but the owner: slots, grants and public keys (in a transaction)."""
    connection.execute("delete from vault_slots where principal != ?", (OWNER,))
    connection.execute("delete from vault_collection_keys where principal != ?", (OWNER,))
    connection.execute("delete from vault_principals where id != ?", (OWNER,))
    connection.execute("delete from vault_sources where principal != ?", (OWNER,))
    connection.execute(f"delete from {TABLE} where principal != ?", (OWNER,))
    connection.execute("delete from vault_shares")


def forget_principal(connection: sqlite3.Connection, principal: int) -> None:
    """Take somebody away to whom nothing is granted any more (inside the caller's transaction)."""
    connection.execute("delete from vault_slots where principal = ?", (principal,))
    connection.execute("delete from vault_principals where id = ?", (principal,))
    connection.execute("delete from vault_sources where principal = ?", (principal,))
    connection.execute(f"delete from {TABLE} where principal = ?", (principal,))


def has_table(connection: sqlite3.Connection, table: str) -> bool:
    """Whether the file has a table: those made before there was sharing get it when needed."""
    found = connection.execute(
        "select 1 from sqlite_master where type = 'table' and name = ?", (table,)
    ).fetchone()
    return found is not None
