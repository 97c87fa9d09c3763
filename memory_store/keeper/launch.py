"""Starting a keeper: the vault is opened here, by whom the secret is asked, and handed over.

Boundary: the vault's root key goes to a process that this one starts, through a pipe that no other
process can open: never on a command line, in the environment or in a file. Passphrases are taken
out of its environment.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from memory_store.configuration import chosen
from memory_store.errors import BadInputError, StorageError
from memory_store.keeper.address import LONGEST, NOT_HERE, SUPPORTED, folder, socket_of
from memory_store.keeper.client import KEY_FILE_VARIABLE, SECRETS
from memory_store.processes import Child, send_bytes, variables_without
from memory_store.searchers.wire import receive, send
from memory_store.store import MemoryStore, Opening

COMMAND = (sys.executable, "-P", "-m", "memory_store.keeper_process")
"""``-P``: no module is taken from the folder that it is started in."""
READY = "ready"


class Kept(Struct, frozen=True):
    """What a keeper is to keep, and for how long: seconds without a question, and in all.

    ``key_files`` are those that a command may name and still ask the keeper: the vault was opened
    with one, or found not to open with it. ``follow``: every known source is followed. ``embed``:
    to embed what has no vectors counts as use, until that is done.
    """

    opening: Opening
    socket: str
    key_files: tuple[str, ...]
    idle: float
    longest: float
    follow: bool = False
    embed: bool = False


def socket_for(database: Path) -> str:
    """Where a vault's keeper is asked. Raises BadInputError: no keeper can be here."""
    if not SUPPORTED:
        raise BadInputError(NOT_HERE)
    try:
        path = socket_of(str(database), folder(make=True))
    except OSError as error:
        where = f"{error.filename} " if error.filename else ""
        raise BadInputError(f"no socket can lie here: {where}{error.strerror}") from None
    if len(os.fsencode(path)) > LONGEST:
        raise BadInputError(
            f"{path} is too long for a socket: set XDG_RUNTIME_DIR to a folder with a shorter name"
        )
    return path


def start(
    store: MemoryStore,
    key_file: Path | None,
    *,
    idle: float,
    longest: float,
    follow: bool = False,
    embed: bool = False,
) -> None:
    """Hand an open vault to a keeper of its own, and wait until it answers.

    Raises StorageError where it does not come up, BadInputError.
    """
    socket = socket_for(store.path)
    named = (key_file, chosen(KEY_FILE_VARIABLE))
    key_files = tuple(os.path.realpath(os.path.expanduser(one)) for one in named if one)
    variables = variables_without(*SECRETS)
    child = Child(*COMMAND, variables=variables, cwd="/", start_new_session=True)

    def lend(opening: Opening, root: bytearray) -> None:
        here = replace(opening, path=opening.path.resolve())
        send(child.asked, Kept(here, socket, key_files, idle, longest, follow, embed))
        send_bytes(child.asked, root)

    with closing(child.asked), closing(child.answered):
        try:
            store.lend(lend)
            said = receive(child.answered)
        except (OSError, EOFError):
            child.end()
            said = "it ended while it started"
    if said != READY:
        raise StorageError(f"the process that is to keep {store.path} open did not start: {said}")
