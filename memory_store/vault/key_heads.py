"""How a vault is opened, apart from its file: slots, wrapped keys and sealed settings.

Boundary: all of it stands in the vault's file as well, wrapped or sealed or in clear by design; no
key is opened here but by the slot that a secret opens. Nothing that is read is trusted until those
keys have opened the settings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from msgspec import MsgspecError, Struct, msgpack

from memory_store.errors import FormatError
from memory_store.sqlite import sqlite3
from memory_store.vault.keyring import ROOT_SETTING, VAULT_SCOPE, WholeKeyring, root_generation
from memory_store.vault.manifest import Manifest, write_manifest
from memory_store.vault.opened_slots import OpenedSlot
from memory_store.vault.settings import Settings, read_settings, read_vault_id
from memory_store.vault.slots import OWNER, Slot, insert_slots, list_slots
from memory_store.vault.storage import Storage
from memory_store.vault.sync_state import Step

UNREADABLE = "keys that are nothing that this version reads"
CLEAR = ("format", "vault", ROOT_SETTING)


class Head(Struct, frozen=True):
    """The owner's slots and wrapped keys (collection, epoch, wrapped), and the sealed settings."""

    clear: dict[str, str]
    revision: int
    settings: bytes
    slots: tuple[Slot, ...]
    keys: tuple[tuple[str, int, bytes], ...]
    public: bytes | None
    collections: dict[str, str]
    roots: tuple[Step, ...] = ()

    @property
    def rank(self) -> tuple[int, int]:
        """How often the root key was replaced, and the epoch of the vault's own scope."""
        epochs = [epoch for scope, epoch, _ in self.keys if scope == VAULT_SCOPE]
        return root_generation(self.clear.get(ROOT_SETTING)), max(epochs, default=-1)

    @property
    def digest(self) -> bytes:
        """Another one once another key opens the vault, or it is sealed with another one."""
        scope = [key for key in self.keys if key[0] == VAULT_SCOPE]
        return hashlib.sha256(msgpack.encode((self.rank, self.slots, scope))).digest()


def read_head(storage: Storage, roots: tuple[Step, ...] = ()) -> Head:
    """That of a vault, of one moment, with the root keys that there were."""
    with storage.reading():
        clear = {name: storage.settings.clear(name) for name in CLEAR}
        revision, sealed = storage.settings.sealed() or (0, b"")
        return Head(
            {name: value for name, value in clear.items() if value is not None},
            revision,
            sealed,
            tuple(list_slots(storage, OWNER)),
            tuple((c, e, w) for c, e, w in storage.keys.of(OWNER).keys),
            storage.principals.public(OWNER),
            storage.collections.created(),
            roots,
        )


def encoded(head: Head) -> bytes:
    return msgpack.encode(head)


def decoded(data: bytes) -> Head:
    """Raises FormatError for what is no head."""
    try:
        return msgpack.decode(data, type=Head)
    except (MsgspecError, ValueError):
        raise FormatError(UNREADABLE) from None


def in_memory(head: Head) -> Storage:
    """A vault without memories, made of a head, that is on no disk. The caller closes it.

    Raises FormatError where a vault has no room for what it says.
    """
    storage = Storage(sqlite3.connect(":memory:", isolation_level=None))
    try:
        storage.create_tables()
        with storage.transaction():
            write_head(storage, head)
    except BaseException:
        storage.close()
        raise
    return storage


def write_head(storage: Storage, head: Head) -> None:
    """Fill the tables of a vault that holds nothing yet (inside the caller's transaction).

    Raises FormatError for what they do not take.
    """
    try:
        _write_head(storage, head)
    except (OverflowError, ValueError, sqlite3.IntegrityError):
        raise FormatError(UNREADABLE) from None


def _write_head(storage: Storage, head: Head) -> None:
    storage.settings.write_clear({name: head.clear[name] for name in CLEAR if name in head.clear})
    storage.settings.write_sealed(head.revision, head.settings)
    storage.principals.insert(OWNER, "")
    if head.public is not None:
        storage.principals.write_public(OWNER, head.public)
    if head.slots:
        insert_slots(storage, *head.slots)
    storage.keys.insert([(scope, epoch, OWNER, wrapped) for scope, epoch, wrapped in head.keys])
    for collection, created in head.collections.items():
        storage.collections.insert(collection, created)


def opened_head(
    storage: Storage, opening: Callable[[Storage, bytes], OpenedSlot]
) -> tuple[WholeKeyring, Settings, OpenedSlot]:
    """The keys and settings of a vault without memories, whose accounts are made on the way.

    Inside the caller's transaction. Raises what ``opening`` raises, and TamperedError where keys
    and settings do not belong together.
    """
    vault = read_vault_id(storage)
    slot = opening(storage, vault)
    keyring = WholeKeyring.of_slot(storage, vault, slot)
    for collection in keyring.readable():
        write_manifest(storage, keyring.of(collection), Manifest())
    return keyring, read_settings(storage, keyring), slot
