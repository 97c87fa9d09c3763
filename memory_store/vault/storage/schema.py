"""The tables of a vault, as append-only migrations, and the checks before a file is trusted.

Boundary: no keys. A file is opened only when it is SQLite, holds a vault of a format this version
reads, and holds no trigger or view that could run another's SQL on our tables, nor a virtual table
in the place of one: what reads such a one is code that the file chooses, and feeds.

``docs/how-it-works/sealing.md`` lists what stands in clear. Every blob column is a sealed value,
except the keyed hashes in ``topic``, ``tag``, ``origin``, ``draft`` and ``file``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from memory_store.addresses import vault_path
from memory_store.errors import FormatError, MemoryStoreError, NotAVaultError, StorageError
from memory_store.sqlite import (
    BEING_WRITTEN,
    BUSY_SECONDS,
    FileAccess,
    connect,
    plain_cause,
    sqlite3,
)
from memory_store.vault.storage.file_access import APPLICATION_ID, file_access
from memory_store.vault.storage.server import is_on_server, on_server

if TYPE_CHECKING:
    from sqlite_utils import Database

FORMAT_VERSION = 3
READ_VERSIONS = (1, 2, FORMAT_VERSION)
"""Format 1 knew neither epochs nor grants, format 2 believed rows that any member may write. Such a
vault becomes one of today's when its owner opens it for writing: see ``vault/upgrade.py``. Which
rules a vault is read by say its sealed settings; the number in the file's header only refuses."""
SETTINGS_TABLE = "vault_settings"
VIRTUAL = "virtual table"
FIRST_TABLES = {
    "vault_settings": "name text, value text, sealed blob",
    "vault_slots": (
        "id text, principal integer, kind text, parameters text, salt blob, commitment blob, "
        "wrapped blob, created text"
    ),
    "vault_principals": "id integer, sealed blob, created text",
    "vault_collection_keys": "collection text, epoch integer, principal integer, wrapped blob",
    "collections": "id text, name blob, created text",
    "memories": (
        "id text, collection text, type text, created text, updated text, version integer, "
        "content text, head blob"
    ),
    "memory_bodies": "id text, collection text, tag blob, body blob",
    "memory_topics": "memory text, topic blob",
    "memory_sources": "memory text, origin blob, draft blob, file blob",
    "vault_sources": "id text, collection text, tag blob, head blob",
    "vault_source_files": "tag blob, source text, content blob",
    "vault_segments": (
        "id text, collection text, epoch integer, documents integer, sequence integer, "
        "model text, main blob, vectors blob, pairs blob"
    ),
    "vault_changes": "sequence integer, collection text, memory text, operation text",
    "vault_manifests": "collection text, counter integer, sealed blob",
}
"""Format 1: table → columns. Never changed: what comes later is a migration."""
LONGER_KEYS = {
    "vault_collection_keys": ("collection", "epoch", "principal"),
    "memory_topics": ("memory", "topic"),
    "vault_segment_parts": ("segment", "kind"),
}
"""The primary keys of several columns; the others are the first column."""
FIRST_INDEXES = (
    ("memories", ["collection", "created"]),
    ("memories", ["type"]),
    ("memories", ["content"]),
    ("memory_topics", ["topic"]),
    ("memory_sources", ["file"]),
    ("vault_source_files", ["source"]),
)
FIRST_UNIQUE = (
    ("memory_bodies", ["collection", "tag"]),
    ("memory_sources", ["origin"]),
    ("vault_sources", ["tag"]),
)
LATER_TABLES = {
    "vault_expansions": (
        "sequence integer primary key, tag blob not null unique, sealed blob not null"
    ),
    "vault_audit": "sequence integer primary key, sealed blob not null",
    "vault_identities": "principal integer primary key, public blob not null",
    "vault_shares": "collection text primary key, sealed blob not null",
    "vault_segment_parts": (
        "segment text not null, kind text not null, sealed blob not null, "
        "primary key (segment, kind)"
    ),
    "vault_trash": (
        "sequence integer primary key, collection text not null, sealed blob not null, "
        "body blob not null"
    ),
    "vault_sync": "tag blob primary key not null, sealed blob not null",
}
"""What a vault of any format may do without: it gets them when they are needed.

In ``vault_collection_keys`` the owner's (principal 0) ``wrapped`` is a sealed value, that of others
a signed grant (``vault/grants.py``); there is one row for each epoch that is read, two while the
key of a collection is being replaced.
"""
LATER_MIGRATIONS = {
    "0002_expansions": ("vault_expansions",),
    "0003_audit": ("vault_audit",),
    "0004_sharing": ("vault_identities", "vault_shares"),
    "0006_segment_parts": ("vault_segment_parts",),
    "0007_trash": ("vault_trash",),
    "0008_sync": ("vault_sync",),
}
_COLUMN = re.compile(r"(\w+) (text|blob|integer)\b")
VAULT_TABLES = tuple(name for name in FIRST_TABLES if name.startswith("vault_"))
"""Machinery: a Datasette hides these, and the later ones."""
MEMORY_TABLES = tuple(name for name in FIRST_TABLES if not name.startswith("vault_"))


