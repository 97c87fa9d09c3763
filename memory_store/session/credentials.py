"""The secrets that a caller names: passphrases, key files, recovery codes, the OS keyring.

Boundary: reads key files and the operating system's keyring, and hands the bytes on in buffers
that can be wiped. Messages name files and kinds of key, never what is in them.
"""

from __future__ import annotations

import base64
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from memory_store.crypto.keys import (
    SecretKey,
    decode_key_file,
    decode_recovery_code,
    new_recovery_code,
)
from memory_store.errors import BadInputError, LockedError, MemoryStoreError
from memory_store.key_files import checked_key_file, made_key_file
from memory_store.vault.slots import KEY_FILE, KEYRING, PASSPHRASE, RECOVERY, Secret

KEYRING_SERVICE = "memory-store"
LEAST_PASSPHRASE = 8  # characters; NIST SP 800-63B, 3.1.1: the least for a user-chosen secret


def secrets_to_set(
    database: Path,
    *,
    key_file: str | Path | None,
    passphrase: str | None,
    keyring: bool,
    device_key: bool = True,
    one: bool = False,
) -> list[Secret]:
    """The secrets of slots that are to be made. A key file that is absent is made.

    ``device_key``: whether the passphrase also needs a device key. Raises BadInputError without any
    way to open the vault, with more than ``one`` of them, or for a passphrase shorter than 8
    characters.
    """
    given = [key for key in (key_file, passphrase, keyring or None) if key is not None]
    if one and len(given) != 1:
        raise BadInputError("give one key: a key file, a passphrase or the OS keyring", "key")
    if not given:
        raise BadInputError(
            "a vault needs a key: a key file, a passphrase or the OS keyring", "key"
        )
    secrets: list[Secret] = []
    if key_file is not None:
        secrets.append(_key_file_secret(made_key_file(key_file, database)))
    if passphrase is not None:
        secrets.append(passphrase_to_set(passphrase, device_key))
    if keyring:
        secrets.append(Secret(KEYRING, key=_new_keyring_entry(database)))
    return secrets


def new_recovery() -> tuple[Secret, str]:
    """A new recovery code: as a secret, and as text to be shown once."""
    code = new_recovery_code()
    return Secret(RECOVERY, key=decode_recovery_code(code)), code


def passphrase_to_set(passphrase: str, device_key: bool) -> Secret:
    """A new passphrase. Raises BadInputError for one shorter than 8 characters."""
    if len(passphrase) < LEAST_PASSPHRASE:
        raise BadInputError(
            f"a passphrase needs at least {LEAST_PASSPHRASE} characters", "passphrase"
        )
    return Secret(PASSPHRASE, passphrase=passphrase, two_factors=device_key)


def secrets_to_open(
    database: Path,
    *,
    key_file: str | Path | None,
    passphrase: str | None,
    recovery_code: str | None,
    keyring: bool,
) -> list[Secret]:
    """The secrets to try on a vault, in order. Raises LockedError when none is given."""
    secrets: list[Secret] = []
    if key_file is not None:
        secrets.append(_key_file_secret(checked_key_file(key_file, database)))
    if recovery_code is not None:
        code = decode_recovery_code(recovery_code)
        if code is None:
            raise BadInputError("that is no recovery code", "recovery_code")
        secrets.append(Secret(RECOVERY, key=code))
    if passphrase is not None:
        secrets.append(Secret(PASSPHRASE, passphrase=passphrase))
    if keyring:
        secrets.append(Secret(KEYRING, key=_keyring_entry(database)))
    if not secrets:
        raise LockedError(
            f"{database.name} is locked and no key was given: name its key_file, a passphrase, a "
            "recovery_code, or keyring=True"
        )
    return secrets


def secret_from_key_text(text: str) -> Secret | None:
    """The secret in a key file's pasted line, or None where the text is no such line."""
    try:
        return Secret(KEY_FILE, key=decode_key_file(text.encode(), "what was pasted"))
    except (BadInputError, UnicodeEncodeError):
        return None


def _key_file_secret(path: Path) -> Secret:
    return Secret(KEY_FILE, key=decode_key_file(path.read_bytes(), f"key file {path}"))


@contextmanager
def _os_keyring(refusal: Callable[[str], MemoryStoreError]) -> Iterator[Any]:
    """The package that reaches the OS keyring; what a backend raises becomes ``refusal``."""
    if find_spec("keyring") is None:
        raise BadInputError(
            "the OS keyring needs a package: pip install 'datasette-hybrid[keyring]'", "keyring"
        )
    try:
        yield importlib.import_module("keyring")
    except Exception as error:  # noqa: BLE001 - every backend has errors of its own
        raise refusal(f"({type(error).__name__})") from None


def _new_keyring_entry(database: Path) -> SecretKey:
    key = SecretKey.generate()
    complaint = "the OS keyring took no key {}"
    with _os_keyring(lambda why: BadInputError(complaint.format(why), "keyring")) as system:
        password = base64.b64encode(key.buffer).decode()
        system.set_password(KEYRING_SERVICE, str(database.resolve()), password)
    return key


def _keyring_entry(database: Path) -> SecretKey:
    with _os_keyring(lambda why: LockedError(f"the OS keyring did not answer {why}")) as system:
        stored = system.get_password(KEYRING_SERVICE, str(database.resolve()))
    if not stored:
        raise LockedError(f"the OS keyring holds no key for {database}")
    return decode_key_file(stored.encode(), "the OS keyring's entry")
