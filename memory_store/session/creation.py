"""Making a vault: its file, tables, root key, slots and first collection.

Boundary: the root key exists here in clear until the vault is opened again by one of its secrets.
A file that could not be finished is taken away.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from memory_store.crypto.keys import SecretKey
from memory_store.errors import BadInputError, NotAVaultError
from memory_store.session.collections import PERSONAL
from memory_store.session.unlock import open_vault
from memory_store.session.whole_vault import WholeVault
from memory_store.sqlite import IN_MEMORY, WRITABLE, FileAccess, sqlite3
from memory_store.text.tokens import ANALYSER_VERSION
from memory_store.vault import device_keys
from memory_store.vault.collections import insert_collection
from memory_store.vault.identities import publish_owner
from memory_store.vault.keyring import VAULT_SCOPE, WholeKeyring
from memory_store.vault.settings import (
    MEMORY,
    PROFILES,
    TABLE,
    Settings,
    check_topics,
    write_settings,
)
from memory_store.vault.slots import KEY_FILE, OWNER, PASSPHRASE, Secret, insert_slots, made_slot
from memory_store.vault.storage import Storage
from memory_store.vault.storage.schema import FORMAT_VERSION


def create_vault(
    path: Path,
    secrets: Iterable[Secret],
    profile: str,
    topics: str | None = None,
    model: str | None = None,
) -> WholeVault:
    """Make a new vault file that each of the secrets opens; ``model`` is to embed what comes in.

    An existing SQLite database gains the vault's tables beside its own. Raises BadInputError when
    the file holds a vault already, or is no database.
    """
    if profile not in PROFILES:
        raise BadInputError(f"no profile {profile!r}; there is: {', '.join(PROFILES)}", "profile")
    topics = topics or (MEMORY if profile == "strict" else TABLE)
    check_topics(topics, profile)
    secrets = list(secrets)
    vault, device, fresh = os.urandom(16), None, not path.exists()
    if fresh:
        make_private_file(path)
    try:
        if any(secret.two_factors for secret in secrets):
            device = device_keys.made(vault, path)
        _fill_new_vault(path, vault, secrets, device, profile, topics, model=model)
    except BaseException:
        if fresh:
            path.unlink(missing_ok=True)
        if device is not None:
            device_keys.forget(vault, device)
        raise
    return open_vault(path, secrets[:1])


def create_in_memory(name: Path) -> WholeVault:
    """A vault that is in the memory of this process alone, and is gone once it is locked.

    Its key is made here and kept here; nothing of it is written to any disk. Messages call it
    by ``name``.
    """
    access = FileAccess(parameters=IN_MEMORY, place=f"/{os.urandom(16).hex()}")
    key = Secret(KEY_FILE, key=SecretKey.generate())
    with closing(Storage.open(name, access=access)):  # it ends with its last connection
        _fill_new_vault(name, os.urandom(16), [key], None, "default", MEMORY, access)
        return open_vault(name, [key], access)


def _fill_new_vault(
    path: Path,
    vault: bytes,
    secrets: list[Secret],
    device: SecretKey | None,
    profile: str,
    topics: str,
    access: FileAccess = WRITABLE,
    model: str | None = None,
) -> None:
    storage = Storage.open(path, access=access)
    try:
        if storage.begin_file():
            raise BadInputError(f"{path} is a vault already", "db")
        storage.create_tables()
        with storage.transaction():
            storage.settings.write_clear({"format": str(FORMAT_VERSION), "vault": vault.hex()})
            now = datetime.now(UTC).isoformat(timespec="seconds")
            storage.principals.insert(OWNER, now)
            root = SecretKey.generate()
            publish_owner(storage, root)
            for secret in secrets:
                needed = device if secret.two_factors else None
                insert_slots(storage, made_slot(vault, OWNER, secret, root, device=needed))
            keyring = WholeKeyring(vault, 0, root)
            keyring.create_collection_key(storage, VAULT_SCOPE)
            personal = insert_collection(storage, keyring)
            settings = Settings(
                profile=profile,
                topics=topics,
                created=now,
                personal=personal,
                analyser=ANALYSER_VERSION,
                embedder=model or "",
                collections=(personal,),
                format=FORMAT_VERSION,
                passphrase_alone=any(
                    one.kind == PASSPHRASE and not one.two_factors for one in secrets
                ),
                names={personal: PERSONAL},
            )
            write_settings(storage, keyring, settings)
            keyring.wipe()
    except sqlite3.DatabaseError as error:
        raise NotAVaultError(f"{path}: cannot be made a vault ({error})") from None
    finally:
        storage.close()


def make_private_file(path: Path) -> None:
    """A new empty file that its owner alone can read. Raises NotAVaultError."""
    if not path.parent.is_dir():
        raise NotAVaultError(f"{path}: the folder {path.parent} does not exist")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        raise NotAVaultError(f"{path}: cannot be made ({error.strerror})") from None
