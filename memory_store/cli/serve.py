"""``memory-store serve``: the search page of a vault in your browser, with you signed in.

Boundary: sees no key. A key file is handed to Datasette, in this process, by its path, and the
keyring by name; a passphrase is typed on the page. The server listens on this machine alone, and
the link that signs you in works once.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
from contextlib import closing
from pathlib import Path

import click

from memory_store.addresses import is_address
from memory_store.cli.options import key_file_option
from memory_store.cli.vault_argument import VaultCommand, database_argument
from memory_store.errors import BadInputError

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

    You are signed in as the owner by a link that works once. A vault that a passphrase opens asks
    for it on the page. It runs until Ctrl-C, for this machine alone; for several people run
    Datasette itself.
    """
    from datasette.cli import cli

    from memory_store.unlocking import KEY_FILE_VARIABLE, check_vault, keyring_may_open

    if is_address(database):
        raise BadInputError("the search page opens a file, and no vault on a server yet", "DB")
    check_vault(database)
    by_keyring = False
    if key_file is not None:
        from memory_store.key_files import checked_key_file

        os.environ[KEY_FILE_VARIABLE] = str(checked_key_file(key_file, database))
    else:
        by_keyring = keyring_may_open(database)
    arguments = ["serve", str(database), "--root", "--host", HERE]
    arguments += ["--port", str(_free_port(port)), *([] if no_browser else ["--open"])]
    with tempfile.TemporaryDirectory() as folder:
        if by_keyring:
            settings = Path(folder, "metadata.json")
            plugin = {"databases": {database.stem: {"keyring": True}}}
            settings.write_text(json.dumps({"plugins": {"datasette-hybrid": plugin}}))
            arguments += ["--metadata", str(settings)]
        click.echo("Stop with Ctrl-C. The link signs you in, once:", err=True)
        cli.main(arguments, prog_name="memory-store", standalone_mode=False)


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
