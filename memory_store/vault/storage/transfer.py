"""A vault copied to another place, row by row as it is sealed: between files and databases.

Boundary: no key; sealed rows pass, byte for byte. The copy stands under another name until every
row of it was read back and is equal, the accounts (manifests) among them. Stopped anywhere, it goes
on where it was: rows that the vault has no more are taken out, and those that it has are put in.
In the same way a copy follows a vault that is written to, until it is to take its place.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from hashlib import sha256
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from msgspec import Struct, field, msgpack
from msgspec.structs import replace

from memory_store.addresses import Address
from memory_store.errors import AwayError, BadInputError, FormatError, StorageError
from memory_store.vault.storage.file_access import file_access
from memory_store.vault.storage.schema import (
    FIRST_TABLES,
    FORMAT_VERSION,
    LATER_TABLES,
    blobs_of,
    check_is_vault,
    columns_of,
    key_of,
    order_of,
)
from memory_store.vault.storage.segment_cache import MARK_BYTES
from memory_store.vault.storage.sqlite import Storage
from memory_store.vault.storage.table import parts

Progress = Callable[[str, int, int | None], None]
Key = tuple[Any, ...]
Digests = dict[Key, bytes]
UNFINISHED = "copying"  # behind the name of a copy that is not whole
ROWS = 1_000  # in a transaction
LARGE = {"vault_segments": 4, "vault_segment_parts": 16, "vault_trash": 200, "memory_bodies": 250}
"""Of rows that hold many megabytes, or texts, fewer."""
MARKS = 10_000  # rows that are looked at together, as far as they say which ones they are
IN_PLACE = "vault_segments"  # its rows keep their order: the later of two counts
TABLES = (*FIRST_TABLES, *LATER_TABLES)
POLL_SECONDS = 0.2
AWAY_PAUSES = (0.2, 1.0, 5.0, 15.0)  # seconds between tries to reach a database that is away


class Copied(Struct, frozen=True):
    """What a copy holds: rows by table, and how many of them were there from an earlier try.

    It is complete up to ``commit``: the commit counter of a database; for a file, how often its
    collections were written. ``behind``: something was committed since.
    """

    rows: dict[str, int]
    resumed: int
    commit: int
    behind: bool

    @property
    def total(self) -> int:
        return sum(self.rows.values())


class Follow(Struct, frozen=True):
    """Go on copying what is committed, until ``stop`` is set, or for ``idle`` seconds nothing was.

    ``told`` gets the commit that the copy is at, and how many rows were written for it. ``away``
    gets why a database cannot be reached, at each try: it waits for it.
    """

    told: Callable[[int, int], None]
    away: Callable[[str], None] = lambda why: None
    idle: float | None = None
    stop: threading.Event = field(default_factory=threading.Event)


def copy_vault(
    source: Path, target: Path, progress: Progress | None = None, follow: Follow | None = None
) -> Copied:
    """Copy the vault at ``source`` to ``target``, where none is.

    Raises NotAVaultError, FormatError, BadInputError (there is a vault already), StorageError.
    """
    check_is_vault(source)
    _refuse_existing(target)
    access = file_access(source)
    if follow and access.seen is not None:
        raise BadInputError(f"{source} cannot be followed: {access.read_only}", "--follow")
    unfinished = _unfinished(target)
    with closing(Storage.open(source, read_only=True, access=access)) as storage:
        with storage.reading() as moment:
            if moment.format() != FORMAT_VERSION:
                raise FormatError(f"{source}: of an earlier format; open it once to add a memory")
        with closing(_begun(unfinished)) as there, access.unchanged(source):
            filling = _Filling(there, progress or (lambda name, done, total: None))
            copied = _followed(storage, filling, follow) if follow else _whole(storage, filling)
            there.keep_log()
            there.take_name(target)
    if not isinstance(target, Address):
        _link(unfinished, target)
    return copied


def _followed(storage: Storage, filling: _Filling, follow: Follow) -> Copied:
    """Follow the vault to the end, and wait where a database is away meanwhile."""
    pauses = iter(AWAY_PAUSES)

    def told(commit: int, rows: int) -> None:
        nonlocal pauses
        pauses = iter(AWAY_PAUSES)
        follow.told(commit, rows)

    while True:
        try:
            _follow(storage, filling, replace(follow, told=told))
            copied = _whole(storage, filling)
        except AwayError as error:
            filling.forget()
            follow.away(str(error))
            time.sleep(next(pauses, AWAY_PAUSES[-1]))
        else:
            if not copied.behind or follow.idle is None or follow.stop.is_set():
                return copied


def _follow(storage: Storage, filling: _Filling, follow: Follow) -> None:
    """Bring the copy up to what is committed, again and again, until it is to end."""
    seen, quiet_since, took = -1, time.monotonic(), 0.0
    while not follow.stop.is_set():
        revision, began = storage.revision(), time.monotonic()
        if revision != seen:
            with storage.reading() as moment:
                written = filling.bring_up(moment)
                commit = _commit(moment)
            follow.told(commit, written)
            seen, quiet_since = revision, time.monotonic()
            took = quiet_since - began
        elif follow.idle is not None and began - quiet_since >= follow.idle:
            return
        follow.stop.wait(max(POLL_SECONDS, took))  # at most half of the time


def _whole(storage: Storage, filling: _Filling) -> Copied:
    """Bring the copy up to one moment of the vault, and hold every row against it."""
    revision = storage.revision()
    with storage.reading() as moment:
        filling.bring_up(moment)
        rows = {table: filling.compare(moment, table) for table in TABLES}
        commit = _commit(moment)
    return Copied(rows, filling.resumed, commit, behind=storage.revision() != revision)


def _commit(storage: Storage) -> int:
    return storage.revision() if storage.counted else sum(storage.accounts.counters().values())


def _refuse_existing(target: Path) -> None:
    if isinstance(target, Address):
        with closing(Storage.open(target, read_only=True)) as storage:
            there = storage.exists
    else:
        if not target.parent.is_dir():
            raise BadInputError(f"the folder {target.parent} does not exist", "target")
        there = target.exists()
    if there:
        whole = "a copy has its name once it is whole"  # it may be that of a run killed at its end
        raise BadInputError(f"{target} exists already ({whole}); nothing is overwritten", "target")


def _unfinished(target: Path) -> Path:
    if isinstance(target, Address):
        return target.of_vault(f"{target.vault}.{UNFINISHED}")
    return target.with_name(f"{target.name}.{UNFINISHED}")


def _begun(unfinished: Path) -> Storage:
    """The copy that is to be filled: one that was begun before, or an empty one."""
    if not isinstance(unfinished, Address) and not unfinished.exists():
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    storage = Storage.open(unfinished)
    try:
        if not storage.begin_file():
            storage.create_tables()
            storage.create_later_tables()
    except BaseException:
        storage.close()
        raise
    return storage


class _Filling:
    """A copy that is being filled, and what is known to stand in it."""

    def __init__(self, there: Storage, told: Progress) -> None:
        self._there, self._told = there, told
        self._held: dict[str, Digests] = {}
        self.resumed = 0
        """Rows that stood there from an earlier try, and still hold."""
        self._earlier = True  # whether what stands there is of an earlier try

    def bring_up(self, source: Storage) -> int:
        """Write what is missing and take away what is gone. Returns how many rows were written."""
        written = sum(self._bring_up(source, table) for table in TABLES)
        self._earlier = False
        return written

    def forget(self) -> None:
        """Look anew at what stands in the copy: what was just written may be there or not."""
        self._held, self._earlier = {}, False

    def _bring_up(self, source: Storage, table: str) -> int:
        held = self._held.pop(table, None) or _marks(self._there, table)
        if not held:
            return self._fill(source, table)
        found: Digests = {}
        places = []
        for place, key, mark in _marked(source, table):
            found[key] = mark
            if held.get(key) != mark:
                places.append(place)
        stale = [key for key, mark in held.items() if found.get(key) != mark]
        if self._earlier:
            self.resumed += len(held) - len(stale)
        again = set(stale) & found.keys() if table == IN_PLACE else ()
        self._delete(table, [key for key in stale if key not in again])
        for some in parts(places, LARGE.get(table, ROWS)):
            self._write(table, _rows_at(source, table, some), again)
            self._told(table, len(some), None)
        self._held[table] = found
        return len(places) + len(stale)

    def _fill(self, source: Storage, table: str) -> int:
        """Write all rows of a table that is empty."""
        written = 0
        for part in _rows(source, table):
            self._write(table, part)
            written += len(part)
            self._told(table, written, None)
        return written

    def _write(self, table: str, rows: Sequence[Key], again: Collection[Key] = ()) -> None:
        """Insert rows; those of ``again`` in their places."""
        columns, engine = columns_of(table), self._there.engine
        old = [row for row in rows if again and _key(table, row) in again]
        new = [row for row in rows if row not in old] if old else rows
        with self._there.transaction():
            if new:
                engine.insert(f"into {table} ({', '.join(columns)})", new)
            if old:
                said = ", ".join(f"{name} = ?" for name in columns)
                engine.executemany(
                    f"update {table} set {said} where {_named(table)}",
                    [(*row, *_key(table, row)) for row in old],
                )

    def _delete(self, table: str, keys: Sequence[Key]) -> None:
        for some in parts(keys, ROWS):
            with self._there.transaction():
                self._there.engine.executemany(f"delete from {table} where {_named(table)}", some)

    def compare(self, source: Storage, table: str) -> int:
        """How many rows a table has in both. Raises StorageError unless they are equal; then the
        copy has none left of that table, so that the next try writes them anew."""
        rows, same = 0, True
        for part, copied in zip_longest(_rows(source, table), _rows(self._there, table)):
            same = part == copied
            if not same:  # or in another order, after it followed changes
                break
            rows += len(part)
            self._told(f"compared {table}", rows, None)
        if same:
            return rows
        wanted = _digests(source, table)
        if wanted == _digests(self._there, table):
            return len(wanted)
        with self._there.transaction():
            self._there.engine.execute(f"delete from {table}")
        raise StorageError(f"the copy's rows of {table} are not those of the vault; copy it again")


def _parts(
    storage: Storage, table: str, columns: Sequence[str], most: int
) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a table in their order, each behind its place, so many at a time."""
    if not storage.engine.has(table):
        return
    place, order = -1, order_of(table)
    query = (
        f"select {order}, {', '.join(columns)} from {table} "
        f"where {order} > ? order by {order} limit ?"
    )
    while found := storage.engine.execute(query, (place, most)).fetchall():
        place = found[-1][0]
        yield [tuple(row) for row in found]


