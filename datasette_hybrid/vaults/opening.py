"""Opening a vault's file: with what the configuration or the environment names, or what was typed.

Boundary: secrets pass through here, from where they are kept to :mod:`memory_store`. What is said
of them is where they came from. A key that the configuration names must fit; one that is found in
the environment is for everybody, and may belong to another vault.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_store import errors, host
from memory_store.errors import MemoryStoreError
from memory_store.host import Address, FileAccess, MemoryStore

from .. import configuration
from ..configuration import DatabaseSettings

LOOK_PATIENCE = 0.5
"""Seconds that a look waits for another program: as long as one takes to close the file, and not
as long as one may keep it to itself, since every request looks."""

NO_SECRETS: dict[str, Any] = {
    **dict.fromkeys(("key_file", "passphrase", "recovery_code")),
    "keyring": False,
}


@dataclass(frozen=True)
class Opened:
    """An opened vault, and by which key, as a phrase for people."""

    store: MemoryStore
    source: str


def may_be_opened(settings: DatabaseSettings) -> bool:
    """Whether there is any key to try. Reads none."""
    return bool(_configured(settings)) or host.key_in_environment()


def open_configured(path: Path, settings: DatabaseSettings, access: FileAccess) -> Opened | None:
    """The vault, opened by the first key that fits; ``None`` where there is none to try.

    Raises what the first configured key was refused with, when none of them fits.
    """
    refusals: list[MemoryStoreError] = []
    configured = _configured(settings)
    file, passphrase = host.KEY_FILE_VARIABLE, host.PASSPHRASE_VARIABLE
    found = configured or [
        (f"the key file of {file}", "key_file", os.environ.get(file)),
        (passphrase, "passphrase", os.environ.get(passphrase)),
    ]
    for source, kind, given in found:
        try:
            if given:
                return Opened(opened(path, _secrets(path, kind, given), access), source)
        except MemoryStoreError as refusal:
            another = isinstance(refusal, errors.WrongKeyError)
            if configured or not another or isinstance(refusal, errors.DeviceKeyError):
                refusals.append(refusal)
    if refusals:
        raise refusals[0]
    return None


def open_typed(path: Path, typed: str, access: FileAccess) -> MemoryStore:
    """Try the readings of a pasted secret, the quick and certain ones first."""
    key = host.secret_from_key_text(typed)
    return opened(path, [*([key] if key is not None else ()), *host.Secret.typed(typed)], access)


def opened(path: Path, secrets: list[host.Secret], access: FileAccess) -> MemoryStore:
    """The vault, opened with one of the secrets. Raises :class:`MemoryStoreError` of some kind.

    Anything that a hostile or damaged file makes go wrong is such an error, named by its kind.
    """
    try:
        with host.vault_faults(path):
            return MemoryStore(host.open_vault(path, secrets, access))
    except MemoryStoreError as error:
        if isinstance(path, Address) and isinstance(error, errors.NotAVaultError):
            raise none_there(path) from None
        error.args = (without_folder(path, error),)
        raise
    except Exception as error:  # noqa: BLE001 - other vaults are served all the same
        said = str(error) if isinstance(error, host.sqlite3.Error) else type(error).__name__
        raise errors.StorageError(f"{path.name} cannot be opened ({said})") from None


def without_folder(path: Path, error: MemoryStoreError) -> str:
    """What an error says of a file, fit for every actor who may see the database."""
    return str(error).replace(str(path), path.name)


def vault_in(path: Path, access: FileAccess) -> str | None:
    """The public id of the vault that a file holds now, in hex; ``None`` where it holds none.

    Raises :class:`StorageError` where another program has locked it.
    """
    try:
        with _looking_into(path, access) as connection:
            return host.read_vault_id(connection).hex()
    except (host.sqlite3.Error, errors.NotAVaultError) as error:
        if isinstance(error, errors.StorageError):
            raise  # its server is away
        if "is locked" in str(error):
            raise errors.StorageError(f"{path.name}: {host.plain_cause(error)}") from None
        return None


def copy_what_is_clear(
    address: Address, access: FileAccess, copy: host.ClearCopy
) -> tuple[str, int] | None:
    """The public id of the vault at an address, and its commit counter; ``None`` where there is
    none. Brings ``copy`` up to what stands there.

    Raises :class:`StorageError` where its server is away.
    """
    try:
        with _looking_into(address, access) as storage:
            found = host.read_vault_id(storage).hex(), storage.revision()
            copy.refresh(storage, found[1])
    except errors.NotAVaultError:
        return None
    return found


def none_there(address: Address) -> errors.StorageError:
    """The refusal where a server's database holds no such vault, or none any more."""
    return errors.StorageError(
        f"{address}: its database holds no vault {address.vault!r}. On the command line, "
        "memory-store init ADDRESS makes one"
    )


def revision(path: Path, access: FileAccess) -> int | None:
    """How often the settings in a vault's file were changed; ``None`` where they cannot be read.

    Raises :class:`StorageError` where its server is away.
    """
    try:
        with _looking_into(path, access) as connection:
            return connection.settings.revision()
    except errors.StorageError:
        raise
    except host.sqlite3.Error:
        return None


def _looking_into(path: Path, access: FileAccess) -> closing[host.Storage]:
    return closing(host.Storage.open(path, read_only=True, access=access, patience=LOOK_PATIENCE))


def _configured(settings: DatabaseSettings) -> list[tuple[str, str, Any]]:
    """The keys that the configuration names: what each is, its kind, and where it is kept."""
    named = [
        ("the configured key file", "key_file", settings.key_file),
        ("the configured passphrase", "passphrase", settings.passphrase),
        ("the key in the OS keyring", "keyring", settings.keyring),
    ]
    return [one for one in named if one[2]]


def _secrets(path: Path, kind: str, given: Any) -> list[host.Secret]:
    if kind != "keyring":
        given = configuration.resolved(given)
        if given is None:
            option = kind.replace("_", "-")
            raise errors.BadInputError(f"{option}: its variable or file is missing", option)
    return host.secrets_to_open(path, **{**NO_SECRETS, kind: given})
