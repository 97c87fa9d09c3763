"""SQLite: which module, how connections are opened, how sqlite-vec gets into one.

Boundary: every connection of this package comes from here, with ``trusted_schema`` off (a hostile
file cannot make its schema call functions) and ``secure_delete`` on (deleted cells are zeroed).

``sqlite3`` is pysqlite3 where that is installed, else the standard library's: the choice Datasette
and sqlite-utils make, so that exception classes match theirs.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3
else:
    try:
        import pysqlite3 as sqlite3
    except ImportError:
        import sqlite3

__all__ = ["ExtensionUnavailable", "connect", "connect_with_vec", "load_vec", "sqlite3"]

BUSY_SECONDS = 10.0  # how long a writer waits for another process before "database is locked"


class ExtensionUnavailable(Exception):
    """sqlite-vec cannot be loaded here; the message says why."""


def connect(path: str | Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open ``path`` (or ``":memory:"``) in autocommit mode, usable from any one thread at a time.

    ``read_only`` neither creates nor changes the file. Raises ``sqlite3.OperationalError`` when
    the file cannot be opened, ``sqlite3.DatabaseError`` when it is not a database.
    """
    target = str(path)
    if target != ":memory:":
        target = Path(path).absolute().as_uri() + ("?mode=ro" if read_only else "?mode=rwc")
    connection = sqlite3.connect(
        target, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True
    )
    try:
        for pragma in ("foreign_keys = on", "trusted_schema = off", "secure_delete = on"):
            connection.execute(f"pragma {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


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
_loaded: dict[str, ctypes.CDLL] = {}  # libraries stay loaded: SQLite keeps pointers into them


def _connect_automatically(path: str | Path) -> sqlite3.Connection:
    """Open a connection while sqlite-vec is registered as an automatic extension.

    Registration is global to the process: a connection another thread opens meanwhile gets the
    extension too (which adds functions and changes nothing). The lock keeps our own from
    cancelling each other's.
    """
    library = _linked_library()
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


def _linked_library() -> ctypes.CDLL:
    """The very SQLite library that the ``sqlite3`` module calls.

    Symbols are looked up through the extension module itself, whose dependencies the loader
    searches. Another copy of SQLite in the process would crash, so version and source id must
    both agree.
    """
    if sys.implementation.name != "cpython":
        raise ExtensionUnavailable("only CPython's sqlite3 can be reached through ctypes")
    name = "_sqlite3" if sqlite3.__name__ == "sqlite3" else f"{sqlite3.__name__}._sqlite3"
    try:
        module = importlib.import_module(name)
        library = _library(str(module.__file__))
        library.sqlite3_libversion.restype = ctypes.c_char_p
        library.sqlite3_sourceid.restype = ctypes.c_char_p
        for function in (library.sqlite3_auto_extension, library.sqlite3_cancel_auto_extension):
            function.argtypes = [ctypes.c_void_p]
            function.restype = ctypes.c_int
        found = (library.sqlite3_libversion().decode(), library.sqlite3_sourceid().decode())
    except (ImportError, OSError, AttributeError) as error:
        raise ExtensionUnavailable("the SQLite library cannot be reached") from error
    with sqlite3.connect(":memory:") as connection:
        (source,) = connection.execute("select sqlite_source_id()").fetchone()
    connection.close()
    if found != (sqlite3.sqlite_version, source):
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


def _library(path: str) -> ctypes.CDLL:
    if path not in _loaded:
        _loaded[path] = ctypes.CDLL(path)
    return _loaded[path]
