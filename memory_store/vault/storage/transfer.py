"""A vault copied to another place, row by row as it is sealed: between files and databases.

Boundary: no key; sealed rows pass, byte for byte. The copy stands under another name until every
row of it was read back and is equal. Stopped anywhere, it goes on where it was, unless the vault
was written to since: then it begins anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct

from memory_store.addresses import Address
from memory_store.errors import BadInputError, FormatError, StorageError
from memory_store.vault.storage.file_access import file_access
from memory_store.vault.storage.schema import (
    FIRST_TABLES,
    FORMAT_VERSION,
    LATER_TABLES,
    check_is_vault,
    columns_of,
    order_of,
)
from memory_store.vault.storage.sqlite import Storage

Progress = Callable[[str, int, int | None], None]
UNFINISHED = "copying"  # behind the name of a copy that is not whole
MARK = "copied-from"  # a setting of such a copy: the state of the vault that it is of
ROWS = 1_000  # in a transaction
LARGE = {"vault_segments": 4, "vault_segment_parts": 16, "vault_trash": 200}
"""Of rows that hold many megabytes, or texts, fewer."""
TABLES = (*FIRST_TABLES, *LATER_TABLES)
ALWAYS_ANEW = ("vault_settings", "vault_slots", "vault_audit", "vault_expansions")
"""Tables that change without an account, and are small: not gone on with, but written whole."""
GROWING = tuple(table for table in TABLES if table not in ALWAYS_ANEW)


class Copied(Struct, frozen=True):
    """What a copy holds: rows by table, and how many of them were there from an earlier try."""

    rows: dict[str, int]
    resumed: int

    @property
    def total(self) -> int:
        return sum(self.rows.values())


def copy_vault(source: Path, target: Path, progress: Progress | None = None) -> Copied:
    """Copy the vault at ``source`` to ``target``, where none is.

    Raises NotAVaultError, FormatError, BadInputError (there is a vault already), StorageError.
    """
    check_is_vault(source)
    _refuse_existing(target)
    told = progress or (lambda name, done, total: None)
    access = file_access(source)
    with (
        closing(Storage.open(source, read_only=True, access=access)) as storage,
        storage.reading() as from_here,
        access.unchanged(source),
    ):
        if from_here.format() != FORMAT_VERSION:
            raise FormatError(f"{source}: of an earlier format; open it once to add a memory")
        unfinished = _unfinished(target)
        with closing(_begun(unfinished)) as there:
            resumed = _filled(from_here, there, told)
            rows = {table: _compared(from_here, there, table, told) for table in TABLES}
            with there.transaction():
                there.settings.delete(MARK)
            there.keep_log()
            there.take_name(target)
    if not isinstance(target, Address):
        _link(unfinished, target)
    return Copied(rows, resumed)


def _refuse_existing(target: Path) -> None:
    if isinstance(target, Address):
        with closing(Storage.open(target, read_only=True)) as storage:
            there = storage.exists
    else:
        if not target.parent.is_dir():
            raise BadInputError(f"the folder {target.parent} does not exist", "target")
        there = target.exists()
    if there:
        raise BadInputError(f"{target} exists already; a copy never overwrites", "target")


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


def _filled(source: Storage, there: Storage, told: Progress) -> int:
    """Write what is missing of a copy. Returns how many rows were there already."""
    state, resumed = _state(source), 0
    if there.settings.clear(MARK) != state:
        with there.transaction():
            for table in TABLES:
                there.engine.execute(f"delete from {table}")
            there.settings.write_clear({MARK: state})
    for table in GROWING:
        found = count(there, table)
        resumed += found
        for part in _parts(source, table, found):
            with there.transaction():
                _write(there, table, part)
            found += len(part)
            told(table, found, None)
    with there.transaction():
        for table in ALWAYS_ANEW:
            there.engine.execute(f"delete from {table}")
            for part in _parts(source, table, 0):
                _write(there, table, part)
        there.settings.write_clear({MARK: state})
    return resumed


def _write(there: Storage, table: str, rows: Sequence[Sequence[Any]]) -> None:
    there.engine.insert(f"into {table} ({', '.join(columns_of(table))})", rows)


def count(storage: Storage, table: str) -> int:
    """How many rows a table has."""
    if not storage.engine.has(table):
        return 0
    return int(storage.engine.execute(f"select count(*) from {table}").fetchone()[0])


def _parts(storage: Storage, table: str, skipped: int) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a table in their order, so many at a time, behind so many."""
    if not storage.engine.has(table):
        return
    columns, most, place = ", ".join(columns_of(table)), LARGE.get(table, ROWS), -1
    key = order_of(table)
    if skipped:
        query = f"select {key} from {table} order by {key} limit 1 offset ?"
        last = storage.engine.execute(query, (skipped - 1,)).fetchone()
        if last is None:
            return
        place = last[0]
    query = f"select {key}, {columns} from {table} where {key} > ? order by {key} limit ?"
    while found := storage.engine.execute(query, (place, most)).fetchall():
        place = found[-1][0]
        yield [tuple(row[1:]) for row in found]


def _state(source: Storage) -> str:
    """What names one state of a vault: its accounts, which every write seals anew."""
    digest = sha256()
    query = "select collection, counter, sealed from vault_manifests order by collection"
    for row in source.engine.execute(query).fetchall():
        digest.update(repr(tuple(row)).encode())
    digest.update(repr([count(source, table) for table in GROWING]).encode())
    digest.update(repr((source.settings.clear("vault"), source.settings.revision())).encode())
    return digest.hexdigest()


def _compared(source: Storage, there: Storage, table: str, told: Progress) -> int:
    """How many rows a table has in both. Raises StorageError unless they are equal."""
    rows = 0
    theirs = _rows(there, table)
    for part in _parts(source, table, 0):
        rows += len(part)
        if any(next(theirs, None) != row for row in part):
            raise _differs(table)
        told(f"compared {table}", rows, None)
    if next(theirs, None) is not None:
        raise _differs(table)
    return rows


def _rows(storage: Storage, table: str) -> Iterator[tuple[Any, ...]]:
    for part in _parts(storage, table, 0):
        for row in part:
            if table != "vault_settings" or row[0] != MARK:
                yield row


def _differs(table: str) -> StorageError:
    return StorageError(f"the copy's rows of {table} are not those of the vault; copy it again")


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