def columns_of(table: str) -> list[str]:
    """The columns of a table of today's format, as they are made."""
    listed = FIRST_TABLES.get(table) or LATER_TABLES[table]
    columns = [name for name, _ in _COLUMN.findall(listed)]
    return [*columns, "principal"] if table == "vault_sources" else columns


def blobs_of(table: str) -> list[str]:
    """Those of its columns that hold bytes."""
    listed = FIRST_TABLES.get(table) or LATER_TABLES[table]
    return [name for name, kind in _COLUMN.findall(listed) if kind == "blob"]


def key_of(table: str) -> tuple[str, ...]:
    """The columns of its primary key."""
    return LONGER_KEYS.get(table) or (columns_of(table)[0],)


def order_of(table: str) -> str:
    """The column that a table's rows stand in the order of: SQLite takes a number that is the key
    for the row's own."""
    (first, kind), *_ = _COLUMN.findall(FIRST_TABLES.get(table) or LATER_TABLES[table])
    return str(first) if kind == "integer" and table not in LONGER_KEYS else "rowid"


def _create_first_tables(db: Database) -> None:
    """Format 1. Collections, principals and grants leave room for sharing."""
    for table, listed in FIRST_TABLES.items():
        columns = dict(column.split() for column in listed.split(", "))
        db.table(table).create(columns, pk=LONGER_KEYS.get(table, next(iter(columns))), strict=True)
    for indexes, unique in ((FIRST_INDEXES, False), (FIRST_UNIQUE, True)):
        for table, index in indexes:
            db.table(table).create_index(index, unique=unique)


def create_later_tables(
    connection: sqlite3.Connection, tables: Iterable[str] = LATER_TABLES
) -> None:
    """Make those that a vault may do without, if they are not there."""
    for table in tables:
        connection.execute(f"create table if not exists {table} ({LATER_TABLES[table]}) strict")


def own_sources(connection: sqlite3.Connection) -> None:
    """Format 3: a source belongs to the principal who named it."""
    columns = {row[1] for row in connection.execute("pragma table_info(vault_sources)")}
    if "principal" not in columns:
        connection.execute(
            "alter table vault_sources add column principal integer not null default 0"
        )


def note_format(connection: sqlite3.Connection) -> None:
    """Write today's format into the file's header (inside the caller's transaction)."""
    connection.execute(f"pragma user_version = {FORMAT_VERSION}")
    connection.execute(
        "update vault_settings set value = ? where name = 'format'", (str(FORMAT_VERSION),)
    )


def create_schema(connection: sqlite3.Connection) -> None:
    """Make the tables of the newest format in an open database."""
    from sqlite_utils import Database, Migrations

    migrations = Migrations("memory_store")
    migrations(name="0001_first_format")(_create_first_tables)
    for name, tables in LATER_MIGRATIONS.items():
        migrations(name=name)(lambda db, tables=tables: create_later_tables(db.conn, tables))
    migrations(name="0005_own_sources")(lambda db: own_sources(db.conn))
    migrations.apply(Database(connection))
    connection.execute(f"pragma application_id = {APPLICATION_ID}")
    connection.execute(f"pragma user_version = {FORMAT_VERSION}")


