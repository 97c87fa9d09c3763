"""Opening a vault: a secret opens a key slot, and the file is brought up to today's format.

Boundary: secrets come in, an opened vault goes out; a root key is never handed on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path

from memory_store.crypto.keys import SecretKey
from memory_store.errors import BadInputError, MemoryStoreError, TamperedError
from memory_store.session.whole_vault import WholeVault
from memory_store.sqlite import FAILING, FULL, FileAccess, plain_cause, sqlite3
from memory_store.vault.keyring import ROOT_SETTING, WholeKeyring, root_generation
from memory_store.vault.opened_slots import OpenedSlot, is_cheap, open_root, reopened, strengthened
from memory_store.vault.settings import Settings, read_settings, read_vault_id
from memory_store.vault.slots import OWNER, Secret, list_slots
from memory_store.vault.storage import Storage
from memory_store.vault.storage.file_access import file_access
from memory_store.vault.storage.schema import FORMAT_VERSION, check_is_vault

EARLIER_ROOT = (
    "the root key was replaced here and not there, where a lost device may have written since: "
    "sync by a folder, or put this vault there anew with memory-store copy"
)
SLOT_PATIENCE = 1.0  # seconds that wrapping a slot anew waits for another writer, at most


def open_vault(
    path: Path, secrets: Iterable[Secret], access: FileAccess | None = None
) -> WholeVault:
    """Unlock a vault with the first secret that fits. Raises WrongKeyError when none does.

    ``access``: how its file is opened; ``None`` for whatever the file allows.
    """
    access = check_is_vault(path, access)
    notices: Sequence[str] = ()
    with closing(Storage.open(path, read_only=True, access=access)) as storage:
        vault = read_vault_id(storage)
        with storage.reading():
            slot = open_root(storage, vault, secrets, path)
            keyring = WholeKeyring.of_slot(storage, vault, slot)
            settings = _settings(storage, keyring)
        if is_cheap(slot.slot) and not access.read_only:
            keyring.slot_key = _strengthened(path, vault, slot, access).key
        if keyring.is_owner and not access.read_only:
            access, notices, settings = _upgraded(path, storage, keyring, access, settings)
    opened = WholeVault(path, vault, keyring, access, settings)
    opened.notices = tuple(notices)
    if not access.read_only:
        opened.purge_trash()
    access.check_unchanged(path)
    return opened


def _settings(storage: Storage, keyring: WholeKeyring) -> Settings | None:
    """The settings, with the keys that were just looked at; None where they must be read again, by
    what knows what to do where they cannot."""
    try:
        return read_settings(storage, keyring, looked=True)
    except (TamperedError, sqlite3.OperationalError):
        return None


def _upgraded(
    path: Path,
    storage: Storage,
    keyring: WholeKeyring,
    access: FileAccess,
    settings: Settings | None,
) -> tuple[FileAccess, Sequence[str], Settings | None]:
    """How a vault is opened that is brought up to today's format, if it is not, and what its owner
    has to know of that: one that was tampered with is left as it is, to be read as far as it can
    be; and so is one for which the disk has no room, until it has. The settings, where nothing had
    to be done."""
    try:
        settings = settings or read_settings(storage, keyring)
        if settings.format >= FORMAT_VERSION:
            return access, [], settings
        with closing(Storage.open(path, access=access)) as writer:
            return access, _upgrade(writer, keyring, settings), None
    except TamperedError as error:
        cause = f"it cannot be brought up to today's format: {error}"
        return FileAccess(cause, "mode=ro"), [], None
    except sqlite3.OperationalError as error:
        cause = plain_cause(error)
        if cause not in (FULL, FAILING):
            raise
    now = file_access(path)
    return (now if now.read_only else FileAccess(cause, "mode=ro")), [], None


def _upgrade(storage: Storage, keyring: WholeKeyring, settings: Settings) -> Sequence[str]:
    """Bring the vault up to today's format, which is seldom needed. Returns what to say of it."""
    from memory_store.session.row_tags import tag_rows
    from memory_store.vault.earlier_sources import warnings
    from memory_store.vault.upgrade import upgrade

    notices = warnings(storage, keyring, settings)
    return notices if upgrade(storage, keyring, (tag_rows,)) else ()


def _strengthened(path: Path, vault: bytes, slot: OpenedSlot, access: FileAccess) -> OpenedSlot:
    """The slot at today's cost; as it was, where that cannot be written: it did open the vault."""
    try:
        with closing(Storage.open(path, access=access, patience=SLOT_PATIENCE)) as storage:
            slot = strengthened(storage, vault, slot)
            storage.erase_traces()
    except (sqlite3.Error, MemoryStoreError):
        return slot
    return slot


def open_with_root(
    path: Path, principal: int, root: SecretKey, access: FileAccess, pin: bytes = b""
) -> WholeVault:
    """A vault that is open in another process of ours, which gave us its root key."""
    with closing(Storage.open(path, read_only=True, access=access)) as storage:
        vault = read_vault_id(storage)
        keyring = WholeKeyring.unlock(storage, vault, principal, root, pin)
    opened = WholeVault(path, vault, keyring, access)
    opened.first_warning()  # the process that gave us the key shows it
    return opened


def _root_by_slot(storage: Storage, vault: WholeVault, path: Path) -> SecretKey:
    """The root key of a copy, by the slot that opened a vault."""
    keyring = vault.keyring
    slots = [one for one in list_slots(storage, OWNER) if one.id == keyring.slot]
    with suppress(TamperedError):
        if slots and keyring.slot_key is not None:
            return reopened(slots[0], vault.vault, keyring.slot_key).root
    raise BadInputError(
        f"{path}: the root key was replaced there, and what opened this vault does not open it; "
        "sync by a folder, or with a key that opens both",
        "target",
    )


def open_again(vault: WholeVault, path: Path) -> WholeVault:
    """Another copy of a vault that is open, with its root key; where that was replaced there, with
    the key slot that opened this one.

    Raises BadInputError where it is another vault, that slot is not there any more, or the root key
    was replaced here alone: then who has the earlier one may have written there since.
    """
    access, keyring = file_access(path), vault.keyring
    check_is_vault(path, access)
    with closing(Storage.open(path, read_only=True, access=access)) as storage:
        if read_vault_id(storage) != vault.vault:
            raise BadInputError(f"{path}: another vault, not a copy of this one", "target")
        there, here = (
            root_generation(storage.settings.clear(ROOT_SETTING)),
            vault.keyring.generation,
        )
        if there < (here or 0):
            raise BadInputError(f"{path}: {EARLIER_ROOT}", "target")
        if there == here:
            root = SecretKey(keyring.root.buffer)
        else:
            root = _root_by_slot(storage, vault, path)
    return open_with_root(path, keyring.principal, root, access, keyring.pin)
