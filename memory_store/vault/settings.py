"""The vault's settings: which are in clear (format, id), which are sealed (everything else).

Boundary: the sealed settings decide what may stand in clear (the profile), so a thief who can
write the file must not be able to change them: they are read only from the sealed value.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from memory_store.records import FormatError, NotAVaultError
from memory_store.sqlite import sqlite3
from memory_store.vault.keyring import VAULT_SCOPE, Keyring

PROFILES = ("default", "strict")


@dataclass(frozen=True, slots=True)
class Settings:
    """``embedder`` and ``fingerprint`` name the model of every vector (empty before the first)."""

    profile: str = "default"
    created: str = ""
    personal: str = ""
    analyser: int = 0
    embedder: str = ""
    fingerprint: str = ""
    dimensions: int = 0
    revision: int = 0


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
    return Settings(**json.loads(bytes(keys.unseal("head", place, sealed))))


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
