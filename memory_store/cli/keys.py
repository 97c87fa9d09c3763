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
    Group,
    at_terminal,
    device_key_option,
    json_option,
    key_file_option,
    new_passphrase,
    passphrase_option,
    unlocked,
    vault_command,
)
from memory_store.cli.progress import KEPT, Progress
from memory_store.cli.rows import write_answer, write_json
from memory_store.cli.terminal import SHORT_ID, printable_line
from memory_store.cli.vault_argument import VaultCommand, database_argument
from memory_store.configuration import typed_vault
from memory_store.errors import BadInputError

if TYPE_CHECKING:
    from memory_store.actions.key_rotation import Rotation
    from memory_store.actions.key_sharing import Holder
    from memory_store.actions.key_slots import KeySlot
    from memory_store.store import MemoryStore

NEW_PASSPHRASE_VARIABLE = "MEMORY_STORE_NEW_PASSPHRASE"
KIND_NAMES = {
    "passphrase": "passphrase",
    "key-file": "key file",
    "keyring": "OS keyring",
    "recovery": "recovery code",
}
NEW_ROOT = "New root key. Recovery code, shown only this once:\n\n    {}\n"


@click.group(cls=Group)
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


@vault_command("list", group=keys)
@json_option("Print an array as JSON")
def list_(store: MemoryStore, as_json: bool) -> None:
    """List the keys that open the vault: kind, beginning of the id, when it was added.

    \b
    memory-store keys list notes.db
    """
    slots = store.keys.list()
    write_answer(as_json, slots, map(_line, slots))
    for name in store.keys.unfinished():
        click.echo(
            f"The key of {printable_line(name)} is being replaced: "
            f"memory-store keys rotate{typed_vault(store.path)} goes on",
            err=True,
        )


@keys.command(cls=VaultCommand)
@database_argument
@key_file_option("File with the key that opens the vault now")
@key_file_option("Key file to add; made if absent", "--new-key-file")
@passphrase_option(f"Add a passphrase, asked for twice (or taken from {NEW_PASSPHRASE_VARIABLE})")
@click.option("--keyring", is_flag=True, help="Add a key in the keyring of the operating system")
@click.option("--recovery", is_flag=True, help="Add a recovery code, printed once")
@device_key_option(None, "as chosen before")
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
            chosen = _chosen_passphrase() if passphrase else None
            slot = store.keys.add(
                key_file=new_key_file, passphrase=chosen, keyring=keyring, device_key=device_key
            )
    if as_json:
        write_json({**asdict(slot), **({"recovery_code": code} if code else {})})
        return
    if code:
        click.echo(f"Recovery code, shown only this once:\n\n    {code}\n")
    click.echo(f"Added {_line(slot)}")


@vault_command(group=keys)
@click.argument("slot")
def remove(store: MemoryStore, slot: str) -> None:
    """Remove a key, by the beginning of its id. The last one stays.

    \b
    memory-store keys remove notes.db 3f2a9c1b

    An old copy of the file still opens with that key, and so does what it led to. If you fear that
    another person has both, seal the vault anew: memory-store keys rotate notes.db --root
    """
    removed = store.keys.remove(slot)
    click.echo(f"Removed {_line(removed)}")
    if removed.opened:
        click.echo(
            "It is the key that opened the vault just now. It does not open it any more.", err=True
        )


@vault_command(group=keys)
@click.argument("collections", metavar="[COLLECTION]...", nargs=-1)
@click.option("--root", is_flag=True, help="Replace the root key first: other keys go")
@json_option("Print an array as JSON")
def rotate(store: MemoryStore, collections: tuple[str, ...], root: bool, as_json: bool) -> None:
    """Seal collections anew under new keys: all of them, or those that are named.

    \b
    memory-store keys rotate notes.db
    memory-store keys rotate notes.db work
    memory-store keys rotate notes.db --root

    Others may search and write meanwhile. If you stop it, run it again to go on. The old keys are
    deleted at the end; backups made before still open with them.

    --root also replaces the root key, which every key of the vault leads to. The key that opened
    the vault goes on working, a new recovery code is printed, every other key is removed (add them
    again), and what was shared is shared no longer.
    """
    if root and collections:
        raise BadInputError("--root seals everything anew: name no collection", "root")
    replaced: dict[str, Any] = _replace_root(store, quiet=as_json) if root else {}
    try:
        with Progress(_go_on(store)) as progress:
            done = store.keys.rotate(*collections, progress=progress)
    except BaseException:
        if as_json and replaced:  # it would have been in the JSON
            click.echo(NEW_ROOT.format(replaced["recovery_code"]), err=True)
        raise
    write_answer(as_json, {**replaced, "rotated": done} if root else done, map(_rotated, done))


@vault_command(group=keys)
@json_option("Print as JSON")
def identity(store: MemoryStore, as_json: bool) -> None:
    """Show the fingerprint of the key that opens the vault, to be compared by voice.

    \b
    memory-store keys identity notes.db
    """
    own = store.keys.identity()
    write_answer(as_json, own, [own.fingerprint])


