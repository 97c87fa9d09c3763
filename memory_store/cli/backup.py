"""A copy of a vault, taken while it is in use.

Boundary: only sealed data passes here and no key is needed. The copy is written under another
name in the target's folder (mode 0600), checked, flushed, and only then given its name.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from memory_store.errors import BadInputError, MemoryStoreError, StorageError


def copy_vault(source: Path, target: Path) -> int:
    """Copy the vault at ``source`` to the new file ``target``; returns its size in bytes.

    ``VACUUM INTO`` reads one consistent state, committed changes of the write-ahead log included,
    and leaves out free pages. Raises :class:`NotAVaultError`, :class:`FormatError`,
    :class:`BadInputError` and, where it does not fit, :class:`StorageError`; nothing is kept then.
    """
    from memory_store.vault.storage.schema import check_is_vault

    check_is_vault(source)
    if target.is_dir():
        target = target / source.name
    if target.exists():
        raise BadInputError(f"{target} exists already; a backup never overwrites", "target")
    if not target.parent.is_dir():
        raise BadInputError(f"the folder {target.parent} does not exist", "target")
    # the folder is private and empty: VACUUM INTO wants a file that does not exist yet
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
        unchecked = Path(folder) / target.name
        _vacuum_into(source, unchecked, target)
        unchecked.chmod(0o600)
        _check(unchecked)
        size = unchecked.stat().st_size
        _name(unchecked, target)
    return size


def _name(unnamed: Path, target: Path) -> None:
    """Give the finished copy its name. A link, unlike a rename, never replaces a file."""
    try:
        os.link(unnamed, target)
    except FileExistsError as error:
        raise BadInputError(
            f"{target} was made meanwhile; nothing was replaced", "target"
        ) from error
    except OSError:  # a file system without hard links, such as FAT on a memory stick
        unnamed.rename(target)


def _vacuum_into(source: Path, unchecked: Path, target: Path) -> None:
    from memory_store.sqlite import plain_cause, sqlite3, storage_faults
    from memory_store.vault.storage import Storage
    from memory_store.vault.storage.file_access import file_access

    access = file_access(source)
    with storage_faults(source):
        connection = Storage.open(source, read_only=True, access=access)
    try:
        with access.unchanged(source):
            connection.copy_to(unchecked)
    except sqlite3.OperationalError as error:  # a damaged source is a DatabaseError
        raise StorageError(f"{target}: {plain_cause(error)}; nothing was kept of it") from error
    except sqlite3.DatabaseError as error:
        raise StorageError(f"{source}: {plain_cause(error)}") from error
    finally:
        connection.close()


def _check(copy: Path) -> None:
    from memory_store.vault.storage import Storage

    connection = Storage.open(copy)
    try:
        verdict = connection.quick_check()
        connection.keep_log()  # SQLite made it in another way
    finally:
        connection.close()
    if verdict != "ok":
        raise MemoryStoreError(f"the copy is damaged and was not kept: {verdict}")
    with copy.open("rb") as file:
        os.fsync(file.fileno())
