"""``memory-store init``: a new vault and its first key.

Boundary: the recovery code is printed once, to standard output, and kept nowhere in clear. A
passphrase is read from the environment or a hidden prompt.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from memory_store.addresses import is_address
from memory_store.cli.options import (
    at_terminal,
    device_key_option,
    json_option,
    key_file_option,
    new_passphrase,
    passphrase_option,
)
from memory_store.cli.rows import write_json
from memory_store.cli.vault_argument import VaultCommand, database_argument
from memory_store.configuration import typed_vault
from memory_store.errors import BadInputError
from memory_store.paths import home_path, real_path

PROFILES = ("default", "strict")
TOPICS = ("table", "memory")
ABOUT_TOPICS = {
    "table": "The vault keeps a code for each topic, so that SQL can use topics. A thief who has\n"
    "it and some of your notes can tell the topics of others by it. To keep none:\n"
    "memory-store settings{vault} topics memory",
    "memory": "The vault holds no hashes of topics, so SQL cannot join by them.",
}
"""What the choice means, in the words of ``init``."""
WEAK_PASSPHRASE = 12  # characters; NIST SP 800-63B asks for 8, but a thief guesses offline here


class InitCommand(VaultCommand):
    """Names a vault that is not there yet."""

    makes_vault = True


@click.command(cls=InitCommand)
@database_argument
@key_file_option("Key file to use; made if absent")
@passphrase_option("Ask for a passphrase twice (or take it from MEMORY_STORE_PASSPHRASE)")
@click.option("--keyring", is_flag=True, help="Keep a key in the keyring of the operating system")
@device_key_option(True, "it does")
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default="default",
    show_default=True,
    help="strict also seals types and times, and keeps no topic table on disk",
)
@click.option(
    "--topics",
    type=click.Choice(TOPICS),
    help="Topics as hashes in a table that SQL can join by (default), or in memory alone",
)
@click.option(
    "--model",
    metavar="NAME",
    help="Embedding model: small, multilingual or reranked (see: memory-store models), or a name",
)
@json_option("Print path, vault id and recovery code as JSON")
def init(
    database: Path,
    key_file: Path | None,
    passphrase: bool,
    keyring: bool,
    device_key: bool,
    profile: str,
    topics: str | None,
    model: str | None,
    as_json: bool,
) -> None:
    """Make a new encrypted vault.

    \b
    memory-store init
    memory-store init notes.db --key-file ~/.config/memory-store/notes.key
    memory-store init notes.db --passphrase
    memory-store init notes.db --model multilingual

    Prints a recovery code once: write it down, it opens the vault when the key is lost. Several
    key options may be combined; each opens the vault on its own.

    A passphrase opens the vault together with a device key, which is made and kept here: a thief
    of the file alone cannot guess at it. On another machine the passphrase opens it once that has
    the device key (keys device export). The recovery code opens it there as well.
    """
    from memory_store.cli.models import check_name, offer_model
    from memory_store.configuration import default_vault
    from memory_store.models.places import chosen_embedder
    from memory_store.models.presets import preset
    from memory_store.store import MemoryStore

    if database == default_vault():
        default_vault(make=True)
    _refuse_existing(database)
    if model is not None:
        check_name(model, "model")
    keyring = keyring or (not (key_file or passphrase or as_json) and _chosen_keyring())
    secret = _chosen_passphrase(key_file, passphrase, keyring, device_key)
    made = key_file is not None and not home_path(key_file).exists()
    store, recovery_code = MemoryStore.create(
        database,
        key_file=key_file,
        passphrase=secret,
        keyring=keyring,
        profile=profile,
        device_key=device_key,
        topics=topics,
        model=None if model is None else chosen_embedder(model),
    )
    device = next((one.path for one in store.device_keys(database)), None)
    with store:
        kept = store.settings().topics
        made_so = {"path": str(database), "vault_id": store.vault_id, "profile": store.profile}
    if as_json:
        write_json(made_so | {"topics": kept, "recovery_code": recovery_code, "device_key": device})
        return
    click.echo(f"Made {database}, an empty vault.\n")
    click.echo(f"Recovery code, shown only this once:\n\n    {recovery_code}\n")
    click.echo(
        "Write it down and keep it apart from this machine: it opens the vault when the key\n"
        "is lost, and nothing else can.\n"
    )
    if device is not None:
        click.echo(
            "The passphrase works on this machine alone, with a device key that is kept in:\n"
            f"{device}\nElsewhere, or if that file is lost, the recovery code opens the vault.\n"
        )
    click.echo(ABOUT_TOPICS[kept].format(vault=typed_vault(database)) + "\n")
    _print_how_to_open(database, key_file, made, secret is not None, keyring)
    chosen = preset(model)
    if chosen is not None and chosen.reranker:
        click.echo(
            f"The reranker is chosen for all vaults:\n\n    memory-store models use {model}\n"
        )
    offer_model(chosen_embedder(model), database)
    vault = typed_vault(database)
    click.echo(f"Next:\n\n    memory-store import{vault} ~/notes")
    click.echo(f"    memory-store search{vault} what you look for")


def _refuse_existing(database: Path) -> None:
    if is_address(database):
        return  # the server says whether it has such a vault
    if database.is_dir():
        raise BadInputError(f"{database} is a folder: name a file for the vault", "DB")
    if database.exists() and database.stat().st_size:
        raise BadInputError(f"{database} exists already; init makes a new vault only", "DB")
    if not real_path(database).parent.is_dir():
        raise BadInputError(f"the folder {database.parent} does not exist", "DB")


def _chosen_keyring() -> bool:
    """Whether the system's keyring is to hold the key: the one question of ``init``."""
    from importlib.util import find_spec

    from memory_store.key_lookup import PASSPHRASE_VARIABLE

    if os.environ.get(PASSPHRASE_VARIABLE) or not at_terminal() or find_spec("keyring") is None:
        return False
    from keyring import get_keyring

    if get_keyring().priority < 1:  # its own mark for a place that is not to be relied on
        return False
    return click.confirm(
        "Keep the key in this system's keyring, so that you are asked for nothing again?\n"
        "Otherwise you choose a passphrase",
        default=True,
        err=True,
    )


