"""Where the key of a vault comes from when it is opened from a command or another program.

Boundary: this module sees key files and passphrases and hands them on at once; it keeps none,
logs none and puts none in a message. A secret is never an argument value. The passphrase variable
is taken out of ``os.environ`` as soon as it is read, so that child processes do not inherit it;
the copy the operating system made at start (``/proc/PID/environ``) stays readable to the same
user until the process ends. A key file must be private (mode 0600) and must not lie in the
database's own folder, where a thief of one has both.

A passphrase may need this machine's device key besides: that is found by itself, in the state
folder (``vault/device_keys.py``).

Lookup order: ``key_file`` · ``MEMORY_STORE_KEY_FILE`` · ``MEMORY_STORE_PASSPHRASE`` · the OS
keyring · a prompt, which takes the recovery code too. A key file named in the call must fit. One
found in the environment may belong to another vault, so the next source is tried.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar

from memory_store.addresses import vault_path
from memory_store.configuration import chosen
from memory_store.errors import (
    BadInputError,
    DeviceKeyError,
    LockedError,
    MemoryStoreError,
    WrongKeyError,
)
from memory_store.key_files import checked_key_file
from memory_store.paths import KEY_FILE_VARIABLE

TRIES = 3
PASSPHRASE_VARIABLE = "MEMORY_STORE_PASSPHRASE"
NOT_SHARED = (
    "Lost yours? The recovery code opens the vault, typed where the passphrase is asked for. "
    "Another person's vault opens with your key only while something in it is shared with you"
)
"""The file cannot say which: it holds keys only of persons with whom something is shared."""

Store = TypeVar("Store")


def opened_by_first_key(
    opening: Callable[..., Store],
    path: str | Path,
    *,
    key_file: str | Path | None = None,
    ask_passphrase: Callable[[], str] | None = None,
    use_passphrase_env: bool = True,
    embedder: str | None = None,
    refused: Callable[[WrongKeyError], None] | None = None,
) -> Store:
    """Open the vault at ``path`` with the first source of a key that fits.

    ``opening`` is ``MemoryStore.open``, which this module does not know.

    ``ask_passphrase`` is called last, and only when nothing else fitted; its answer may be the
    passphrase or the recovery code. ``refused`` hears of a wrong one before it is asked for again,
    three times in all; without it once. ``embedder`` names another model than the vault's own.

    Raises :class:`NotAVaultError`, :class:`FormatError`, :class:`BadInputError` (an unusable key
    file), :class:`WrongKeyError` (no source fits) or :class:`LockedError` (no source at all).
    """
    from memory_store.vault.storage.schema import check_is_vault

    database = vault_path(path)
    passphrase = take_passphrase() if use_passphrase_env else None
    check_is_vault(database)  # before any secret is asked for
    ways = _Ways(opening, database, embedder)
    if key_file is not None:
        return ways.by_file(key_file, "key file")

    refusals: list[MemoryStoreError] = []
    for attempt in ways.found(passphrase):
        try:
            return attempt()
        except (WrongKeyError, LockedError, BadInputError) as refusal:
            refusals.append(refusal)
    tries = TRIES if refused is not None else 1
    while ask_passphrase is not None:
        tries -= 1
        try:
            return ways.by_answer(ask_passphrase())
        except WrongKeyError as error:
            if not tries or refused is None:
                raise
            refused(error)
    if refusals:
        raise refusals[0]
    raise LockedError(
        f"{database} is locked and no key was given: use --key-file PATH, set "
        f"{KEY_FILE_VARIABLE} or {PASSPHRASE_VARIABLE}, or run it in a terminal to be "
        "asked; memory-store unlock asks once"
    )


def key_in_environment() -> bool:
    """Whether the environment names a key file or a passphrase (read neither)."""
    return bool(chosen(KEY_FILE_VARIABLE) or os.environ.get(PASSPHRASE_VARIABLE))


def keyring_may_open(path: Path) -> bool:
    """Whether asking the operating system's keyring for the vault's key can help. Asks nothing."""
    return not key_in_environment() and find_spec("keyring") is not None and _has_keyring_slot(path)


def has_passphrase(path: Path) -> bool:
    """Whether a passphrase opens the vault."""
    from memory_store.vault.slots import PASSPHRASE

    return PASSPHRASE in _slot_kinds(path)


def take_passphrase() -> str | None:
    """The passphrase from the environment, removed from it; ``None`` when unset or empty."""
    return os.environ.pop(PASSPHRASE_VARIABLE, None) or None


class _Ways(Generic[Store]):
    """The ways to open one vault, each with a secret of :meth:`MemoryStore.open`."""

    def __init__(self, opening: Callable[..., Store], database: Path, embedder: str | None) -> None:
        self._opening, self._database, self._embedder = opening, database, embedder

    def found(self, passphrase: str | None) -> Iterator[Callable[[], Store]]:
        """One way per source that is there, in the lookup order."""
        named = chosen(KEY_FILE_VARIABLE)
        if named:
            yield lambda: self.by_file(named, KEY_FILE_VARIABLE)
        if passphrase is not None:
            yield lambda: self._by(passphrase=passphrase)
        if find_spec("keyring") is not None and _has_keyring_slot(self._database):
            yield lambda: self._by(keyring=True)

    def by_file(self, key_file: str | Path, source: str) -> Store:
        """Open with a key file; ``source`` says in the refusal where its name came from."""
        file = checked_key_file(key_file, self._database)
        try:
            return self._by(key_file=file)
        except WrongKeyError as refusal:
            raise WrongKeyError(f"{self._database} ({source} {file}): {refusal}") from None

    def by_answer(self, answer: str) -> Store:
        """Open with what was typed: a passphrase, or the recovery code."""
        if not answer:
            raise LockedError(f"{self._database} is locked: nothing was entered")
        try:
            return self._by(recovery_code=answer)
        except (WrongKeyError, BadInputError):
            return self._by(passphrase=answer)

    def _by(self, **secret: Any) -> Store:
        try:
            return self._opening(self._database, embedder=self._embedder, **secret)
        except DeviceKeyError:
            raise
        except WrongKeyError as refusal:
            if not secret.keys() & {"key_file", "passphrase"}:
                raise
            raise WrongKeyError(f"{refusal}. {NOT_SHARED}") from None


def _has_keyring_slot(database: Path) -> bool:
    """Whether asking the OS keyring can help: asking may open a dialogue."""
    from memory_store.vault.slots import KEYRING

    return KEYRING in _slot_kinds(database)


def _slot_kinds(database: Path) -> set[str]:
    from memory_store.vault.slots import list_slots
    from memory_store.vault.storage import Storage
    from memory_store.vault.storage.file_access import file_access

    connection = Storage.open(database, read_only=True, access=file_access(database))
    try:
        return {slot.kind for slot in list_slots(connection)}
    finally:
        connection.close()
