"""Damaged files: what no reader could foresee is reported as damage.

Boundary: messages name a table and what is wrong with it, never a value. SQLite keeps the kinds of
values in a ``strict`` table when it writes, and believes the file when it reads: a changed byte
makes a number of an id, or nothing at all. To expect that wherever a row is read would be a hundred
checks; so whatever fails in a way that only a value of the wrong kind explains is held against the
file, once, afterwards. While the file is whole, an error stays what it was: a fault of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from memory_store.errors import DamagedError
from memory_store.sqlite import DAMAGED, connect, sqlite3, storage_faults
from memory_store.vault.storage.file_access import file_access
from memory_store.vault.storage.schema import FIRST_TABLES
from memory_store.vault.storage.server import is_on_server, on_server

UNFORESEEN = (TypeError, AttributeError, LookupError, ValueError, OverflowError, sqlite3.Error)
"""What a value of the wrong kind makes of code that is right."""
STRANGE = "the database has values that no vault writes; memory-store verify says where"
NULLABLE = frozenset(
    {
        ("memories", "type"),  # these three in a `strict` vault
        ("memories", "created"),
        ("memories", "updated"),
        ("memory_sources", "origin"),
        ("memory_sources", "draft"),
        ("memory_sources", "file"),
        ("vault_principals", "sealed"),
        ("vault_settings", "value"),
        ("vault_settings", "sealed"),
    }
)
"""The columns of format 1 that may be empty. SQLite lets all: none was declared otherwise."""


@contextmanager
def vault_faults(path: Path) -> Iterator[None]:
    """What cannot be read or written inside is StorageError, naming the file and the cause.

    A fault of the disk; DamagedError for a file that SQLite finds damaged, or one with values that
    no vault writes.
    """
    try:
        with storage_faults(path):
            yield
    except UNFORESEEN as error:
        if _damaged(path):
            what = STRANGE if is_on_server(path) else DAMAGED
            raise DamagedError(f"{path.name}: {what}") from error
        raise


def _damaged(path: Path) -> bool:
    """Whether a file is damaged as a database, or a server has columns of other kinds; no, where it
    cannot be looked at now."""
    if is_on_server(path):
        return bool(on_server("is_strange")(path))
    try:
        with closing(connect(path, read_only=True, access=file_access(path))) as connection:
            return damage(connection) is not None or _stray(connection)
    except sqlite3.OperationalError:
        return False
    except sqlite3.DatabaseError:
        return True


def damage(connection: sqlite3.Connection, *, thorough: bool = False) -> str | None:
    """What is wrong with a vault's file as a database; ``None`` where nothing is.

    Reads all of it. ``thorough`` also holds the indexes against the tables, which takes longer.
    What is wrong in a sealed value is not seen: ``verify`` opens them.
    """
    pragma = "integrity_check" if thorough else "quick_check(1)"
    connection.text_factory = _legible
    try:
        (problem,) = connection.execute(f"pragma {pragma}").fetchone()
        return _emptied(connection) if problem == "ok" else f"SQLite says: {problem}"
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:  # a page that even the check cannot read
        return f"SQLite says: {error}"
    finally:
        connection.text_factory = str


def _emptied(connection: sqlite3.Connection) -> str | None:
    """A column that holds nothing somewhere, which it does in no vault."""
    for table, columns in FIRST_TABLES.items():
        for column in (one.split()[0] for one in columns.split(", ")):
            if (table, column) not in NULLABLE:
                query = f"select 1 from {table} where {column} is null limit 1"
                try:
                    empty = connection.execute(query).fetchone() is not None
                except sqlite3.OperationalError as error:
                    if "no such" not in str(error):
                        raise
                    return f"{table}.{column} is missing"
                if empty:
                    return f"{table}.{column} is empty in a row"
    return None


def _stray(connection: sqlite3.Connection) -> bool:
    """Whether a source is that of no memory: it stands in the way of the memory it is of."""
    query = "select 1 from memory_sources where memory not in (select id from memories) limit 1"
    return connection.execute(query).fetchone() is not None


def _legible(text: bytes) -> str:
    """What SQLite says of names that are no text any more, as far as it can be read."""
    return text.decode("utf-8", "replace")
