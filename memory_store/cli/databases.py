"""``copy`` and ``storage``: vaults that move between files and databases, and a database's tables.

Boundary: sealed rows pass, and no key is needed. A password of a database is asked for nowhere.
"""

from __future__ import annotations

from pathlib import Path

import click

from memory_store.cli.options import json_option
from memory_store.cli.progress import Progress
from memory_store.cli.rows import write_json
from memory_store.cli.vault_argument import VaultCommand, VaultPath, database_argument


@click.command(cls=VaultCommand)
@database_argument
@click.argument("target", type=VaultPath())
@json_option("Print how many rows of which table as JSON")
def copy(database: Path, target: Path, as_json: bool) -> None:
    """Copy the vault to another place: a file, or a PostgreSQL database.

    \b
    memory-store copy notes.db postgresql://ann@db.example/work
    memory-store copy postgresql://ann@db.example/work notes.db

    Needs no key: the copy is as sealed as the vault and opens with the same keys. It has its name
    once every row was read back and is equal. Stopped, it goes on where it was when it is run
    again. What is written to the vault meanwhile is not in it.
    """
    from memory_store.vault.storage.transfer import copy_vault

    with Progress() as progress:
        copied = copy_vault(database, target, progress)
    if as_json:
        write_json({"target": str(target), "rows": copied.rows, "resumed": copied.resumed})
        return
    again = f", {copied.resumed:,} of them earlier" if copied.resumed else ""
    click.echo(f"{target}: {copied.total:,} rows{again}, all read back and equal")


@click.group()
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
