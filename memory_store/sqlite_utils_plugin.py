"""``sqlite-utils query notes.db "select … from hybrid_search('…')"``, and a command.

Boundary: the functions are registered only when the environment names a key, and the holder of the
key has every grant. Never inside Datasette: its plugins hand shared connections, on which
strangers run SQL, to sqlite-utils, and there ``datasette_hybrid`` alone decides who may what. The
vault is opened at the first call and stays open until the process ends. The key itself is handled
by :mod:`memory_store.unlocking` alone.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlite_utils import hookimpl

from memory_store.errors import NotAVaultError
from memory_store.unlocking import kept_open, key_at_hand

if TYPE_CHECKING:
    from memory_store.sql.functions import StoreAndGrants


@hookimpl
def register_commands(cli: Any) -> None:
    """Add ``sqlite-utils hybrid-search``."""
    from memory_store.sqlite_utils_command import hybrid_search

    cli.add_command(hybrid_search)


@hookimpl
def prepare_connection(conn: Any) -> None:
    """Add ``hybrid_search`` and its companions to a connection, when there is a key to use."""
    if "datasette" in sys.modules or not key_at_hand():
        return
    from memory_store.sql.functions import register

    register(conn, lambda name: _resolve(conn, name))


def _resolve(connection: Any, name: str | None) -> StoreAndGrants:
    """The store behind the connection's own file, or behind the database of that name."""
    from memory_store.access import KEY_HOLDER
    from memory_store.sql.functions import StoreAndGrants

    return StoreAndGrants(kept_open(_database_file(connection, name)), KEY_HOLDER)


def _database_file(connection: Any, name: str | None) -> Path:
    """The file of ``main``, or of the database attached as (or called) ``name``."""
    rows = connection.execute("pragma database_list").fetchall()
    files = {alias: Path(file).resolve() for _, alias, file in rows if file}
    if name is None:
        if "main" not in files:
            raise NotAVaultError(
                "this database is in memory: name a vault with the option database"
            )
        return files["main"]
    for alias, file in files.items():
        if name in (alias, file.stem):
            return file
    raise NotAVaultError(f"no database {name!r} on this connection (attach it first)")