def is_vault(
    path: str | Path, access: FileAccess | None = None, *, patience: float = BUSY_SECONDS
) -> bool:
    """Whether a file holds a vault. Needs no key, changes nothing.

    Raises StorageError where that cannot be said: the disk fails at it, the file is damaged, or
    another program has locked it for longer than ``patience`` seconds.
    """
    try:
        check_is_vault(vault_path(path), access, patience=patience)
    except NotAVaultError:
        return False
    except FormatError:
        return True
    return True


def check_is_vault(
    path: Path, access: FileAccess | None = None, *, patience: float = BUSY_SECONDS
) -> FileAccess:
    """How a vault can be opened: as ``access`` says, or as its place allows. Raises NotAVaultError,
    FormatError or StorageError unless ``path`` is a vault this version reads.

    SQLite itself looks into the file. To open and close it beside SQLite would take away the locks
    of every connection that this process has to it (POSIX), and the next program that closes the
    vault would then delete the write-ahead log under them.
    """
    if is_on_server(path):
        there: FileAccess = on_server("check_is_vault_there")(path)
        return access or there
    in_memory = access is not None and access.in_memory
    if not in_memory and not path.exists():
        raise NotAVaultError(f"{path}: no such file")
    if not in_memory and not path.is_file():
        raise NotAVaultError(f"{path}: not a file")
    try:
        found = access or file_access(path)
        connection = connect(path, read_only=True, access=found, patience=patience)
    except (OSError, sqlite3.Error) as error:
        raise _unreadable(str(path), error) from None
    try:
        check_schema(connection, str(path))
    finally:
        connection.close()
    return found


OF_THE_DISK = ("i/o error", "is locked")  # what SQLite says of a file of any kind


def _unreadable(name: str, error: Exception) -> MemoryStoreError:
    """What it means that a file cannot be looked at: that it is no vault, or only for now."""
    said = str(error).lower()
    if "readonly database" in said:  # to read writes nothing: only a log that comes or goes does
        return StorageError(f"{name}: {BEING_WRITTEN}")
    if "malformed" in said:
        return StorageError(f"{name}: the file is damaged and cannot be opened: put back a backup")
    if any(words in said for words in OF_THE_DISK):
        return StorageError(f"{name}: {plain_cause(error)}")
    if "not a database" in said:
        return NotAVaultError(f"{name}: not an SQLite database")
    return NotAVaultError(f"{name}: cannot be read as a vault ({error})")


def check_schema(connection: sqlite3.Connection, name: str) -> None:
    """Raise unless the open database holds our tables, in our format, and no foreign triggers.

    NotAVaultError, FormatError, StorageError.
    """
    try:
        found = connection.execute(
            "select name, iif(type = 'table' and not rootpage, ?, type) from sqlite_master",
            (VIRTUAL,),
        ).fetchall()
        tables = dict(found)
        if tables.get(SETTINGS_TABLE) != "table":
            raise NotAVaultError(f"{name}: an SQLite database, but not a vault (no vault in it)")
        (version,) = connection.execute("pragma user_version").fetchone()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # a damaged name, quoted by SQLite
        raise _unreadable(name, error) from None
    if version not in READ_VERSIONS:
        raise FormatError(
            f"{name}: a vault of format {version}; this version reads format {FORMAT_VERSION}"
        )
    missing = [t for t in (*VAULT_TABLES, *MEMORY_TABLES) if tables.get(t) != "table"]
    if missing:
        raise FormatError(f"{name}: a vault without its table {missing[0]}")
    hostile = [(kind, name) for name, kind in found if _is_hostile(kind, name)]
    if hostile:
        kind, culprit = hostile[0]
        raise FormatError(f"{name}: holds the {kind} {culprit!r}, which a vault never has")


def _is_hostile(kind: str, name: str) -> bool:
    """Whether a vault never has such a thing: it could run another's SQL on our tables."""
    called = str(name).lower()
    if kind == VIRTUAL:
        return called in FIRST_TABLES or called in LATER_TABLES
    if kind != "view":
        return kind == "trigger"
    return called.startswith(("vault_", "memor")) or called == "collections"
