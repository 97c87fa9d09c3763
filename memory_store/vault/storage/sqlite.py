"""A vault's storage in an SQLite file: one connection, its transactions, and its tables.

Boundary: no keys; what passes is sealed, hashed or stands in clear by design.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from memory_store.sqlite import BUSY_SECONDS, WRITABLE, FileAccess, connect, sqlite3
from memory_store.vault.storage.collections import Accounts, CollectionsTable, SettingsTable
from memory_store.vault.storage.damage import damage
from memory_store.vault.storage.keys import Principals, Shares, Slots, WrappedKeys
from memory_store.vault.storage.logs import AuditTable, ExpansionsTable
from memory_store.vault.storage.memories import Memories, Topics
from memory_store.vault.storage.schema import (
    SETTINGS_TABLE,
    create_later_tables,
    create_schema,
    note_format,
    own_sources,
)
from memory_store.vault.storage.segments import Segments
from memory_store.vault.storage.server import is_on_server, on_server
from memory_store.vault.storage.sources import Origins, SourceFiles, Sources
from memory_store.vault.storage.sync import SyncTable
from memory_store.vault.storage.table import Engine, SqliteEngine
from memory_store.vault.storage.trash import TrashTable

PAGE_BYTES = 8_192  # notes of 1,600 bytes leave a quarter of SQLite's usual 4,096 empty
FREE_SHARE = 8  # free pages are given back once they are more than this part of all


class CatchesUp(Protocol):
    """Keys that others may have replaced since they were read."""

    def catch_up(self, storage: Storage) -> None: ...


class Storage:
    """One connection to a vault's file, for one thread at a time. Calls raise ``sqlite3.Error``."""

    counted = False
    """Whether a revision is the same number on every connection."""
    standby = False
    """Whether it is a server's that follows another one, and may be behind it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        engine = SqliteEngine(connection)
        self._tables = engine.tables
        self._use(engine)

    def _use(self, engine: Engine) -> None:
        """Reach every table through an engine."""
        self.engine = engine
        self.memories = Memories(engine)
        self.topics = Topics(engine)
        self.origins = Origins(engine)
        self.segments = Segments(engine)
        self.accounts = Accounts(engine)
        self.settings = SettingsTable(engine)
        self.collections = CollectionsTable(engine)
        self.keys = WrappedKeys(engine)
        self.slots = Slots(engine)
        self.principals = Principals(engine)
        self.shares = Shares(engine)
        self.sources = Sources(engine)
        self.files = SourceFiles(engine)
        self.audit = AuditTable(engine)
        self.expansions = ExpansionsTable(engine)
        self.trash = TrashTable(engine)
        self.sync = SyncTable(engine)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        read_only: bool = False,
        access: FileAccess = WRITABLE,
        patience: float = BUSY_SECONDS,
    ) -> Storage:
        """Connect to a vault's file; see :func:`memory_store.sqlite.connect`. Or to a database."""
        if is_on_server(path):
            found: Storage = on_server("open_storage")(
                path, read_only=read_only, access=access, patience=patience
            )
            return found
        return cls(connect(path, read_only=read_only, access=access, patience=patience))

    def close(self) -> None:
        """Close the connection. It may be closed already."""
        self._connection.close()

    # -- transactions --------------------------------------------------------------------------

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, to write or to read one moment."""
        return self._connection.in_transaction

    @contextmanager
    def transaction(self, keys: CatchesUp | None = None) -> Iterator[None]:
        """Everything inside is written, or nothing. Waits for other writers (busy time-out).

        ``keys``, with which something is to be sealed inside, are first brought up to date.
        """
        self._connection.execute("begin immediate")
        try:
            if keys is not None:
                keys.catch_up(self)
            yield
            self._connection.execute("commit")
        except BaseException:
            self.end_reading()  # a full disk has ended it already
            self._tables.clear()  # one that was made in it is not there
            raise

    @contextmanager
    def reading(self) -> Iterator[Storage]:
        """Everything read inside is of one moment. Within a transaction it is that one's."""
        if self.in_transaction:
            yield self
            return
        self._connection.execute("begin")
        try:
            yield self
        finally:
            self.end_reading()

    def begin_reading(self) -> int | None:
        """Read what was committed by now, until :meth:`end_reading`. Returns the revision, if it is
        :attr:`counted`."""
        self._connection.execute("begin")
        try:
            self._connection.execute("select 1 from vault_manifests limit 1").fetchone()
        except BaseException:
            self.end_reading()
            raise
        return None

    def end_reading(self) -> None:
        """End the open transaction, if there is one; what it wrote is taken back."""
        if self.in_transaction:
            self._connection.execute("rollback")

    def revision(self) -> int:
        """A number that is another one once another connection has committed something."""
        (version,) = self._connection.execute("pragma data_version").fetchone()
        return int(version)

    def revisions(self) -> tuple[int, int]:
        """That number, and the revision of the settings."""
        return self.revision(), self.settings.revision()

    # -- the file ------------------------------------------------------------------------------

    def keep_log(self) -> None:
        """Write through a log (WAL) from now on: readers never wait, and one who may only read
        need not undo what a killed program left.

        Copies that SQLite makes (``vacuum into``) and other tools may have left the file another
        way. While others have it open, or the disk is full, it stays as it is until the next
        opening.
        """
        with suppress(sqlite3.OperationalError):
            (mode,) = self._connection.execute("pragma journal_mode").fetchone()
            if mode != "wal":
                self._connection.execute("pragma busy_timeout = 200")
                try:
                    self._connection.execute("pragma journal_mode = wal").fetchone()
                finally:
                    self._connection.execute(f"pragma busy_timeout = {int(BUSY_SECONDS * 1_000)}")

    def erase_traces(self) -> bool:
        """After a deletion: empty the write-ahead log, where old pages would stay readable, and
        :meth:`give_back` what is free.

        ``secure_delete`` overwrites the pages in the file itself. Readers that are at work keep
        the log alive; the next deletion, or the last connection to close, empties it then. Returns
        whether the log is empty.
        """
        self.give_back()
        (busy, *_) = self._connection.execute("pragma wal_checkpoint(truncate)").fetchone()
        return not busy

    def give_back(self) -> None:
        """Give pages that nothing uses back to the file system, once they are many.

        A merge frees what its parts took. A vault that was made before its file could shrink
        keeps them for what comes; a backup of it has none. While another program writes, or the
        disk is full, they stay until the next time.
        """
        with suppress(sqlite3.OperationalError):
            pages, free = self._connection.execute(
                "select page_count, freelist_count from pragma_page_count, pragma_freelist_count"
            ).fetchone()
            if free * FREE_SHARE > pages:
                self._connection.executescript(f"pragma incremental_vacuum({free})")  # each step

    def format(self) -> int:
        """The number of the vault's format in the file's header."""
        (version,) = self._connection.execute("pragma user_version").fetchone()
        return int(version)

    def damage(self, *, thorough: bool = False) -> str | None:
        """What is wrong with the file as a database; ``None`` where nothing is.

        Reads all of it. ``thorough`` also holds the indexes against the tables, which takes longer.
        What is wrong in a sealed value is not seen: ``verify`` opens them.
        """
        return damage(self._connection, thorough=thorough)

    def quick_check(self) -> str:
        """What SQLite says of the file's pages: "ok", or the first thing that is wrong."""
        (verdict,) = self._connection.execute("pragma quick_check(1)").fetchone()
        return str(verdict)

    def size(self, path: Path) -> int:
        """The bytes of the vault's file, and of its log."""
        files = (path, path.with_name(path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    @property
    def exists(self) -> bool:
        """Whether it holds a vault."""
        return self.engine.has(SETTINGS_TABLE)

    def place(self) -> str:
        """What says where the vault stands, wherever it is opened from. Empty: its path does."""
        return ""

    def take_name(self, target: Path) -> None:
        """Be the vault of that name from now on: a file is renamed by the caller."""
        self.erase_traces()

    def copy_to(self, target: Path) -> None:
        """Write one committed state to a new file, without free pages."""
        self._connection.execute("vacuum into :target", {"target": str(target)})

    # -- making and upgrading ------------------------------------------------------------------

    def begin_file(self) -> bool:
        """Set a new file's pages and log up. Returns whether it holds a vault already."""
        self._connection.execute(f"pragma page_size = {PAGE_BYTES}")  # of a new file alone
        self._connection.execute("pragma auto_vacuum = incremental")  # of a new one, too
        self._connection.execute("pragma journal_mode = wal")
        found = self._connection.execute(
            "select 1 from sqlite_master where name = ?", (SETTINGS_TABLE,)
        )
        return found.fetchone() is not None

    def create_tables(self) -> None:
        """Make the tables of the newest format."""
        create_schema(self._connection)

    def create_later_tables(self) -> None:
        """Make those that a vault of an earlier format may do without (in a transaction)."""
        create_later_tables(self._connection)
        own_sources(self._connection)

    def note_format(self) -> None:
        """Write today's format into the file's header (in a transaction)."""
        note_format(self._connection)
