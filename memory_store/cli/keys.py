"""``keys list add remove rotate …``: what opens a vault, and what it is sealed with.

Boundary: no secret is an argument value. A new passphrase comes from a hidden prompt or from
``MEMORY_STORE_NEW_PASSPHRASE``, which is taken out of the environment; a new recovery code goes to
standard output, once.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_store.cli.options import (
    at_terminal,
    database_argument,
    json_option,
    unlocked,
    with_store,
)
from memory_store.cli.progress import Progress
from memory_store.cli.rows import write_json
from memory_store.cli.terminal import printable_line
from memory_store.errors import BadInputError

if TYPE_CHECKING:
    from memory_store.operations.key_rotation import Rotation
    from memory_store.operations.key_slots import KeySlot
    from memory_store.store import MemoryStore

NEW_PASSPHRASE_VARIABLE = "MEMORY_STORE_NEW_PASSPHRASE"
SHORT_ID = 8  # characters of a slot's id
KIND_NAMES = {
    "passphrase": "passphrase",
    "key-file": "key file",
    "keyring": "OS keyring",
    "recovery": "recovery code",
}


@click.group()
def keys() -> None:
    """Say what opens a vault, add and remove keys, and seal it under new ones.

    \b
    memory-store keys list notes.db
    memory-store keys add notes.db --passphrase
    memory-store keys remove notes.db 3f2a9c1b
    memory-store keys rotate notes.db
    """


@keys.command("list")
@database_argument
@json_option("Print an array as JSON")
@with_store
def list_(store: MemoryStore, as_json: bool) -> None:
    """List the keys that open the vault: kind, beginning of the id, when it was added.

    \b
    memory-store keys list notes.db
    """
    slots = store.key_slots()
    if as_json:
        write_json([asdict(slot) for slot in slots])
        return
    for slot in slots:
        click.echo(_line(slot))
    for name in store.unfinished_rotations():
        click.echo(
            f"The key of {printable_line(name)} is being replaced: "
            f"memory-store keys rotate {store.path} goes on",
            err=True,
        )


@keys.command()
@database_argument
@click.option(
    "--key-file", type=click.Path(path_type=Path), help="File with the key that opens the vault now"
)
@click.option(
    "--new-key-file", type=click.Path(path_type=Path), help="Key file to add; made if absent"
)
@click.option(
    "--passphrase",
    is_flag=True,
    help=f"Add a passphrase, asked for twice (or taken from {NEW_PASSPHRASE_VARIABLE})",
)
@click.option("--keyring", is_flag=True, help="Add a key in the keyring of the operating system")
@click.option("--recovery", is_flag=True, help="Add a recovery code, printed once")
@json_option("Print the new key's id (and the recovery code) as JSON")
def add(
    database: Path,
    key_file: Path | None,
    new_key_file: Path | None,
    passphrase: bool,
    keyring: bool,
    recovery: bool,
    as_json: bool,
) -> None:
    """Add a key that opens the vault beside those there are.

    \b
    memory-store keys add notes.db --passphrase
    memory-store keys add notes.db --recovery
    memory-store keys add notes.db --new-key-file ~/keys/second.key

    The vault is opened with a key it has already, looked up as always.
    """
    if sum((new_key_file is not None, passphrase, keyring, recovery)) != 1:
        raise BadInputError(
            "say which key to add: --passphrase, --recovery, --keyring or --new-key-file PATH",
            "passphrase",
        )
    with unlocked(database, key_file, passphrase=False) as store:
        code = None
        if recovery:
            slot, code = store.add_recovery_code()
        else:
            chosen = _new_passphrase() if passphrase else None
            slot = store.add_key(key_file=new_key_file, passphrase=chosen, keyring=keyring)
    if as_json:
        write_json({**asdict(slot), **({"recovery_code": code} if code else {})})
        return
    if code:
        click.echo(f"Recovery code, shown only this once:\n\n    {code}\n")
    click.echo(f"Added {_line(slot)}")


@keys.command()
@database_argument
@click.argument("slot")
@with_store
def remove(store: MemoryStore, slot: str) -> None:
    """Remove a key, by the beginning of its id. The last one stays.

    \b
    memory-store keys remove notes.db 3f2a9c1b

    Whoever had that key may have kept a copy of the file or of what the key opened. If that is to
    be feared, go on with: memory-store keys rotate notes.db --root
    """
    removed = store.remove_key(slot)
    click.echo(f"Removed {_line(removed)}")
    if removed.opened:
        click.echo("It is the key that opened the vault just now: it opens it no more.", err=True)


@keys.command()
@database_argument
@click.argument("collections", metavar="[COLLECTION]...", nargs=-1)
@click.option("--root", is_flag=True, help="Replace the root key first: other keys go")
@json_option("Print an array as JSON")
@with_store
def rotate(store: MemoryStore, collections: tuple[str, ...], root: bool, as_json: bool) -> None:
    """Seal collections anew under new keys: all of them, or those that are named.

    \b
    memory-store keys rotate notes.db
    memory-store keys rotate notes.db work
    memory-store keys rotate notes.db --root

    Others may search and write meanwhile. Stopped, it goes on when it is run again. The old keys
    are deleted at the end; backups made before still open with them.

    --root also replaces the root key, which every key of the vault leads to. The key that opened
    the vault goes on working, a new recovery code is printed, every other key is removed (add them
    again), and what was shared is shared no longer.
    """
    if root and collections:
        raise BadInputError("--root seals everything anew: name no collection", "root")
    told: dict[str, Any] = _replace_root(store, quiet=as_json) if root else {}
    with Progress() as progress:
        done = store.rotate_keys(*collections, progress=progress)
    if as_json:
        write_json(
            [asdict(one) for one in done]
            if not root
            else {**told, "rotated": [asdict(one) for one in done]}
        )
        return
    for one in done:
        click.echo(_rotated(one))


def _replace_root(store: MemoryStore, *, quiet: bool) -> dict[str, Any]:
    """Replace the root key; say at once what cannot be asked for again."""
    gone, code = store.rotate_root()
    if not quiet:
        click.echo(f"New root key. Recovery code, shown only this once:\n\n    {code}\n")
        for slot in gone.removed:
            click.echo(f"Removed {_line(slot)}")
        for name in gone.no_longer_shared:
            click.echo(f"No longer shared with {printable_line(name)}")
    removed = [asdict(slot) for slot in gone.removed]
    return {"recovery_code": code, "removed": removed, "unshared": list(gone.no_longer_shared)}


def _new_passphrase() -> str:
    found = os.environ.pop(NEW_PASSPHRASE_VARIABLE, None)
    if found:
        return found
    if not at_terminal():
        raise BadInputError(
            f"--passphrase needs a terminal to ask at; or set {NEW_PASSPHRASE_VARIABLE}",
            "passphrase",
        )
    typed: str = click.prompt(
        "New passphrase", hide_input=True, confirmation_prompt="Once more", err=True
    )
    return typed


def _line(slot: KeySlot) -> str:
    now = "  (opened the vault now)" if slot.opened else ""
    return f"{slot.id[:SHORT_ID]}  {KIND_NAMES[slot.kind]:<13}  added {slot.created[:10]}{now}"


def _rotated(one: Rotation) -> str:
    name = "the vault's settings" if one.name is None else printable_line(one.name)
    how = "Finished sealing" if one.resumed else "Sealed"
    return f"{how} {name} under a new key (number {one.epoch})"