def _rows_at(storage: Storage, table: str, places: Sequence[int]) -> list[tuple[Any, ...]]:
    order, listed = order_of(table), ", ".join(str(int(place)) for place in places)
    query = f"select {', '.join(columns_of(table))} from {table} where {order} in ({listed})"
    return [tuple(row) for row in storage.engine.execute(f"{query} order by {order}").fetchall()]


def _marked(storage: Storage, table: str) -> Iterator[tuple[int, Key, bytes]]:
    """Each row's place, key, and what says whether it is still the same: it is sealed anew with
    another nonce, so the beginning and the length of a sealed value are enough."""
    blobs = _sealed(table)
    columns = [
        *(f"substr({one}, 1, {MARK_BYTES})" if one in blobs else one for one in columns_of(table)),
        *(f"length({one})" for one in blobs),
    ]
    for part in _parts(storage, table, columns, MARKS):
        for place, *row in part:
            yield place, _key(table, row), _digest(row)


def _marks(storage: Storage, table: str) -> Digests:
    return {key: mark for _, key, mark in _marked(storage, table)}


def _rows(storage: Storage, table: str) -> Iterator[list[Key]]:
    for part in _parts(storage, table, columns_of(table), LARGE.get(table, ROWS)):
        yield [row[1:] for row in part]


def _digests(storage: Storage, table: str) -> Digests:
    rows = chain.from_iterable(_rows(storage, table))
    return {_key(table, row): _digest(row) for row in rows}


def _sealed(table: str) -> list[str]:
    return [one for one in blobs_of(table) if one not in key_of(table)]


def _key(table: str, row: Sequence[Any]) -> Key:
    names = columns_of(table)
    return tuple(row[names.index(one)] for one in key_of(table))


def _named(table: str) -> str:
    return " and ".join(f"{one} = ?" for one in key_of(table))


def _digest(row: Sequence[Any]) -> bytes:
    return sha256(msgpack.encode(row)).digest()


def _link(unfinished: Path, target: Path) -> None:
    """Give a finished file its name. A link, unlike a rename, never replaces another."""
    try:
        os.link(unfinished, target)
    except FileExistsError:
        raise BadInputError(
            f"{target} was made meanwhile; nothing was replaced", "target"
        ) from None
    except OSError:  # a file system without hard links
        unfinished.rename(target)
    else:
        unfinished.unlink()
