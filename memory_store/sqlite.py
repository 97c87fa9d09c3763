"""SQLite: which module, how connections are opened, how sqlite-vec gets into one.

Boundary: every connection of this package comes from here, with ``trusted_schema`` off (a hostile
file cannot make its schema call functions) and ``secure_delete`` on (deleted cells are zeroed). A
file whose journal would have another file deleted is not opened.

``sqlite3`` is pysqlite3 where that is installed, else the standard library's: the choice Datasette
and sqlite-utils make, so that exception classes match theirs.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memory_store.errors import DamagedError, ReadOnlyError, StorageError

if TYPE_CHECKING:
    import sqlite3 as sqlite3  # others take it from here
else:
    try:
        import pysqlite3 as sqlite3
    except ImportError:
        import sqlite3

BUSY_SECONDS = 10.0  # how long a writer waits for another process before "database is locked"


class ExtensionUnavailable(Exception):
    """sqlite-vec cannot be loaded here; the message says why."""


FULL = "the disk is full"
STANDBY = "its server is a standby, which takes no writes"
FAILING = "the disk does not read or write as it should"
NEEDED = 64 * 1024  # bytes: what SQLite makes beside a log before anything is read


class FileStamp(Struct, frozen=True):
    """Which file lies there, and when it was last changed, in nanoseconds."""

    device: int
    inode: int
    size: int
    changed: int


FileStamps = tuple[FileStamp | None, FileStamp | None, FileStamp | None]
"""Of a file, its log and its journal; ``None`` for one that is missing or empty."""


class FileAccess(Struct, frozen=True):
    """How every connection to a file is opened; ``read_only`` says why nothing may be written.

    ``place`` is a private copy to read instead, empty where there is none. ``seen`` are the files
    as they were when it was decided to read them without locks: see :meth:`check_unchanged`.
    """

    read_only: str = ""
    parameters: str = "mode=rwc"
    place: str = ""
    seen: FileStamps | None = None

    @property
    def in_memory(self) -> bool:
        """Whether there is no file: all of it is in the memory of this process."""
        return self.parameters == IN_MEMORY

    @property
    def lasting(self) -> FileAccess:
        """The same for as long as a vault is open: what is a standby now may be the primary later,
        and the server itself says so at each write."""
        return WRITABLE if self.read_only == STANDBY else self

    def refuse_writing(self, path: Path) -> None:
        """Raise ReadOnlyError where nothing may be written, StorageError where it cannot be."""
        if self.read_only == FULL and has_room(path):
            raise StorageError(
                f"{path.name}: {FULL}, it was when this program opened it; there is room again: "
                "open it again, or start the server again"
            )
        if self.read_only in (FULL, FAILING):
            raise StorageError(f"{path.name}: {self.read_only}")
        if self.read_only:
            raise ReadOnlyError(f"nothing can be written to {path.name}: {self.read_only}")

    def outdated(self, path: Path) -> bool:
        """Whether files that are read without locks were changed since it was decided so."""
        return self.seen is not None and file_stamps(path) != self.seen

    @contextmanager
    def unchanged(self, path: Path) -> Iterator[None]:
        """What is read inside is of one state of the file. Raises StorageError."""
        try:
            yield
        except Exception:
            self.check_unchanged(path)  # what is half one state and half another breaks anywhere
            raise
        self.check_unchanged(path)

    def check_unchanged(self, path: Path) -> None:
        """Raise StorageError where a file that is read without locks was changed meanwhile."""
        if self.outdated(path):
            raise StorageError(
                f"{path.name}: another program wrote to it while it was read here without locks "
                f"({self.read_only}): open it again"
            )


WRITABLE = FileAccess()
IN_MEMORY = "mode=memory&cache=shared"
"""Connections of one process to one name share a database, which ends with the last of them. With
``read_uncommitted`` no reader waits for the writer (https://sqlite.org/sharedcache.html)."""


def file_stamps(path: Path) -> FileStamps:
    """A file, its log and its journal as they are now."""
    names = (path.name, f"{path.name}-wal", f"{path.name}-journal")
    file, log, journal = (_stamp(path.with_name(name)) for name in names)
    return file, log, journal


def _stamp(path: Path) -> FileStamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    if not status.st_size:
        return None
    return FileStamp(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def file_there(path: str | Path) -> tuple[int, int] | None:
    """Which file lies there, whatever is in it; ``None`` where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def has_room(path: Path) -> bool:
    """Whether the disk of a file has room for what SQLite makes beside it."""
    if not hasattr(os, "statvfs"):
        return True
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return True
    return disk.f_bavail * disk.f_frsize >= NEEDED and (disk.f_favail > 0 or not disk.f_files)


PRAGMAS = ("foreign_keys = on", "trusted_schema = off", "secure_delete = on")
DURABLE = "synchronous = full"  # what was committed survives a power cut, however SQLite was built


def connect(
    path: str | Path,
    *,
    read_only: bool = False,
    access: FileAccess = WRITABLE,
    patience: float = BUSY_SECONDS,
) -> sqlite3.Connection:
    """Open ``path`` (or ``":memory:"``) in autocommit mode, usable from any one thread at a time.

    ``read_only`` neither creates nor changes the file. Every call waits up to ``patience`` seconds
    for a file that another program has locked. Raises ``sqlite3.OperationalError`` when
    the file cannot be opened, ``sqlite3.DatabaseError`` when it is not a database, StorageError
    where its journal names another file.
    """
    target = str(path)
    if target != ":memory:":
        _refuse_journal_of_several(Path(access.place or path))
        as_is = access.read_only or access.in_memory or not read_only
        writes = access.parameters if as_is else "mode=ro"
        target = f"{Path(access.place or path).absolute().as_uri()}?{writes}"
    connection = sqlite3.connect(
        target, timeout=patience, isolation_level=None, check_same_thread=False, uri=True
    )
    try:
        for pragma in PRAGMAS if read_only else (*PRAGMAS, DURABLE):
            connection.execute(f"pragma {pragma}")
        if access.in_memory:
            connection.execute("pragma temp_store = memory")
            connection.execute("pragma read_uncommitted = on")
    except BaseException:
        connection.close()
        raise
    return connection


_END_OF_JOURNAL = struct.Struct(">II8s")
_MAGIC = bytes.fromhex("d9d505f920a163d7")
_LONGEST_NAME = 65_536  # bytes; SQLite takes 512


def _refuse_journal_of_several(path: Path) -> None:
    """Raise StorageError where the journal beside a file is one of several databases' transaction.

    At its end stands the name of a file that SQLite deletes once it has rolled the transaction
    back, whatever file that is (https://sqlite.org/atomiccommit.html, section 5.4). A vault has a
    log, and never such a journal.
    """
    journal = Path(f"{os.path.realpath(path)}-journal")
    try:
        with journal.open("rb") as file:
            end = file.seek(0, os.SEEK_END) - _END_OF_JOURNAL.size
            file.seek(max(0, end))
            length, total, magic = _END_OF_JOURNAL.unpack(file.read(_END_OF_JOURNAL.size))
            file.seek(max(0, end - length))
            named = magic == _MAGIC and 0 < length <= min(end, _LONGEST_NAME)
            named = named and sum(file.read(length)) == total
    except (OSError, struct.error):
        return  # there is none, or none that names a file
    if named:
        raise StorageError(
            f"{journal.name}: names another file, which SQLite would delete: it is no vault's. "
            "Move it away, and open the vault again"
        )


DAMAGED = (
    "the file is damaged: put back a backup, or write the rest with memory-store export DIR "
    "--skip-damaged and import it into a new vault; memory-store verify says where"
)
CAUSES = (
    ("is full", FULL),
    ("i/o error", FAILING),
    (
        "readonly database",
        "nothing could be written when this program opened it; with room on the disk and the right "
        "to write, start the program again",
    ),
    ("malformed", DAMAGED),
    ("not a database", "the file is damaged: it is no SQLite database any more"),
    ("could not decode", "the file is damaged: a text in it is none"),
    ("is locked", "another program has been writing to it for too long"),
    ("unable to open", "it cannot be opened"),
)
"""What SQLite says, and what that is in plain words. SQLite itself may quote what it read."""
UNREADABLE = ("i/o error", "malformed", "not a database", "could not decode")
"""What SQLite says of a part of a file that it cannot read."""


@contextmanager
def storage_faults(path: Path) -> Iterator[None]:
    """What SQLite cannot read or write inside is StorageError, naming the file and the cause:
    DamagedError where it is a part of the file."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if type(error) not in (sqlite3.DatabaseError, sqlite3.OperationalError):
            raise  # a broken constraint, a call that is wrong: no fault of the disk
        damaged = any(words in str(error).lower() for words in UNREADABLE)
        kind = DamagedError if damaged else StorageError
        raise kind(f"{path.name}: {plain_cause(error)}") from error


BEING_WRITTEN = "another program is writing to it; try again"
LOG_IN_MOTION = frozenset({264, 520, 1288})
"""SQLITE_READONLY_RECOVERY, _CANTLOCK and _CANTINIT (https://sqlite.org/rescode.html): a reader
without the right to write met a log that another program was just beginning or ending."""


def plain_cause(error: Exception) -> str:
    """An error of SQLite's in words for the person who has to mend it."""
    if getattr(error, "sqlite_errorcode", None) in LOG_IN_MOTION:
        return BEING_WRITTEN
    said = str(error)
    return next((cause for words, cause in CAUSES if words in said.lower()), said)


def load_vec(connection: sqlite3.Connection) -> str:
    """Load sqlite-vec into an open connection; returns how (``"load_extension"``).

    Raises ``ExtensionUnavailable`` where this Python's sqlite3 cannot load extensions; such a
    connection has to be opened by :func:`connect_with_vec` instead.
    """
    if not hasattr(connection, "enable_load_extension"):
        raise ExtensionUnavailable("this Python's sqlite3 was built without extension loading")
    try:
        connection.enable_load_extension(True)
        try:
            connection.load_extension(_vec_module().loadable_path())
        finally:
            connection.enable_load_extension(False)
    except sqlite3.Error as error:
        raise ExtensionUnavailable(f"sqlite-vec does not load: {error}") from error
    return "load_extension"


def connect_with_vec(path: str | Path = ":memory:") -> tuple[sqlite3.Connection, str]:
    """A connection with sqlite-vec in it, and how it got there.

    Tries extension loading, then ``sqlite3_auto_extension`` through ctypes (``"auto_extension"``).
    Raises ``ExtensionUnavailable`` when neither works.
    """
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        connection = connect(path)
        try:
            return connection, load_vec(connection)
        except ExtensionUnavailable:
            connection.close()
    return _connect_automatically(path), "auto_extension"


def _vec_module() -> Any:
    try:
        return importlib.import_module("sqlite_vec")
    except ImportError as error:
        raise ExtensionUnavailable("sqlite-vec is not installed") from error


_registering = threading.Lock()
_loaded: dict[str | None, ctypes.CDLL] = {}  # kept: SQLite has pointers into them


def _connect_automatically(path: str | Path) -> sqlite3.Connection:
    """Open a connection while sqlite-vec is registered as an automatic extension.

    Registration is global to the process: a connection another thread opens meanwhile gets the
    extension too (which adds functions and changes nothing). The lock keeps our own from
    cancelling each other's.
    """
    library = linked_library(sqlite3)
    start = _vec_entry_point()
    with _registering:
        if library.sqlite3_auto_extension(start) != 0:
            raise ExtensionUnavailable("SQLite refused sqlite-vec as an automatic extension")
        try:
            connection = connect(path)
        except sqlite3.Error as error:
            raise ExtensionUnavailable(f"sqlite-vec does not load: {error}") from error
        finally:
            library.sqlite3_cancel_auto_extension(start)
    try:
        connection.execute("select vec_version()")
    except sqlite3.Error as error:
        connection.close()
        raise ExtensionUnavailable(f"sqlite-vec does not answer: {error}") from error
    return connection


def linked_library(module: Any) -> ctypes.CDLL:
    """The very SQLite library that a module (``sqlite3`` or ``pysqlite3``) calls.

    Symbols are looked up through the extension module itself, whose dependencies the loader
    searches; through the whole process where Python was built with that module inside. Another
    copy of SQLite in the process would crash, so version and source id must both agree. Raises
    ``ExtensionUnavailable``.
    """
    if sys.implementation.name != "cpython":
        raise ExtensionUnavailable("only CPython's sqlite3 can be reached through ctypes")
    name = "_sqlite3" if module.__name__ == "sqlite3" else f"{module.__name__}._sqlite3"
    try:
        library = _library(getattr(importlib.import_module(name), "__file__", None))
        library.sqlite3_libversion.restype = ctypes.c_char_p
        library.sqlite3_sourceid.restype = ctypes.c_char_p
        for function in (library.sqlite3_auto_extension, library.sqlite3_cancel_auto_extension):
            function.argtypes = [ctypes.c_void_p]
            function.restype = ctypes.c_int
        found = (library.sqlite3_libversion().decode(), library.sqlite3_sourceid().decode())
    except (ImportError, OSError, AttributeError, TypeError) as error:
        raise ExtensionUnavailable("the SQLite library cannot be reached") from error
    with module.connect(":memory:") as connection:
        (source,) = connection.execute("select sqlite_source_id()").fetchone()
    connection.close()
    if found != (module.sqlite_version, source):
        raise ExtensionUnavailable("ctypes reaches another SQLite than the sqlite3 module uses")
    return library


def _vec_entry_point() -> ctypes.c_void_p:
    base = _vec_module().loadable_path()
    for suffix in (".so", ".dylib", ".dll", ""):
        if Path(base + suffix).is_file():
            try:
                return ctypes.cast(_library(base + suffix).sqlite3_vec_init, ctypes.c_void_p)
            except (OSError, AttributeError) as error:
                raise ExtensionUnavailable(f"sqlite-vec does not load: {error}") from error
    raise ExtensionUnavailable("sqlite-vec's library file is missing")


def _library(path: str | None) -> ctypes.CDLL:
    if path not in _loaded:
        _loaded[path] = ctypes.CDLL(path)
    return _loaded[path]
