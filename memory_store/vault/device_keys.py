"""Device keys: what this machine adds to a passphrase, so that the file alone is not enough.

Boundary: writes and reads 32 random bytes for each vault, in the state folder, in files that their
owner alone can read (mode 0600). Messages name files and public ids, never a key. A file that
others can read, or that lies in the vault's own folder, is refused.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from memory_store.crypto.keys import SecretKey, decode_device_key, device_id, encode_device_key
from memory_store.errors import BadInputError, DeviceKeyError
from memory_store.paths import keep_names, make_private_file, state_folder

FOLDER = "device-keys"
MOST_BYTES = 256  # of a file: an honest one has 65


def place_of(vault: bytes, identifier: str) -> Path:
    """Where this machine keeps a device key. Raises BadInputError without a state folder."""
    return state_folder() / FOLDER / vault.hex() / identifier


def is_here(vault: bytes, identifier: str) -> bool:
    """Whether this machine has a device key of that id."""
    try:
        return place_of(vault, identifier).is_file()
    except BadInputError:
        return False


def read(vault: bytes, identifier: str, database: Path | None = None) -> SecretKey:
    """The device key of that id. Raises DeviceKeyError where it is missing or must not be used."""
    try:
        file = place_of(vault, identifier)
        check_apart(file, database)
        status = file.stat()
        text = file.read_bytes()[: MOST_BYTES + 1]
    except BadInputError as error:
        raise DeviceKeyError(f"the device key of this vault cannot be used: {error}") from None
    except OSError:
        raise DeviceKeyError(missing(database)) from None
    if os.name == "posix" and status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        raise DeviceKeyError(
            f"device key {file} can be used by others (mode {mode:04o}): chmod 600 {file}"
        )
    device = decode_device_key(text.decode("ascii", "replace"))
    if device is None or device_id(device, vault) != identifier:
        raise DeviceKeyError(f"device key {file} is damaged: {how_to_get(database)}")
    return device


def keep(vault: bytes, device: SecretKey, database: Path | None = None) -> Path:
    """Write a device key down on this machine. Returns where. Raises BadInputError."""
    file = place_of(vault, device_id(device, vault))
    check_apart(file, database)
    fresh = file.with_suffix(f".{os.getpid()}-{os.urandom(4).hex()}")
    make_private_file(fresh, f"{encode_device_key(device)}\n".encode(), "device key")
    fresh.replace(file)
    keep_names(file.parent)
    return file


def made(vault: bytes, database: Path | None = None) -> SecretKey:
    """A new device key for a vault, written down on this machine. Raises BadInputError."""
    device = SecretKey.generate()
    keep(vault, device, database)
    return device


def forget(vault: bytes, device: SecretKey) -> None:
    """Take a device key away that nothing was sealed with."""
    file = place_of(vault, device_id(device, vault))
    file.unlink(missing_ok=True)


def check_apart(file: Path, database: Path | None) -> None:
    """Raise BadInputError where the device key would be copied together with the vault."""
    if database is None:
        return
    folder = database.resolve().parent
    state = file.resolve().parents[2]
    if folder == state or state in folder.parents:
        raise BadInputError(
            f"the state folder {state} is also the folder of {database.name}: a copy of it would "
            "hold the device key as well. Set MEMORY_STORE_STATE to another folder",
            "MEMORY_STORE_STATE",
        )


def missing(database: Path | None) -> str:
    """What to say, and to do, where this machine lacks a vault's device key."""
    return (
        "this vault's passphrase also needs the device key of this vault, which is not on this "
        f"machine: {how_to_get(database)}"
    )


def how_to_get(database: Path | None) -> str:
    name = database or "DB"
    return f"memory-store keys device import {name} FILE, or open it with the recovery code"
