"""The vault's settings: which are in clear (format, id), which are sealed (everything else).

Boundary: the sealed settings decide what may stand in clear (the profile), so a thief who can
write the file must not be able to change them: they are read only from the sealed value.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from memory_store.records import FormatError, NotAVaultError, TamperedError
from memory_store.sqlite import sqlite3
from memory_store.vault.keyring import VAULT_SCOPE, Keyring
from memory_store.vault.manifest import note_revision, read_manifest

OWNER = 0  # the principal who made the vault and may read all of it

PROFILES = ("default", "strict")


@dataclass(frozen=True, slots=True)
class Settings:
    """``embedder`` and ``fingerprint`` name the model of every vector (empty before the first).

    ``collections`` are the ids of all that were made, so that none can be taken away unnoticed.
    ``revision`` grows with every change; the personal collection's account knows the newest.
    """

    profile: str = "default"
    created: str = ""
    personal: str = ""
    analyser: int = 0
    embedder: str = ""
    fingerprint: str = ""
    dimensions: int = 0
    revision: int = 0
    collections: tuple[str, ...] = ()


def read_vault_id(connection: sqlite3.Connection) -> bytes:
    """The vault's public random id, 16 bytes."""
    row = connection.execute("select value from vault_settings where name = 'vault'").fetchone()
    try:
        vault = bytes.fromhex(row[0]) if row else b""
    except (TypeError, ValueError):
        vault = b""
    if len(vault) != 16:
        raise NotAVaultError("the vault has no id: it was never finished, or was damaged")
    return vault


def read_settings(connection: sqlite3.Connection, keyring: Keyring) -> Settings:
    """The sealed settings. Raises TamperedError when somebody changed them."""
    row = connection.execute(
        "select cast(value as integer), sealed from vault_settings where name = 'settings'"
    ).fetchone()
    if row is None:
        raise FormatError("the vault has no settings: it was never finished, or was damaged")
    revision, sealed = row
    keys = keyring.of(VAULT_SCOPE)
    place = keys.place("vault_settings", "sealed", "settings", revision)
    data = json.loads(bytes(keys.unseal("head", place, sealed)))
    settings = Settings(**{**data, "collections": tuple(data["collections"])})
    _check_complete(connection, keyring, settings)
    return settings


def _check_complete(connection: sqlite3.Connection, keyring: Keyring, settings: Settings) -> None:
    """Raise TamperedError for older settings put back, or the owner's keys taken away."""
    readable = set(keyring.readable())
    missing = [name for name in settings.collections if name not in readable]
    if keyring.principal == OWNER and missing:
        raise TamperedError(f"vault_collection_keys of {missing[0]}: the owner's key is missing")
    newest = read_manifest(connection, keyring.of(settings.personal)).revision
    if settings.revision < newest:
        raise TamperedError("vault_settings.sealed of settings: an older version was put back")


def write_settings(connection: sqlite3.Connection, keyring: Keyring, settings: Settings) -> None:
    """Replace the sealed settings (inside the caller's transaction)."""
    keys = keyring.of(VAULT_SCOPE)
    place = keys.place("vault_settings", "sealed", "settings", settings.revision)
    sealed = keys.seal("head", place, json.dumps(asdict(settings)).encode())
    connection.execute(
        """
        insert into vault_settings (name, value, sealed) values ('settings', ?, ?)
        on conflict (name) do update set value = excluded.value, sealed = excluded.sealed
        """,
        (str(settings.revision), sealed),
    )
    note_revision(connection, keyring.of(settings.personal), settings.revision)
