"""``backup export``: copies of a vault, sealed as it is or in plain text.

Boundary: in a backup only sealed data passes, and no key is needed. It is written under another
name in the target's folder (mode 0600), checked, flushed, and only then given its name. An export
writes every text in clear, into a new folder.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memory_store.addresses import is_address
from memory_store.cli.options import vault_command
from memory_store.cli.terminal import in_units, memories
from memory_store.cli.vault_argument import VaultCommand, database_argument
from memory_store.configuration import typed_vault
from memory_store.errors import (
    BadInputError,
    FormatError,
    MemoryStoreError,
    StorageError,
    TamperedError,
)

if TYPE_CHECKING:
    from memory_store.records import Memory
    from memory_store.store import MemoryStore

NEEDS_DEVICE_KEY = (
    "Restored on another machine, it opens with the recovery code or a key file, and with the "
    "passphrase once that machine has the device key: memory-store keys device export{}"
)
STANDARD_OUTPUT = Path("-")
SKIP_DAMAGED = "--skip-damaged"
PLAIN_TEXT = "They are plain text there: delete the folder when you are done with it."


@click.command(cls=VaultCommand)
@database_argument
@click.argument("target", type=click.Path(path_type=Path))
def backup(database: Path, target: Path) -> None:
    """Copy the vault to a new file.

    \b
    memory-store backup notes.db /media/usb/notes-backup.db

    Needs no key and disturbs no program that is using the vault. The copy is as sealed as the
    vault and opens with the same keys.
    """
    from memory_store.store import MemoryStore

    if target == STANDARD_OUTPUT:
        raise BadInputError("only a file can hold a backup: name one", "TARGET")
    if target.is_dir() and not is_address(database):
        target /= database.name
    size = copy_vault(database, target)
    click.echo(f"{target}: {in_units(size)}, checked")
    if MemoryStore.device_keys(database):
        click.echo(NEEDS_DEVICE_KEY.format(typed_vault(database)), err=True)


@vault_command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--ndjson", is_flag=True, help="One memories.ndjson instead of Markdown files")
@click.option(SKIP_DAMAGED, is_flag=True, help="Leave out what is damaged, and name it")
def export(store: MemoryStore, folder: Path, ndjson: bool, skip_damaged: bool) -> None:
    """Write every memory to a folder in PLAIN TEXT.

    \b
    memory-store export notes.db ~/notes-export
    memory-store export notes.db - --ndjson | head

    Markdown with front matter, one file for each memory. Importing the folder again gives the
    same memories with the same ids.
    """
    from memory_store.actions.export import export_markdown, export_ndjson, export_ndjson_folder

    if folder == STANDARD_OUTPUT and not ndjson:
        raise BadInputError("only --ndjson can be written to standard output", "DIR")
    for name in ("SIGTERM", "SIGHUP"):  # a closed terminal, too, leaves nothing in plain text
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is signal.SIG_DFL:
            signal.signal(getattr(signal, name), signal.default_int_handler)
    left_out: dict[str, str] = {}
    every = store.every(damaged=left_out.__setitem__) if skip_damaged else _undamaged(store)
    if folder == STANDARD_OUTPUT:
        export_ndjson(every, sys.stdout)
    else:
        written = (export_ndjson_folder if ndjson else export_markdown)(every, folder)
        click.echo(f"{memories(written)} written to {folder}")
        click.echo(PLAIN_TEXT, err=True)
    for memory, why in left_out.items():
        click.echo(f"left out {memory}: {why}", err=True)
    if left_out:
        click.get_current_context().exit(1)


def _undamaged(store: MemoryStore) -> Iterator[Memory]:
    """Every memory; where one cannot be read, the error says how to write the others."""
    try:
        yield from store.every()
    except (TamperedError, FormatError) as error:
        raise type(error)(f"{error}. To write the rest: give {SKIP_DAMAGED}, too") from error


def copy_vault(source: Path, target: Path) -> int:
    """Copy the vault at ``source`` to the new file ``target``; returns its size in bytes.

    ``VACUUM INTO`` reads one consistent state, committed changes of the write-ahead log included,
    and leaves out free pages. Raises :class:`NotAVaultError`, :class:`FormatError`,
    :class:`BadInputError` and, where it does not fit, :class:`StorageError`; nothing is kept then.
    """
    from memory_store.vault.storage.schema import check_is_vault

    if is_address(source):
        from memory_store.vault.storage.transfer import copy_vault as copied

        copied(source, target)
        return target.stat().st_size
    check_is_vault(source)
    if target.exists():
        raise BadInputError(f"{target} exists already; a backup never overwrites", "target")
    if not target.parent.is_dir():
        raise BadInputError(f"the folder {target.parent} does not exist", "target")
    # the folder is private and empty: VACUUM INTO wants a file that does not exist yet
    try:
        private = tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from None
    with private as folder:
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
