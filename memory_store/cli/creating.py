"""``memory-store init``: a new vault and its first key.

Boundary: the recovery code is printed once, to standard output, and kept nowhere in clear. A
passphrase is read from the environment or a hidden prompt.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from memory_store.cli.options import at_terminal, database_argument, json_option
from memory_store.cli.rows import write_json
from memory_store.errors import BadInputError
from memory_store.paths import home_path

PROFILES = ("default", "strict")
WEAK_PASSPHRASE = 12  # characters; NIST SP 800-63B asks for 8, but a thief guesses offline here


@click.command()
@database_argument
@click.option("--key-file", type=click.Path(path_type=Path), help="Key file to use; made if absent")
@click.option(
    "--passphrase",
    is_flag=True,
    help="Ask for a passphrase twice (or take it from MEMORY_STORE_PASSPHRASE)",
)
@click.option("--keyring", is_flag=True, help="Keep a key in the keyring of the operating system")
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default="default",
    show_default=True,
    help="strict also seals types and times, and keeps no topic table on disk",
)
@json_option("Print path, vault id and recovery code as JSON")
def init(
    database: Path,
    key_file: Path | None,
    passphrase: bool,
    keyring: bool,
    profile: str,
    as_json: bool,
) -> None:
    """Make a new encrypted vault.

    \b
    memory-store init notes.db --key-file ~/.config/memory-store/notes.key
    memory-store init notes.db --passphrase

    Prints a recovery code once: write it down, it opens the vault when the key is lost. Several
    key options may be combined; each opens the vault on its own.
    """
    from memory_store.cli.models import offer_model
    from memory_store.models.places import chosen_embedder
    from memory_store.store import MemoryStore

    _refuse_existing(database)
    secret = _chosen_passphrase(key_file, passphrase, keyring)
    made = key_file is not None and not home_path(key_file).exists()
    store, recovery_code = MemoryStore.create(
        database, key_file=key_file, passphrase=secret, keyring=keyring, profile=profile
    )
    with store:
        if as_json:
            write_json(
                {
                    "path": str(database),
                    "vault_id": store.vault_id,
                    "profile": store.profile,
                    "recovery_code": recovery_code,
                }
            )
            return
    click.echo(f"Made {database}, an empty vault ({profile} profile).\n")
    click.echo(f"Recovery code, shown only this once:\n\n    {recovery_code}\n")
    click.echo("Write it down and keep it apart from this machine: it opens the vault when the key")
    click.echo("is lost, and nothing else can.\n")
    _print_how_to_open(database, key_file, made, secret is not None, keyring)
    offer_model(chosen_embedder(None), database)


def _refuse_existing(database: Path) -> None:
    if database.is_dir():
        raise BadInputError(f"{database} is a folder: name a file for the vault", "DB")
    if database.exists() and database.stat().st_size:
        raise BadInputError(f"{database} exists already; init makes a new vault only", "DB")
    if not database.resolve().parent.is_dir():
        raise BadInputError(f"the folder {database.parent} does not exist", "DB")


def _chosen_passphrase(key_file: Path | None, passphrase: bool, keyring: bool) -> str | None:
    """The new passphrase where one is wanted. Asked when no key option was given at all."""
    from memory_store.unlocking import PASSPHRASE_VARIABLE, take_passphrase

    found = take_passphrase()
    if key_file is not None or keyring:
        if not passphrase:
            return None
    elif not passphrase and found is None and not at_terminal():
        raise BadInputError(
            "say how the vault is to be opened: --key-file PATH, --passphrase or --keyring",
            "key-file",
        )
    if found is not None:
        return _judged(found)
    if not at_terminal():
        raise BadInputError(
            f"--passphrase needs a terminal to ask at; or set {PASSPHRASE_VARIABLE}", "passphrase"
        )
    typed: str = click.prompt(
        "New passphrase", hide_input=True, confirmation_prompt="Once more", err=True
    )
    return _judged(typed)


def _judged(passphrase: str) -> str:
    if len(passphrase) < WEAK_PASSPHRASE:
        click.echo(
            f"Note: a passphrase under {WEAK_PASSPHRASE} characters can be guessed by whoever "
            "has the file; five random words are better.",
            err=True,
        )
    return passphrase


def _print_how_to_open(
    database: Path, key_file: Path | None, made: bool, passphrase: bool, keyring: bool
) -> None:
    vault = shlex.quote(str(database))
    if key_file is not None:
        file = os.path.abspath(home_path(key_file))
        kept = "new, readable by you alone: keep a copy" if made else "the one you have"
        click.echo(f"Key file ({kept}): {file}")
        click.echo("To open the vault without naming it each time:\n")
        click.echo(f"    export MEMORY_STORE_KEY_FILE={shlex.quote(file)}\n")
    if passphrase:
        click.echo("Your passphrase is asked for in a terminal, or taken from")
        click.echo("MEMORY_STORE_PASSPHRASE.\n")
    if keyring:
        click.echo("The key in your operating system's keyring is found by itself.\n")
    click.echo(f"Next:\n\n    memory-store import {vault} ~/notes")
    click.echo(f'    memory-store search {vault} "what you look for"')
