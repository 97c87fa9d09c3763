"""``copy`` and ``storage``: vaults that move between files and databases, and a database's tables.

Boundary: sealed rows pass, and no key is needed. A password of a database is asked for nowhere.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memory_store.cli.options import Group, json_option
from memory_store.cli.progress import KEPT, Progress
from memory_store.cli.rows import write_json
from memory_store.cli.vault_argument import VaultCommand, VaultPath, database_argument

if TYPE_CHECKING:
    from memory_store.vault.storage.transfer import Follow


@click.command(cls=VaultCommand)
@database_argument
@click.argument("target", type=VaultPath())
@click.option("--follow", is_flag=True, help="Go on copying what is written, until Ctrl-C")
@click.option(
    "--until-idle",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Follow until nothing was written for so long",
)
@json_option("Print how many rows of which table as JSON")
def copy(
    database: Path, target: Path, follow: bool, until_idle: float | None, as_json: bool
) -> None:
    """Copy the vault to another place: a file, or a PostgreSQL database.

    \b
    memory-store copy notes.db postgresql://ann@db.example/work
    memory-store copy postgresql://ann@db.example/work notes.db
    memory-store copy notes.db postgresql://ann@db.example/work --follow

    Needs no key: the copy is as sealed as the vault and opens with the same keys. It has its name
    once every row was read back and is equal. Stopped, it goes on where it was when it is run
    again. What is written to the vault meanwhile is not in it, unless you --follow: then programs
    go on writing, and you end them before Ctrl-C, which finishes the copy.
    """
    from memory_store.vault.storage.transfer import copy_vault

    with Progress(f"{KEPT}: run it again") as progress, ExitStack() as stack:
        followed = follow or until_idle
        wanted = stack.enter_context(_cut_over(progress, until_idle)) if followed else None
        copied = copy_vault(database, target, progress, wanted)
    if as_json:
        said = {"rows": copied.rows, "resumed": copied.resumed, "commit": copied.commit}
        write_json({"target": str(target), **said, "behind": copied.behind})
    else:
        again = f", {copied.resumed:,} of them earlier" if copied.resumed else ""
        click.echo(
            f"{target}: {copied.total:,} rows{again}, all read back and equal: "
            f"complete up to commit {copied.commit:,}"
        )
    if copied.behind:
        click.echo(
            f"{database} was written to since. What was committed after {copied.commit:,} is not "
            "in the copy.",
            err=True,
        )
    elif wanted:
        click.echo(f"Nothing was written since: let programs use {target} from now on.", err=True)


@contextmanager
def _cut_over(progress: Progress, idle: float | None) -> Iterator[Follow]:
    """How to follow: until Ctrl-C. A second one stops at once, and the copy keeps for later."""
    from memory_store.vault.storage.transfer import Follow

    begun = said = False

    def away(why: str) -> None:
        nonlocal said
        if not said:
            said = True
            progress.clear()
            click.echo(f"{why}. Waits until it is back; Ctrl-C twice stops.", err=True)

    def at(commit: int, rows: int) -> None:
        nonlocal begun, said
        if said:
            click.echo("The database is back.", err=True)
        said = False
        if not begun:
            begun = True
            progress.clear()
            click.echo(
                f"Copied up to commit {commit:,}; follows what is written. When no program writes "
                "to it any more, Ctrl-C finishes the copy.",
                err=True,
            )
        progress.say(f"Copied up to commit {commit:,}")

    def finish(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        progress.clear()
        click.echo("Finishes the copy. Ctrl-C again stops it: then run it again later.", err=True)
        following.stop.set()

    following = Follow(at, away, idle)
    earlier = signal.signal(signal.SIGINT, finish)
    try:
        yield following
    finally:
        signal.signal(signal.SIGINT, earlier)


@click.group(cls=Group)
def storage() -> None:
    """What a PostgreSQL database needs before vaults are in it.

    \b
    memory-store storage init --role notes | psql work
    """


@storage.command("init")
@click.option("--role", metavar="NAME", help="Also print what this role for daily use is granted")
def init_storage(role: str | None) -> None:
    """Print the SQL that makes the tables in a PostgreSQL database.

    \b
    memory-store storage init --role notes | psql work
    memory-store init postgresql://notes@db.example/work

    A role that may make schemas needs none of this: init makes them. A role for daily use may
    read and write rows, and define nothing.
    """
    from memory_store.vault.storage.postgres_schema import script

    click.echo(script(role), nl=False)
