"""``keys device list add export import restore``: the key of this machine that a passphrase needs.

Boundary: a device key is printed, or written to a private file, by ``export`` alone, once the vault
was opened. It comes in from a file, standard input or a hidden prompt, never as an argument value.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memory_store.cli.options import (
    Group,
    at_terminal,
    json_option,
    key_file_option,
    unlocked,
    vault_command,
)
from memory_store.cli.rows import write_answer
from memory_store.cli.terminal import SHORT_ID, printable_line
from memory_store.cli.vault_argument import VaultCommand, database_argument
from memory_store.errors import BadInputError, LockedError

if TYPE_CHECKING:
    from memory_store.actions.key_devices import DeviceKey
    from memory_store.store import MemoryStore

MOST_BYTES = 4_096  # of what is imported


@click.group(cls=Group)
def device() -> None:
    """Say which device key a passphrase needs, make one, and bring it to another machine.

    \b
    memory-store keys device list notes.db
    memory-store keys device add notes.db
    memory-store keys device export notes.db ~/usb/notes.device
    memory-store keys device import notes.db ~/usb/notes.device
    memory-store keys device restore notes.db

    A passphrase with a device key opens the vault on machines that have that key: a thief of the
    file alone cannot guess at it. The recovery code and key files need no device key.
    """


@device.command("list", cls=VaultCommand)
@database_argument
@json_option("Print an array as JSON")
def list_(database: Path, as_json: bool) -> None:
    """List the device keys that passphrases of the vault need, and whether this machine has them.

    \b
    memory-store keys device list notes.db

    It needs no key of the vault.
    """
    from memory_store.store import MemoryStore

    found = MemoryStore.device_keys(database)
    nothing = "No passphrase of this vault needs a device key."
    write_answer(as_json, found, map(_line, found), nothing)


@device.command(cls=VaultCommand)
@database_argument
def add(database: Path) -> None:
    """Make a passphrase need a device key of this machine, or a new one in place of the old one.

    \b
    memory-store keys device add notes.db

    Asks for your passphrase, or takes it from MEMORY_STORE_PASSPHRASE. From then on it opens the
    vault on machines that have the device key. Copies made before still open with it alone.
    """
    from memory_store.key_lookup import PASSPHRASE_VARIABLE, take_passphrase
    from memory_store.store import MemoryStore

    passphrase = take_passphrase()
    if passphrase is None and not at_terminal():
        raise LockedError(
            f"{database} is locked: run it in a terminal to be asked, or set {PASSPHRASE_VARIABLE}"
        )
    passphrase = passphrase or click.prompt("Passphrase", hide_input=True, err=True)
    with MemoryStore.open(database, passphrase=passphrase) as store:
        slot = store.keys.add_device(passphrase)
    for one in MemoryStore.device_keys(database):
        if one.id == slot.device:
            click.echo(_line(one))
    click.echo(
        "Keep your recovery code, or export the device key: without both, a passphrase whose "
        "device key is lost opens nothing.",
        err=True,
    )


@vault_command(group=device)
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
def export(store: MemoryStore, file: Path | None) -> None:
    """Print the device key that your passphrase needs, or write it to a private file.

    \b
    memory-store keys device export notes.db ~/usb/notes.device
    memory-store keys device export notes.db

    The vault is opened first. A thief who has the device key and the vault's file can guess at the
    passphrase: delete the exported file once the other machine has the key.
    """
    from memory_store.key_files import refuse_beside
    from memory_store.paths import home_path, make_private_file

    if file is None:
        click.echo(store.keys.export_device())
        return
    file = home_path(file)
    refuse_beside(file, store.path, "device key")
    make_private_file(file, f"{store.keys.export_device()}\n".encode(), "device key")
    click.echo(f"Wrote {file}. On the other machine: memory-store keys device import DB FILE")


@device.command("import", cls=VaultCommand)
@database_argument
@click.argument("file", required=False, type=click.Path(path_type=Path, allow_dash=True))
def import_(database: Path, file: Path | None) -> None:
    """Keep a device key on this machine that another one exported.

    \b
    memory-store keys device import notes.db ~/usb/notes.device
    memory-store keys device import notes.db

    Without FILE it asks for the device key; - reads standard input. It needs no key of the vault.
    """
    from memory_store.store import MemoryStore

    for one in MemoryStore.import_device_key(database, _given(file)):
        click.echo(_line(one))


def _given(file: Path | None) -> str:
    """What is to be imported. Raises BadInputError."""
    if file is None:
        if not at_terminal():
            raise BadInputError("name the file that was exported, or - for standard input", "FILE")
        typed: str = click.prompt("Device key", hide_input=True, err=True)
        return typed
    if str(file) == "-":
        return sys.stdin.buffer.read(MOST_BYTES).decode("ascii", "replace")
    with file.open("rb") as opened:
        return opened.read(MOST_BYTES).decode("ascii", "replace")


@device.command(cls=VaultCommand)
@database_argument
@key_file_option("A key file that opens the vault")
def restore(database: Path, key_file: Path | None) -> None:
    """Put the device key back on this machine, with the recovery code or another key.

    \b
    memory-store keys device restore notes.db

    In a terminal it asks for the recovery code.
    """
    with unlocked(database, key_file, passphrase=False) as store:
        for one in store.keys.restore_device():
            click.echo(_line(one))


def _line(one: DeviceKey) -> str:
    whose = "the owner's" if one.owner else "a member's"
    where = f"here: {printable_line(one.path)}" if one.here else "not on this machine"
    return f"{one.id[:SHORT_ID]}  {whose:<11}  {where}"
