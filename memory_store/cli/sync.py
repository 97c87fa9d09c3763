"""``sync``: changes exchanged with other copies of a vault, by a folder or file to file.

Boundary: what goes into a folder is sealed; names of files in it are untrusted when they are shown.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_store.addresses import is_address
from memory_store.cli.options import (
    asked_passphrase,
    at_terminal,
    json_option,
    key_options,
    refused,
    with_store,
)
from memory_store.cli.rows import write_answer
from memory_store.cli.terminal import SHORT_ID, memories, printable_line
from memory_store.cli.vault_argument import VaultCommand, VaultPath, database_argument
from memory_store.configuration import typed_vault
from memory_store.errors import (
    BadInputError,
    DeviceKeyError,
    LockedError,
    NotAVaultError,
    WrongKeyError,
)

if TYPE_CHECKING:
    from memory_store.records.sync import SyncReport
    from memory_store.store import MemoryStore

NO_DEVICE_KEY = (
    "A passphrase of this vault also needs a device key, which this machine has not. Join with the "
    "recovery code or a key file; after that memory-store keys device restore makes the passphrase "
    "work here, too"
)


class SyncCommand(VaultCommand):
    """A command whose DB need not be there yet when it is to join."""

    def invoke(self, ctx: click.Context) -> Any:
        if ctx.params["join"]:
            return click.Command.invoke(self, ctx)
        try:
            return super().invoke(ctx)
        except NotAVaultError as error:
            database, target = ctx.params["database"], ctx.params["target"]
            if is_address(database) or database.exists() or not (target and target.is_dir()):
                raise
            copied = f"memory-store sync{typed_vault(database)} {shlex.quote(str(target))} --join"
            raise NotAVaultError(f"{error}. To copy the one of {target}: {copied}") from None


@click.command(cls=SyncCommand)
@database_argument
@click.argument("target", required=False, type=VaultPath())
@click.option("--join", is_flag=True, help="Make DB, a new copy of the vault of that folder")
@click.option("--no-embed", is_flag=True, help="Leave what arrives without vectors, for reindex")
@click.option("--whole", is_flag=True, help="Write everything into the folder anew")
@json_option("Print what was exchanged as JSON")
@key_options
def sync(
    database: Path, join: bool, key_file: Path | None, passphrase: bool, **parameters: Any
) -> None:
    """Exchange changes with your other devices.

    \b
    memory-store sync notes.db ~/Dropbox/notes
    memory-store sync notes.db
    memory-store sync notes.db ~/Dropbox/notes --join
    memory-store sync notes.db /media/stick/notes.db
    memory-store sync notes.db postgresql://ann@db.example/work

    TARGET is a folder that your devices share (Syncthing, Dropbox, a stick): sealed files go into
    it, and those of the others are read. Left out, it is the folder of the last time. Or it is
    another copy of this vault, in a file or a database. What you changed here and elsewhere is kept
    twice: "memory-store review" shows both. What you deleted elsewhere goes to the trash.

    --join makes DB on a new device, with a key of the vault: its key file, passphrase or recovery
    code. --whole also takes this device's earlier files away, and with them what was deleted since.
    """
    if not join:
        with_store(_exchange)(database, key_file, passphrase, **parameters)
        return
    if parameters["target"] is None:
        raise BadInputError("--join needs the folder that your devices share", "TARGET")
    with _joined(database, parameters["target"], key_file) as store:
        _exchange(store, **parameters)


def _exchange(
    store: MemoryStore, target: Path | None, no_embed: bool, whole: bool, as_json: bool
) -> None:
    if target is None or target.is_dir():
        report = _with_folder(store, target, embed=not no_embed, whole=whole)
    elif whole:
        raise BadInputError("--whole is for a folder", "whole")
    else:
        report = _with_copy(store, target, embed=not no_embed)
    write_answer(as_json, report.as_dict(), _lines(report, named=target is not None))


def _with_folder(
    store: MemoryStore, target: Path | None, *, embed: bool, whole: bool
) -> SyncReport:
    try:
        return store.sync_with_folder(target, embed=embed, whole=whole)
    except WrongKeyError as error:
        if not at_terminal():
            raise WrongKeyError(f"{error}: run it in a terminal to be asked") from None
        click.echo(f"{printable_line(str(error))}.", err=True)
        answer = asked_passphrase(store.path)
        return store.sync_with_folder(target, embed=embed, whole=whole, answer=answer)


def _joined(database: Path, folder: Path, key_file: Path | None) -> MemoryStore:
    """A new copy of the vault, by the first key that there is."""
    from memory_store.configuration import chosen, default_vault
    from memory_store.key_lookup import TRIES, take_passphrase
    from memory_store.paths import KEY_FILE_VARIABLE
    from memory_store.store import MemoryStore

    named = key_file or chosen(KEY_FILE_VARIABLE)
    if not folder.is_dir():
        raise BadInputError(f"{folder}: no such folder", "TARGET")
    if database.exists():
        raise BadInputError(f"{database} exists already; without --join it is synced", "DB")
    if database == default_vault():
        default_vault(make=True)
    if named:
        return MemoryStore.join(database, folder, key_file=named)
    given = take_passphrase()
    if given is None and not at_terminal():
        raise LockedError("joining needs a key of the vault: use --key-file PATH, or a terminal")
    tries = 1 if given else TRIES
    while True:
        tries -= 1
        words = f"Passphrase or recovery code of the vault in {folder.name}"
        answer = given or click.prompt(printable_line(words), hide_input=True, err=True)
        try:
            return _joined_by(answer, database, folder)
        except DeviceKeyError:
            if not tries:
                raise WrongKeyError(NO_DEVICE_KEY) from None
            click.echo(f"{NO_DEVICE_KEY}.", err=True)
        except WrongKeyError as error:
            if not tries:
                raise
            refused(error)


def _joined_by(answer: str, database: Path, folder: Path) -> MemoryStore:
    from memory_store.store import MemoryStore

    try:
        return MemoryStore.join(database, folder, recovery_code=answer)
    except (WrongKeyError, BadInputError):
        return MemoryStore.join(database, folder, passphrase=answer)


def _with_copy(store: MemoryStore, target: Path, *, embed: bool) -> SyncReport:
    from memory_store.vault.storage.schema import is_vault

    if not target.exists():
        raise BadInputError(f"{target}: no such folder, and no vault", "TARGET")
    if not is_vault(target):
        raise BadInputError(f"{target}: neither a folder nor a vault", "TARGET")
    with store.open_copy(target) as other:
        return store.sync_with_copy(other, embed=embed)


def _lines(report: SyncReport, *, named: bool) -> Iterator[str]:
    if not named:
        yield f"With {printable_line(report.target)}, as the last time:"
    yield (
        f"{memories(report.sent)} sent; {report.added} added, {report.changed} changed, "
        f"{report.deleted} deleted here"
    )
    if report.conflicts:
        yield f"{memories(len(report.conflicts))} changed on two devices; both versions stay:"
        yield from (f"  {one[:SHORT_ID]}" for one in report.conflicts)
        yield '"memory-store review" shows them.'
    if report.keys:
        yield "The keys were replaced on another device: memory-store keys list says what opens it."
    if report.waiting:
        files = "1 file has" if report.waiting == 1 else f"{report.waiting} files have"
        yield f"{files} not arrived yet, or not whole: sync again later."
    ignored: dict[str, list[str]] = {}
    for line in report.ignored:
        ignored.setdefault(line.partition(": ")[2], []).append(line)
    for why, lines in ignored.items():
        alike = f"Ignored {len(lines)} files: {why}"
        yield printable_line(alike if len(lines) > 1 else f"Ignored: {lines[0]}")
