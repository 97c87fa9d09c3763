"""``memory-store serve``: the search page of a vault in your browser, with you signed in.

Boundary: sees no key. A key file is handed to Datasette, in this process, by its path, and the
keyring by name; a passphrase is typed on the page. The server listens on this machine alone and
answers programs of this user alone (:mod:`memory_store.cli.one_user`), and the link that signs you
in works once.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from memory_store.addresses import Address
from memory_store.cli.options import key_file_option
from memory_store.cli.vault_argument import VaultCommand, database_argument
from memory_store.errors import BadInputError
from memory_store.paths import DB_VARIABLE, KEY_FILE_VARIABLE

HERE = "127.0.0.1"
FIRST_PORT, MOST_TRIED = 8001, 20


@click.command(cls=VaultCommand)
@database_argument
@click.option("--port", type=click.IntRange(1, 65535), help="Port (default: the first free one)")
@click.option("--no-browser", is_flag=True, help="Print the link that signs you in, open nothing")
@key_file_option()
def serve(database: Path, port: int | None, no_browser: bool, key_file: Path | None) -> None:
    """Open the search page in your browser.

    \b
    memory-store serve
    memory-store serve work.db --port 8010
    memory-store serve postgresql://ann@db.example/work

    You are signed in as the owner by a link that works once. A vault that a passphrase opens asks
    for it on the page. It runs until Ctrl-C, for this machine alone; for several people run
    Datasette itself.
    """
    from datasette.cli import cli
    from datasette.plugins import pm
    from datasette.utils import tilde_encode

    from memory_store.cli.one_user import OneUser
    from memory_store.keeper.served import announced
    from memory_store.key_lookup import keyring_may_open
    from memory_store.vault.storage.schema import check_is_vault

    access = check_is_vault(database)
    options: dict[str, Any] = {}
    if key_file is not None:
        from memory_store.key_files import checked_key_file

        os.environ[KEY_FILE_VARIABLE] = str(checked_key_file(key_file, database))
    else:
        options = {"keyring": True} if keyring_may_open(database) else {}
    name, files = database.stem, [str(database)]
    if isinstance(database, Address):
        options["storage"], files = {"$env": _in_environment(database)}, []
    elif access.read_only and not os.access(database.parent, os.W_OK):  # else it does not start
        files.insert(0, "--immutable")
    arguments = ["serve", *files, "--root", "--host", HERE]
    port = _free_port(port)
    arguments += ["--port", str(port), *([] if no_browser else ["--open"])]
    with tempfile.TemporaryDirectory() as folder:
        if options:
            settings = Path(folder, "metadata.json")
            plugin = {"databases": {name: options}}
            settings.write_text(json.dumps({"plugins": {"datasette-hybrid": plugin}}))
            arguments += ["--metadata", str(settings)]
        pm.register(OneUser())
        os.environ["FORWARDED_ALLOW_IPS"] = ""  # uvicorn: whose word counts for who is asking
        click.echo("Stop with Ctrl-C. The link below, with a token, signs you in, once.", err=True)
        with announced(str(database), f"http://{HERE}:{port}/{tilde_encode(name)}"):
            cli.main(arguments, prog_name="memory-store", standalone_mode=False)


def _in_environment(database: Address) -> str:
    """The variable of this process in which Datasette finds the address, and its password."""
    os.environ[DB_VARIABLE] = database.text
    if database.password:
        os.environ["PGPASSWORD"] = database.password
    return DB_VARIABLE


def _free_port(wanted: int | None) -> int:
    """The port that is asked for, else the first free one from 8001 on. Raises BadInputError."""
    tried = range(FIRST_PORT, FIRST_PORT + MOST_TRIED) if wanted is None else (wanted,)
    for port in tried:
        with closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HERE, port))
            except OSError:
                continue
            return port
    used = f"port {wanted} is" if wanted is not None else f"ports {tried[0]} to {tried[-1]} are"
    raise BadInputError(f"{used} taken: name another one with --port", "port")
