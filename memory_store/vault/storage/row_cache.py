"""Sealed rows of memories in vaults on servers, kept on this machine: a server is not asked again
for what was read, so it does not see which of them a search opens.

Boundary: no keys; rows as they stand in the database, sealed, in one file that its owner alone
reads. Each lies under the keyed tag by which the index knows it: what was written since has another
one. What the file says is not believed: who opens a row finds it sealed for its place and held
against the index, as one that comes from the server is, and asks the server where it is not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from memory_store.configuration import chosen
from memory_store.errors import BadInputError
from memory_store.paths import MIRROR_VARIABLE, cache_folder
from memory_store.sqlite import connect, sqlite3
from memory_store.vault.storage.table import LISTED, listed, parts

MOST_BYTES = 1 << 30
MOST_DAYS = 30  # that a row is kept which nothing reads
FEWER = 8  # one row in so many is let go, the longest unread, where they are too many
PATIENCE = 0.5  # seconds that one waits for another program that writes to the file
EVERYTHING = "all"
_DAY = 86_400
T = TypeVar("T")
_TABLES = (
    "create table if not exists kept "
    "(vault text, memory text, tag blob, day integer, held blob, primary key (vault, memory))",
    "create index if not exists kept_days on kept (day)",
)
_USED = """
    select (page_count - freelist_count) * page_size
    from pragma_page_count, pragma_freelist_count, pragma_page_size
"""


def mirrored() -> bool:
    """Whether all memories are to be kept here, not only those that were read."""
    said = chosen(MIRROR_VARIABLE)
    if said not in (None, EVERYTHING):
        raise BadInputError(f"mirror: {said!r}: it can be {EVERYTHING}", "mirror")
    return said is not None


class RowCache:
    """The rows that are kept: of all vaults in one file, of one that is mirrored in its own.

    Where the file is busy, full or damaged nothing is kept, and the server is asked. One that is
    damaged is taken away.
    """

    def __init__(self, vault: str, *, mirror: bool = False, most: int = MOST_BYTES) -> None:
        """``vault``: its id in the database. ``most``: bytes of a file that is no mirror. Raises
        BadInputError where the cache's folder cannot be trusted."""
        self._vault, self._mirror, self._most = vault, mirror, most
        self._opened: sqlite3.Connection | None = None
        self.file = cache_folder() / "memories" / (f"{vault}.db" if mirror else "read.db")

    def read(self, wanted: Mapping[str, bytes]) -> list[bytes]:
        """What is kept of memories under their tags."""

        def held(file: sqlite3.Connection) -> list[bytes]:
            query = f"select memory, tag, day, held from kept where vault = ? and memory {LISTED}"
            rows = file.execute(query, (self._vault, listed(wanted))).fetchall()
            good = [row for row in rows if wanted[row[0]] == row[1]]
            today = _today()
            if not self._mirror and any(day != today for _, _, day, _ in good):
                marked = f"update kept set day = ? where vault = ? and memory {LISTED}"
                file.execute(marked, (today, self._vault, listed(row[0] for row in good)))
            return [row[-1] for row in good]

        return self._tried(held) or []

    def lacking(self, wanted: Mapping[str, bytes], keys: int) -> list[str]:
        """Of all memories those of which nothing is kept under their tags; what is kept of others
        is let go, and all that was kept with other ``keys``: a tag stays when they are replaced.
        """

        def there(file: sqlite3.Connection) -> dict[str, bytes]:
            if file.execute("pragma user_version").fetchone() != (keys,):
                file.execute("delete from kept")
                file.execute(f"pragma user_version = {keys:d}")
            query = "select memory, tag from kept where vault = ?"
            return dict(file.execute(query, (self._vault,)).fetchall())

        held = self._tried(there) or {}
        self.drop([one for one in held if one not in wanted])
        return [memory for memory, tag in wanted.items() if held.get(memory) != tag]

    def write(self, rows: Iterable[tuple[str, bytes, bytes]]) -> None:
        """Keep (memory, tag, row), each instead of an earlier one."""
        today = _today()
        given = [(self._vault, memory, tag, today, held) for memory, tag, held in rows]

        def keep(file: sqlite3.Connection) -> None:
            file.execute("begin immediate")
            file.executemany("insert or replace into kept values (?, ?, ?, ?, ?)", given)
            if not self._mirror:
                self._make_room(file)
            file.execute("commit")

        if given:
            self._tried(keep)

    def drop(self, memories: Sequence[str]) -> None:
        """Let go of what is kept of some memories."""

        def forget(file: sqlite3.Connection) -> None:
            for some in parts(memories):
                query = f"delete from kept where vault = ? and memory {LISTED}"
                file.execute(query, (self._vault, listed(some)))

        if memories and self.file.exists():
            self._tried(forget)

    def close(self) -> None:
        """Close the file. It may be closed already."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _make_room(self, file: sqlite3.Connection) -> None:
        """Let go of the longest unread where there is too much."""
        (used,) = file.execute(_USED).fetchone()
        if used > self._most:
            (count,) = file.execute("select count(*) from kept").fetchone()
            oldest = "select rowid from kept order by day, rowid limit ?"
            few = (count // FEWER + 1,)
            file.execute(f"delete from kept where rowid in ({oldest})", few)

    def _tried(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        try:
            if self._opened is None:
                self._opened = self._open()
            return work(self._opened)
        except (OSError, sqlite3.OperationalError):
            self.close()
        except sqlite3.DatabaseError:
            self.close()
            self.file.unlink(missing_ok=True)
        return None

    def _open(self) -> sqlite3.Connection:
        self.file.parent.mkdir(mode=0o700, exist_ok=True)
        os.close(os.open(self.file, os.O_CREAT | os.O_RDWR, 0o600))
        file = connect(self.file, patience=PATIENCE)
        try:
            file.execute("pragma synchronous = off")  # it can be had again
            file.execute("pragma journal_mode = wal")
            for statement in _TABLES:
                file.execute(statement)
            if not self._mirror:
                file.execute("delete from kept where day < ?", (_today() - MOST_DAYS,))
        except BaseException:
            file.close()
            raise
        return file


def _today() -> int:
    return int(time.time() // _DAY)