@keys.command(cls=VaultCommand)
@database_argument
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--name", required=True, help="What the owner calls you")
@key_file_option("Your own key file; made if absent")
@passphrase_option(
    f"A passphrase of your own, asked for twice (or taken from {NEW_PASSPHRASE_VARIABLE})"
)
@device_key_option(True, "it does")
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

    It needs no key of the vault. Give the file to the owner, and compare both fingerprints by
    voice. Once something is shared with you, the same vault opens with your key, and what is
    shared with you is all you see.

    A passphrase also needs a device key, which is made here: on another machine it opens nothing
    until that has it (keys device export). Add a recovery code of your own once something is
    shared with you: keys add --recovery.
    """
    from memory_store.store import MemoryStore

    if (key_file is not None) == passphrase:
        raise BadInputError("say which key will be yours: --key-file or --passphrase", "key-file")
    if file.exists():
        raise BadInputError(f"{file} exists already", "FILE")
    chosen = _chosen_passphrase() if passphrase else None
    data, own, owner = MemoryStore.introduce(
        database, name, key_file=key_file, passphrase=chosen, device_key=device_key
    )
    file.write_bytes(data)
    click.echo(f"Wrote {file}: give it to the owner of {database.name}. It holds no secret.\n")
    click.echo(f"Your fingerprint:       {own.fingerprint}")
    click.echo(f"The owner's must be:    {owner}")


@vault_command(group=keys)
@click.argument("collection")
@click.option("--with", "who", required=True, metavar="FILE", help="An introduction, or a name")
@click.option("--fingerprint", help="The fingerprint that you heard, instead of a question")
@json_option("Print as JSON")
def share(
    store: MemoryStore, collection: str, who: str, fingerprint: str | None, as_json: bool
) -> None:
    """Share a collection with a member, a person who has a key of their own.

    \b
    memory-store keys share notes.db work --with alice.json
    memory-store keys share notes.db home --with Alice

    The member makes the file with "keys introduce". The first time, compare the fingerprint by
    voice: that proves who made the file. From then on the name is enough.
    """
    given: bytes | str = who
    if Path(who).is_file():
        given = Path(who).read_bytes()
        _confirm(store.keys.introduced(given), fingerprint)
    holder = store.keys.share(collection, given)
    write_answer(as_json, holder, [_shared(holder)])


def _confirm(holder: Holder, heard: str | None) -> None:
    """Make sure that the fingerprint was compared. Raises BadInputError."""
    name = printable_line(holder.name)
    if heard is not None:
        if heard.split() != holder.fingerprint.split():
            raise BadInputError(
                f"fingerprint: you gave {heard!r}, and the introduction has "
                f"{holder.fingerprint!r}: nothing was shared. Ask {name} by voice to read it out "
                "once more. If it is another one still, another person made the file: ask for a "
                "new one (keys introduce)",
                "fingerprint",
            )
        return
    if not at_terminal():
        raise BadInputError(
            f"fingerprint: ask {name} by voice to read it out, and give what you hear",
            "fingerprint",
        )
    click.echo(f"Fingerprint of {name}:  {holder.fingerprint}", err=True)
    click.confirm(f"Did {name} read out the same", abort=True, err=True)


@vault_command(group=keys)
@json_option("Print an array as JSON")
def holders(store: MemoryStore, as_json: bool) -> None:
    """List the members, and the collections that are shared with each.

    \b
    memory-store keys holders notes.db
    """
    found = store.keys.holders()
    write_answer(as_json, found, map(_shared, found), "Nothing is shared.")


@vault_command(group=keys)
@click.argument("name")
@click.argument("collection", required=False)
@json_option("Print an array as JSON")
def revoke(store: MemoryStore, name: str, collection: str | None, as_json: bool) -> None:
    """Stop sharing a collection, or all, with a member, and seal it under a new key.

    \b
    memory-store keys revoke notes.db Alice work
    memory-store keys revoke notes.db Alice

    The member may have copied what was shared until now. If you stop it, go on with: keys rotate.
    """
    with Progress(_go_on(store)) as progress:
        done = store.keys.revoke(name, collection, progress=progress)
    member = printable_line(name)
    lines = (f"{printable_line(one.name or '')} is shared with {member} no longer" for one in done)
    write_answer(as_json, done, lines)


def _go_on(store: MemoryStore) -> str:
    return f"{KEPT}: memory-store keys rotate{typed_vault(store.path)}"


def _shared(holder: Holder) -> str:
    names = ", ".join(printable_line(name) for name in holder.collections)
    return f"{printable_line(holder.name)}  ({holder.fingerprint})  {names}"


def _replace_root(store: MemoryStore, *, quiet: bool) -> dict[str, Any]:
    """Replace the root key; say at once what cannot be asked for again."""
    gone, code = store.keys.rotate_root()
    if not quiet:
        click.echo(NEW_ROOT.format(code))
        for slot in gone.removed:
            click.echo(f"Removed {_line(slot)}")
        for name in gone.no_longer_shared:
            click.echo(f"No longer shared with {printable_line(name)}")
    return {"recovery_code": code, "removed": gone.removed, "unshared": gone.no_longer_shared}


def _chosen_passphrase() -> str:
    return new_passphrase(os.environ.pop(NEW_PASSPHRASE_VARIABLE, None), NEW_PASSPHRASE_VARIABLE)


def _line(slot: KeySlot) -> str:
    device = "  with a device key" if slot.device else ""
    now = "  (opened the vault now)" if slot.opened else ""
    kind = f"{KIND_NAMES[slot.kind]:<13}"
    return f"{slot.id[:SHORT_ID]}  {kind}  added {slot.created[:10]}{device}{now}"


def _rotated(one: Rotation) -> str:
    name = "the vault's settings" if one.name is None else printable_line(one.name)
    how = "Finished sealing" if one.resumed else "Sealed"
    return f"{how} {name} under a new key (number {one.epoch})"