def _chosen_passphrase(
    key_file: Path | None, passphrase: bool, keyring: bool, device_key: bool
) -> str | None:
    """The new passphrase where one is wanted. Asked when no key option was given at all."""
    from memory_store.key_lookup import PASSPHRASE_VARIABLE, take_passphrase

    found = take_passphrase()
    if key_file is not None or keyring:
        if not passphrase:
            return None
    elif not passphrase and found is None and not at_terminal():
        raise BadInputError(
            "say how the vault is to be opened: --key-file PATH, --passphrase or --keyring",
            "key-file",
        )
    if not (passphrase or found):
        click.echo("Choose a passphrase. It opens the vault, and is kept nowhere.", err=True)
    chosen = new_passphrase(found, PASSPHRASE_VARIABLE)
    if len(chosen) < WEAK_PASSPHRASE:
        thief = "has both the file and the device key" if device_key else "has the file"
        click.echo(
            f"Note: a passphrase under {WEAK_PASSPHRASE} characters can be guessed by a thief who "
            f"{thief}; five random words are better.",
            err=True,
        )
    return chosen


def _print_how_to_open(
    database: Path, key_file: Path | None, made: bool, passphrase: bool, keyring: bool
) -> None:
    vault = typed_vault(database)
    if key_file is not None:
        file = os.path.abspath(home_path(key_file))
        kept = "new, readable by you alone: keep a copy" if made else "the one you have"
        click.echo(f"Key file ({kept}): {file}")
        click.echo("To open the vault without naming it each time:\n")
        click.echo(f"    export MEMORY_STORE_KEY_FILE={shlex.quote(file)}\n")
    if passphrase:
        click.echo("Your passphrase is asked for in a terminal, or taken from")
        click.echo("MEMORY_STORE_PASSPHRASE. To be asked once for a while:\n")
        click.echo(f"    memory-store unlock{vault}\n")
    if keyring:
        click.echo("The key in your operating system's keyring is found by itself.\n")
