"""How a vault's file is opened where it may be that nothing can be written: read all the same.

Boundary: no keys, and sealed data alone. What was committed is never missed, and nothing is read
that another program may be changing meanwhile. In this order, the first that works:

1. as usual, with SQLite's locks and the shared memory beside its log (``-shm``);
2. with the log's index in this process's own memory, which is SQLite's own way where the shared
   memory cannot be written: with its locks, so others may write;
3. without locks (``immutable=1``), only where the log is empty and no journal is there. The files
   are looked at before and after: where one was changed meanwhile, StorageError (see
   :meth:`memory_store.sqlite.FileAccess.check_unchanged`);
4. a private copy of the file with its log or journal, in a temporary folder (mode 0700): SQLite
   brings the copy up to what was committed, as it would the file.

A journal that a killed program left is rolled back in the file itself wherever that can be written.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

from memory_store.errors import StorageError
from memory_store.sqlite import (
    FAILING,
    FULL,
    WRITABLE,
    FileAccess,
    FileStamps,
    connect,
    file_stamps,
    has_room,
    sqlite3,
)
from memory_store.vault.storage.server import is_on_server, on_server

APPLICATION_ID = 0x4D535631  # "MSV1", in the SQLite header: `file notes.db` shows it
APPLICATION_PLACE = 68  # of that number, in bytes
WRITE_VERSION = 18  # its place in an SQLite file's header; 2 there: a write-ahead log
WITHOUT_SHARING = "mode=ro&readonly_shm=1"
SETTLED_NS = 50_000_000
"""Age of a change that the next one cannot share its time with: clocks of files tick every 10 ms,
at the slowest kernel."""
IN_MEMORY = "/dev/shm"  # a folder in memory, on Linux
LASTING = ("locked", "malformed", "not a database", "could not decode")
"""What another way of opening does not mend."""


def file_access(path: Path, *, immutable: bool = False, nolock: bool = False) -> FileAccess:
    """How ``path`` can be opened: as the caller says, or as its file, folder and disk allow.

    ``immutable`` and ``nolock`` are what Datasette calls so: the file never changes, or its locks
    are ignored. Never changes a file that is no vault, and a vault's only by rolling back what was
    not committed. Raises StorageError where the newest state cannot be read without writing.
    """
    if is_on_server(path):
        found: FileAccess = on_server("server_access")(path)
        return found
    if immutable:
        return _immutable(path)
    usual = _unlocked(path) if nolock else _usual(path)
    if not path.is_file():
        return usual  # connecting says so
    try:
        mode = _tried(path, usual)
    except sqlite3.DatabaseError as error:
        if any(words in str(error) for words in LASTING):
            return usual
        return _without_writing(path, usual)
    before = _without_sharing.get(path.absolute())
    if before and not usual.read_only and not _can_be_written(path):
        return FileAccess(before, WITHOUT_SHARING)
    if mode != "wal" and not usual.read_only and not os.access(path.parent, os.W_OK):
        return FileAccess("its folder is read-only", "mode=ro")
    return usual


def _tried(path: Path, access: FileAccess) -> str:
    """The journal mode of a file that can be read that way. Raises ``sqlite3.DatabaseError``."""
    with closing(connect(path, read_only=True, access=access, patience=0)) as connection:
        connection.execute("select 1 from sqlite_master").fetchone()
        (mode,) = connection.execute("pragma journal_mode").fetchone()
    return str(mode)


def _can_be_read(path: Path, access: FileAccess) -> bool:
    try:
        _tried(path, access)
    except sqlite3.DatabaseError:
        return False
    return True


_without_sharing: dict[Path, str] = {}
"""Files that this process has read so, and why. While a connection that does is open, SQLite lets
no other one of the process write."""


def _can_be_written(path: Path) -> bool:
    try:
        with closing(connect(path, patience=0)) as connection:
            connection.execute("begin immediate")
            connection.execute("rollback")
    except sqlite3.OperationalError as error:
        return "readonly" not in str(error)
    return True


def _immutable(path: Path) -> FileAccess:
    """Never written to, the caller says. What its log or journal holds counts all the same."""
    reason = "it is served as immutable"
    seen = file_stamps(path)
    if seen[1:] == (None, None) or not path.is_file():
        return FileAccess(reason, "immutable=1")
    return _copied(path, seen, reason)


def _unlocked(path: Path) -> FileAccess:
    without = "&nolock=1" * (not _has_log(path))  # a log cannot be read without locks
    return FileAccess("locks are ignored (--nolock)", f"mode=ro{without}")


def _usual(path: Path) -> FileAccess:
    """Where the log was begun while the file was read-only, its files still are."""
    if not os.access(path, os.W_OK):
        return FileAccess(_cause(path), "mode=ro")
    for name in (f"{path.name}-shm", f"{path.name}-wal"):
        if os.path.exists(path.with_name(name)) and not os.access(path.with_name(name), os.W_OK):
            return FileAccess(f"{name} beside it is read-only", "mode=ro")
    return WRITABLE


def _without_writing(path: Path, usual: FileAccess) -> FileAccess:
    """How to read a file that cannot be read as usual; ``usual`` where no other way reads it."""
    reason = usual.read_only or _cause(path)
    if reason == FAILING and _can_be_read(path, usual):
        return usual  # it failed once
    if file_stamps(path)[2] is not None:  # a journal
        if not usual.read_only and _rolled_back(path):
            return usual
    else:
        shared = FileAccess(reason, WITHOUT_SHARING)
        if _can_be_read(path, shared):
            _without_sharing[path.absolute()] = reason
            return shared
    seen = _settled(path)
    if seen[1:] == (None, None):
        without_locks = FileAccess(reason, "immutable=1", seen=seen)
        return without_locks if _can_be_read(path, without_locks) else usual
    return _copied(path, seen, reason) if says_vault(path) else usual


def _cause(path: Path) -> str:
    """Why nothing can be written to a file."""
    if not os.access(path, os.W_OK):
        return "its disk is read-only" if _on_read_only_disk(path) else "its file is read-only"
    if not os.access(path.parent, os.W_OK):
        return "its folder is read-only"
    return FAILING if has_room(path) else FULL


def _on_read_only_disk(path: Path) -> bool:
    if not hasattr(os, "statvfs"):
        return False
    with suppress(OSError):  # the file is not there, or hidden: connecting says so
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    return False


def _rolled_back(path: Path) -> bool:
    """Undo what a killed program left half written, as SQLite does: of a vault alone."""
    if not os.access(path.parent, os.W_OK) or not says_vault(path):
        return False  # the journal could not be taken away afterwards
    try:
        with closing(connect(path)) as connection:
            connection.execute("select 1 from sqlite_master").fetchone()
    except sqlite3.DatabaseError:
        return False
    return True


def says_vault(path: Path) -> bool:
    """Whether its header says that it holds a vault. A file that is torn may say no more.

    Where no file can be looked at: no.
    """
    with suppress(OSError):
        if not path.is_file():
            return False
        with os.fdopen(_kept_open(path), "rb", closefd=False, buffering=0) as file, _looking:
            file.seek(APPLICATION_PLACE)
            return file.read(4) == APPLICATION_ID.to_bytes(4, "big")
    return False


_kept: dict[tuple[int, int], int] = {}
_looking = threading.Lock()


def _kept_open(path: Path) -> int:
    """A descriptor of a file, kept for as long as the program runs: one for each file.

    To close one would take away the locks that SQLite holds on the file in this process (POSIX).
    """
    with _looking:
        status = path.stat()
        place = (status.st_dev, status.st_ino)
        if place not in _kept:
            _kept[place] = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        return _kept[place]


def _settled(path: Path) -> FileStamps:
    """The files as they are, once a further change would show in their times."""
    while True:
        seen = file_stamps(path)
        newest = max((one.changed for one in seen if one is not None), default=0)
        if abs(time.time_ns() - newest) > SETTLED_NS:
            return seen
        time.sleep(SETTLED_NS / 1e9)


_copies: dict[tuple[Path, FileStamps], Path] = {}
_copying = threading.Lock()


def _copied(path: Path, seen: FileStamps, reason: str) -> FileAccess:
    """A private copy of the file, its log and its journal, brought up to what was committed."""
    path = path.absolute()
    with _copying:
        copy = _copies.get((path, seen))
        if copy is None:
            copy = _fresh_copy(path, seen)
            for outdated in [known for known in _copies if known[0] == path]:
                _remove(_copies.pop(outdated).parent)
            _copies[path, seen] = copy
    return FileAccess(reason, "mode=ro", place=str(copy), seen=seen)


def _fresh_copy(path: Path, seen: FileStamps) -> Path:
    import tempfile  # late, as shutil is: few files are copied, and both take milliseconds

    for place in (None, IN_MEMORY):  # the system's folder for temporary files first
        with suppress(OSError, sqlite3.DatabaseError):  # no room there either: the next place
            folder = Path(tempfile.mkdtemp(prefix="memory-store-", dir=place))
            atexit.register(_remove, folder)
            try:
                return _copy_all(path, seen, folder)
            except BaseException:
                _remove(folder)
                raise
    last = "-wal" if seen[1] is not None else "-journal"
    raise StorageError(
        f"{path.name}: what was written last is in {path.name}{last}, which cannot be read without "
        f"room to write. Make room, or copy both files to a disk with room and open the copy"
    )


def _copy_all(path: Path, seen: FileStamps, folder: Path) -> Path:
    copy = folder / path.name
    for name in (path.name, f"{path.name}-wal", f"{path.name}-journal"):
        _copy(path.with_name(name), folder / name)
    if file_stamps(path) != seen:
        raise StorageError(f"{path.name}: another program is writing to it; try again")
    with closing(connect(copy)) as connection:
        connection.execute("select 1 from sqlite_master").fetchone()
    return copy


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    import shutil

    if not source.exists():
        return
    descriptor = _kept_open(source)
    with _looking, os.fdopen(descriptor, "rb", closefd=False) as file, target.open("wb") as copy:
        os.chmod(target, 0o600)
        file.seek(0)
        shutil.copyfileobj(file, copy)


def _has_log(path: Path) -> bool:
    """Whether the file is written through a log. Only for files without locks of this process:
    closing a file takes away all that the process has."""
    try:
        with path.open("rb") as file:
            return file.read(WRITE_VERSION + 1)[WRITE_VERSION:] == b"\x02"
    except OSError:
        return False  # connecting says so
