"""``unlock`` and ``lock``: a vault stays open in a process of its own, and commands ask that.

Boundary: the secret is asked for here, as by every command, and opens the vault here; the process
is handed the root key through a pipe.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memory_store.cli.options import key_options, unlocked
from memory_store.cli.terminal import memories, printable_line
from memory_store.cli.vault_argument import VaultCommand, VaultPath, database_argument
from memory_store.configuration import typed_vault

if TYPE_CHECKING:
    from memory_store.store import MemoryStore

IDLE_MINUTES, MOST_HOURS = 15.0, 12.0


@click.command(cls=VaultCommand)
@database_argument
@click.option(
    "--idle",
    type=click.FloatRange(min=0.01),
    default=IDLE_MINUTES,
    show_default=True,
    metavar="MINUTES",
    help="Lock after so many minutes in which no command asked",
)
@click.option(
    "--hours",
    type=click.FloatRange(min=0.001),
    default=MOST_HOURS,
    show_default=True,
    metavar="HOURS",
    help="Lock after so many hours in any case",
)
@click.option("--watch", is_flag=True, help="Follow every known source, as watch does, meanwhile")
@key_options
def unlock(
    database: Path,
    idle: float,
    hours: float,
    watch: bool,
    key_file: Path | None,
    passphrase: bool,
) -> None:
    """Keep a vault open in a process of its own, until you lock it.

    \b
    memory-store unlock
    memory-store unlock work.db --idle 60
    memory-store unlock --watch
    memory-store unlock postgresql://ann@db.example/work
    memory-store lock

    You are asked for the secret once. From then on the everyday commands have the vault, and its
    model, open already: they ask for nothing and answer at once. Every program that you run can
    read the vault meanwhile, as it can a vault that opens by a key file. With --watch it keeps the
    vault as your folders are, and stays open for all of the hours. See also: lock.
    """
    from memory_store.importing.watcher import check_installed
    from memory_store.keeper.client import ask, connected_to
    from memory_store.keeper.launch import socket_for, start
    from memory_store.vault.storage.schema import check_is_vault

    check_is_vault(database)
    if watch:
        check_installed()
    connection = connected_to(socket_for(database))
    if connection is not None:
        with connection:
            found = ask(connection, "status")
        if found is not None and not found["older"] and found["follows"] >= watch:
            click.echo(f"{database} is open already, {_limits(found)}.")
            return
        _lock_one(socket_for(database))
    with unlocked(database, key_file, passphrase) as store:
        if (warning := store.first_warning()) is not None:
            click.echo(f"Warning: {printable_line(warning)}.", err=True)
        start(store, key_file, idle=idle * 60, longest=hours * 3600, follow=watch)
    found = {"idle_limit": idle * 60, "left": hours * 3600, "follows": watch}
    vault = typed_vault(database)
    named = database if vault else "Your vault"
    click.echo(f"{named} is open to your commands, {_limits(found)}.")
    click.echo(f"To lock it: memory-store lock{vault}")


@click.command()
@click.argument("database", metavar="[DB]", required=False, type=VaultPath())
def lock(database: Path | None) -> None:
    """Lock what unlock keeps open: one vault, or all of them.

    \b
    memory-store lock
    memory-store lock work.db

    Keys, vectors and words are wiped from memory, and the process ends. What it is doing just then
    is finished before.
    """
    from memory_store.keeper.address import SUPPORTED, folder, socket_of, sockets

    found = []
    if SUPPORTED:
        found = sockets() if database is None else [socket_of(str(database), folder())]
    locked = [path for path in map(_lock_one, found) if path is not None]
    for path in locked:
        click.echo(f"{path} is locked.")
    if not locked:
        click.echo("No vault was kept open." if database is None else f"{database} was not open.")


def embed_beside(store: MemoryStore, key_file: Path | None) -> None:
    """Have a process of its own embed what has no vectors of the present model, to the end.

    The one that keeps the vault open, or one that is started for it, as ``unlock`` does.
    ``key_file`` is what the vault was opened with, where that was named. Raises BadInputError where
    no such process can be, StorageError.
    """
    from memory_store.keeper.client import EMBED, ask, connected_to
    from memory_store.keeper.launch import socket_for, start

    left, vault = store.embedding().left, typed_vault(store.path)
    if not left:
        click.echo("Every memory is embedded.")
        return
    connection = connected_to(socket_for(store.path))
    found = None
    if connection is not None:
        with connection:
            found = ask(connection, EMBED)
        if found is None or found["older"]:
            _lock_one(socket_for(store.path))
            found = None
    if found is None:
        idle, longest = IDLE_MINUTES * 60, MOST_HOURS * 3600
        start(store, key_file, idle=idle, longest=longest, embed=True)
    click.echo(
        f"{memories(left)} to embed, in the background. Search goes on, and says how far it is. "
        f"The vault stays open to your commands meanwhile. To stop: memory-store lock{vault}"
    )


def _lock_one(socket_path: str) -> str | None:
    """Which vault was locked; ``None`` where no process was there. Waits until it has ended."""
    from memory_store.errors import StorageError
    from memory_store.keeper.client import ask, connected_to

    connection = connected_to(socket_path)
    if connection is None:
        return None
    with connection:
        found = ask(connection, "lock")
        if found is None:
            raise StorageError("the process that keeps the vault open does not answer: end it")
        connection.settimeout(LOCK_SECONDS)
        try:
            ended = connection.recv(1) == b""
        except OSError:
            ended = False
    if not ended:
        raise StorageError(f"process {found['process']}, which keeps the vault open, does not end")
    return os.fsdecode(found["vault"].encode("latin-1"))


LOCK_SECONDS = 30.0  # the longest batch that is being written


def _limits(found: dict[str, float]) -> str:
    """When it is locked by itself."""
    idle, left = _span(found["idle_limit"]), _span(found["left"])
    if found["follows"]:
        return f"and follows its sources, for {left}"
    return f"until nothing has asked for {idle}, for {left} at most"


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.0f} h"
