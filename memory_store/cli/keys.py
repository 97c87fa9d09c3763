"""``keys list add remove rotate …``: what opens a vault, and what it is sealed with.

Boundary: no secret is an argument value. A new passphrase comes from a hidden prompt or from
``MEMORY_STORE_NEW_PASSPHRASE``, which is taken out of the environment; a new recovery code goes to
standard output, once.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from memory_store.cli.device_keys import device
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
    from memory_store.actions.key_rotation import Rotation
    from memory_store.actions.key_sharing import Holder
    from memory_store.actions.key_slots import KeySlot
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
    memory-store keys share notes.db work --with alice.json
    """


keys.add_command(device)


@keys.command("list")
@database_argument
@json_option("Print an array as JSON")
@with_store
def list_(store: MemoryStore, as_json: bool) -> None:
    """List the keys that open the vault: kind, beginning of the id, when it was added.

    \b
    memory-store keys list notes.db
    """
    slots = store.keys.list()
    if as_json:
        write_json([asdict(slot) for slot in slots])
        return
    for slot in slots:
        click.echo(_line(slot))
    for name in store.keys.unfinished():
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
@click.option(
    "--device-key/--no-device-key",
    default=None,
    help="Whether the passphrase also needs this machine's device key (default: as chosen before)",
)
@json_option("Print the new key's id (and the recovery code) as JSON")
def add(
    database: Path,
    key_file: Path | None,
    new_key_file: Path | None,
    passphrase: bool,
    keyring: bool,
    recovery: bool,
    device_key: bool | None,
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
            slot, code = store.keys.add_recovery_code()
        else:
            chosen = _new_passphrase() if passphrase else None
            slot = store.keys.add(
                key_file=new_key_file, passphrase=chosen, keyring=keyring, device_key=device_key
            )
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
    removed = store.keys.remove(slot)
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
        done = store.keys.rotate(*collections, progress=progress)
    if as_json:
        write_json(
            [asdict(one) for one in done]
            if not root
            else {**told, "rotated": [asdict(one) for one in done]}
        )
        return
    for one in done:
        click.echo(_rotated(one))


@keys.command()
@database_argument
@json_option("Print as JSON")
@with_store
def identity(store: MemoryStore, as_json: bool) -> None:
    """Show the fingerprint of whoever opens the vault, to be compared by voice.

    \b
    memory-store keys identity notes.db
    """
    own = store.keys.identity()
    if as_json:
        write_json(asdict(own))
        return
    click.echo(own.fingerprint)


@keys.command()
@database_argument
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--name", required=True, help="What the owner is to call you")
@click.option(
    "--key-file", type=click.Path(path_type=Path), help="Your own key file; made if absent"
)
@click.option(
    "--passphrase",
    is_flag=True,
    help=f"A passphrase of your own, asked for twice (or taken from {NEW_PASSPHRASE_VARIABLE})",
)
@click.option(
    "--device-key/--no-device-key",
    default=True,
    help="Whether the passphrase also needs a key that is kept on this machine (default: it does)",
)
def introduce(
    database: Path,
    file: Path,
    name: str,
    key_file: Path | None,
    passphrase: bool,
    device_key: bool,
) -> None:
    """Write a file with which the owner of a vault can share collections with you.

    \b
    memory-store keys introduce notes.db alice.json --name Alice --key-file ~/keys/alice.key

    It needs no key of the vault. Give the file to the owner and tell him the fingerprint by voice;
    he tells you his. Once he has shared something, the same vault opens with your key, and what is
    shared with you is all you see.

    A passphrase also needs a device key, which is made here: on another machine it opens nothing
    until that has it (keys device export). Add a recovery code of your own once something is
    shared with you: keys add --recovery.
    """
    from memory_store.store import MemoryStore

    if (key_file is not None) == passphrase:
        raise BadInputError("say which key is to be yours: --key-file or --passphrase", "key-file")
    if file.exists():
        raise BadInputError(f"{file} exists already", "FILE")
    chosen = _new_passphrase() if passphrase else None
    data, own, owner = MemoryStore.introduce(
        database, name, key_file=key_file, passphrase=chosen, device_key=device_key
    )
    file.write_bytes(data)
    click.echo(f"Wrote {file}: give it to the owner of {database.name}. It holds no secret.\n")
    click.echo(f"Your fingerprint:       {own.fingerprint}")
    click.echo(f"The owner's must be:    {owner}")


@keys.command()
@database_argument
@click.argument("collection")
@click.option("--with", "who", required=True, metavar="FILE", help="An introduction, or a name")
@click.option("--fingerprint", help="The fingerprint that you were told, instead of being asked")
@json_option("Print as JSON")
@with_store
def share(
    store: MemoryStore, collection: str, who: str, fingerprint: str | None, as_json: bool
) -> None:
    """Share a collection with somebody who has a key of his own.

    \b
    memory-store keys share notes.db work --with alice.json
    memory-store keys share notes.db home --with Alice

    The first time, compare the fingerprint with him by voice: it is what proves that the file is
    his. From then on his name is enough.
    """
    given: bytes | str = who
    if Path(who).is_file():
        given = Path(who).read_bytes()
        _confirm(store.keys.introduced(given), fingerprint)
    holder = store.keys.share(collection, given)
    if as_json:
        write_json(asdict(holder))
        return
    click.echo(_shared(holder))


def _confirm(holder: Holder, told: str | None) -> None:
    """Make sure that somebody compared the fingerprint. Raises BadInputError."""
    if told is not None:
        if told.split() != holder.fingerprint.split():
            raise BadInputError(_another_fingerprint(holder, told), "fingerprint")
        return
    if not at_terminal():
        raise BadInputError(
            "fingerprint: compare it with him by voice, and give what he says", "fingerprint"
        )
    name = printable_line(holder.name)
    click.echo(f"Fingerprint of {name}:  {holder.fingerprint}", err=True)
    click.confirm(f"Did {name} tell you the same", abort=True, err=True)


def _another_fingerprint(holder: Holder, told: str) -> str:
    name = printable_line(holder.name)
    return (
        f"fingerprint: you gave {told!r}, and the introduction has {holder.fingerprint!r}: nothing "
        f"was shared. Ask {name} by voice to read it out once more; if it is another one still, "
        "the file is not from whom it says: have it made and sent anew (keys introduce)"
    )


@keys.command()
@database_argument
@json_option("Print an array as JSON")
@with_store
def holders(store: MemoryStore, as_json: bool) -> None:
    """List with whom which collections are shared.

    \b
    memory-store keys holders notes.db
    """
    found = store.keys.holders()
    if as_json:
        write_json([asdict(holder) for holder in found])
        return
    for holder in found:
        click.echo(_shared(holder))
    if not found:
        click.echo("Nothing is shared with anybody.", err=True)


@keys.command()
@database_argument
@click.argument("name")
@click.argument("collection", required=False)
@json_option("Print an array as JSON")
@with_store
def revoke(store: MemoryStore, name: str, collection: str | None, as_json: bool) -> None:
    """Share a collection with somebody no longer (or nothing), and seal it under a new key.

    \b
    memory-store keys revoke notes.db Alice work
    memory-store keys revoke notes.db Alice

    What he could read until now he may have copied. Stopped, it goes on with: keys rotate.
    """
    with Progress() as progress:
        done = store.keys.revoke(name, collection, progress=progress)
    if as_json:
        write_json([asdict(one) for one in done])
        return
    for one in done:
        click.echo(
            f"{printable_line(one.name or '')} is shared with {printable_line(name)} no longer"
        )


def _shared(holder: Holder) -> str:
    names = ", ".join(printable_line(name) for name in holder.collections)
    return f"{printable_line(holder.name)}  ({holder.fingerprint})  {names}"


def _replace_root(store: MemoryStore, *, quiet: bool) -> dict[str, Any]:
    """Replace the root key; say at once what cannot be asked for again."""
    gone, code = store.keys.rotate_root()
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
    device = "  with a device key" if slot.device else ""
    now = "  (opened the vault now)" if slot.opened else ""
    kind = f"{KIND_NAMES[slot.kind]:<13}"
    return f"{slot.id[:SHORT_ID]}  {kind}  added {slot.created[:10]}{device}{now}"


def _rotated(one: Rotation) -> str:
    name = "the vault's settings" if one.name is None else printable_line(one.name)
    how = "Finished sealing" if one.resumed else "Sealed"
    return f"{how} {name} under a new key (number {one.epoch})"
