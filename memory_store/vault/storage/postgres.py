"""A vault's storage in a PostgreSQL database: one connection, its transactions, and its tables.

Boundary: no keys; what passes is sealed, hashed or stands in clear by design. The server sees which
rows are read, and when.

A transaction that writes begins by counting up in the row of the vault. So there is one writer at a
time, and what a reader finds there names one state of the vault: the counter has no gaps.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import DecodeError, msgpack

from memory_store.addresses import Address
from memory_store.errors import BadInputError, FormatError, NotAVaultError, StorageError
from memory_store.sqlite import BUSY_SECONDS, STANDBY, WRITABLE, FileAccess
from memory_store.vault.storage.collections import number
from memory_store.vault.storage.damage import NULLABLE
from memory_store.vault.storage.keys import CELLS, Slots
from memory_store.vault.storage.memories import Body, Memories, MemoryRow
from memory_store.vault.storage.postgres_engine import PostgresEngine
from memory_store.vault.storage.postgres_link import (
    Greeting,
    Link,
    ServerAwayError,
    ServerError,
    UndefinedTable,
)
from memory_store.vault.storage.postgres_schema import BASE, COLUMNS, schema_statements
from memory_store.vault.storage.row_cache import RowCache, mirrored
from memory_store.vault.storage.schema import FORMAT_VERSION
from memory_store.vault.storage.segment_cache import MARK_BYTES, SegmentCache, segment_cache
from memory_store.vault.storage.segments import PARTS, Segments
from memory_store.vault.storage.sqlite import CatchesUp, Storage
from memory_store.vault.storage.table import LISTED, listed, parts

_READ_ONE_MOMENT = "begin isolation level repeatable read, read only"
_WRITE = "update vault_head set revision = revision + 1 returning revision"
_REVISIONS = """
    select revision, (select value from vault_settings where name = 'settings') from vault_head
"""
_GREETING = f"""
    select set_config('memory_store.vault', coalesce(
        (select vault::text from {BASE}.vaults where name = %s), ''), false),
        (select format from {BASE}.vaults where name = %s), pg_is_in_recovery(),
        case when current_setting('synchronous_commit') in ('off', 'local')
        then set_config('synchronous_commit', 'on', false) end
"""
"""Whose rows the session is about; and what was committed survives, however the server is set."""
_STILL = f"select vault::text, format, pg_is_in_recovery() from {BASE}.vaults where name = %s"
_ONE_MAKER = "select pg_advisory_xact_lock(hashtext('memory_store'))"  # of tables, at a time
_DATABASE = """
    select oid, has_function_privilege('pg_control_system()', 'execute') from pg_database
    where datname = current_database()
"""
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
BEHIND_SECONDS = 2.0  # that a standby may take until it has what was read before
LOOK_AGAIN = 0.05  # seconds
AT_ONCE = 250  # memories that are fetched together for a mirror
_newest: dict[str, int] = {}
"""The newest revision that this process read or wrote of each vault, by its id in the database."""


class _Vault(Greeting):
    """The vault that a session is about: its format (None: there is no such vault), and whether its
    server is a standby."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.format: int | None = None
        self.standby = False

    def say(self, connection: Any) -> str:
        self.format, about = None, ""
        with suppress(UndefinedTable):
            found = connection.execute(_GREETING, (self.name, self.name)).fetchone()
            about, self.format, self.standby, _ = found
        if about != "" and not (isinstance(about, str) and _ID.fullmatch(about)):
            connection.close()  # the id names a file of what is kept here
            raise StorageError(f"{self.name!r}: the database gives this vault an id that is none")
        return about

    def holds(self, connection: Any, about: str) -> Callable[[], bool]:
        asked = connection.execute(_STILL, (self.name,))

        def read() -> bool:
            there, self.format, self.standby = asked.fetchone() or ("", None, False)
            return bool(there == about)

        return read


class PostgresStorage(Storage):
    """One connection to a vault's database. Calls raise ServerError, StorageError."""

    counted = True

    def __init__(self, address: Address, *, read_only: bool, patience: float) -> None:
        """``patience``: seconds that it waits for another writer."""
        self._vault = _Vault(address.vault)
        self._link = Link(address, read_only=read_only, patience=patience, greeting=self._vault)
        engine = PostgresEngine(self._link)
        self._use(engine)
        self.memories = self._rows = _Memories(engine, self._link)
        self.slots = _Slots(engine)
        self.segments = _Segments(engine)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        read_only: bool = False,
        access: FileAccess = WRITABLE,
        patience: float = BUSY_SECONDS,
    ) -> PostgresStorage:
        """Connect to an address, when it is first used."""
        assert isinstance(path, Address)
        return cls(path, read_only=read_only or bool(access.read_only), patience=patience)

    def format_found(self) -> int | None:
        """The vault's format when the connection was made; None where there was no vault."""
        self._link.run(lambda connection: None)
        return self._vault.format

    @property
    def access(self) -> FileAccess:
        """How it can be opened, as was found when the connection was made: a standby is read."""
        return FileAccess(STANDBY) if self._vault.standby else WRITABLE

    @property
    def standby(self) -> bool:  # type: ignore[override]
        return self._vault.standby

    @property
    def exists(self) -> bool:
        return self.format_found() is not None

    def close(self) -> None:
        self.end_reading()
        self._link.close()
        self._rows.close()

    # -- transactions --------------------------------------------------------------------------

    @property
    def in_transaction(self) -> bool:
        return self._link.in_transaction

    @contextmanager
    def transaction(self, keys: CatchesUp | None = None) -> Iterator[None]:
        self._link.begin("begin", _WRITE, writes=True)
        try:
            if keys is not None:
                keys.catch_up(self)
            else:
                self._link.run(lambda connection: None)  # or nothing would be begun yet
            yield
            self._link.commit()
            self._note(self._link.began_with[0])
        except BaseException:
            self.end_reading()
            raise

    @contextmanager
    def reading(self) -> Iterator[Storage]:
        if self.in_transaction:
            yield self
            return
        self._link.begin(_READ_ONE_MOMENT)
        try:
            yield self
        finally:
            self.end_reading()

    def begin_reading(self) -> int:
        self._link.begin(_READ_ONE_MOMENT)
        try:
            return self.revisions()[0]
        except BaseException:
            self.end_reading()
            raise

    def end_reading(self) -> None:
        if self.in_transaction:
            self._link.roll_back()

    def revision(self) -> int:
        return self.revisions()[0]

    def revisions(self) -> tuple[int, int]:
        """In a transaction that reads it is what is first asked: where a standby lacks what this
        process read or wrote, another moment is begun once it has that. Whatever else counts less
        than before is judged by the accounts of the collections. Raises ServerAwayError."""
        until = time.monotonic() + BEHIND_SECONDS
        while True:
            counted, said = self._ask(_REVISIONS)
            known = _newest.get(self._link.about, 0)
            if counted >= known or not self._ask("select pg_is_in_recovery()")[0]:
                self._note(counted)
                return int(counted), number(said) or 0
            if time.monotonic() > until:
                raise ServerAwayError(
                    f"{self._link.address}: the database is away (a standby answers, which is "
                    "behind what was read before)"
                )
            begun = self.in_transaction
            self.end_reading()
            time.sleep(LOOK_AGAIN)
            if begun:
                self._link.begin(_READ_ONE_MOMENT)

    def _note(self, counted: int) -> None:
        if about := self._link.about:  # empty while a vault is being made
            _newest[about] = max(counted, _newest.get(about, 0))

    # -- the database --------------------------------------------------------------------------

    def keep_log(self) -> None:
        """PostgreSQL always does."""

    def give_back(self) -> None:
        """The server's own housekeeping does it."""

    def erase_traces(self) -> bool:
        """Dead rows and the server's log keep what was deleted until it cleans up: sealed, and
        for good only where its key is destroyed too. Returns whether nothing is left: never."""
        return False

    def format(self) -> int:
        return int(self._ask("select format from vault_head")[0])

    def damage(self, *, thorough: bool = False) -> str | None:
        """The server checks its own files; of a vault each column says what it holds."""
        return None

    def quick_check(self) -> str:
        return "ok"

    def copy_to(self, target: Path) -> None:
        raise StorageError(
            f"{self._link.address}: memory-store copy writes a vault on a server to a file"
        )

    def size(self, path: Path) -> int:
        """How much room the vault's rows take, without indexes and what is dead."""
        sizes = (f"(select coalesce(sum(pg_column_size(t)), 0) from {t} t)" for t in COLUMNS)
        return int(self._ask(f"select {' + '.join(sizes)}")[0])

    def place(self) -> str:
        """The vault in its database, whatever that is called by whom. A database that was restored
        elsewhere is another; where a role may not tell them apart, the address has to do."""
        database, may = self._ask(_DATABASE)
        if not may:
            return ""
        (server,) = self._ask("select system_identifier from pg_control_system()")
        return f"{server} {database} {self._link.about}"

    def take_name(self, target: Path) -> None:
        assert isinstance(target, Address)
        named = "update vault_head set name = %s"
        self._link.run(lambda one: one.execute(named, (target.vault,)))

    # -- making --------------------------------------------------------------------------------

    def begin_file(self) -> bool:
        return self.exists

    def create_tables(self) -> None:
        """Make the tables, where they are not there and the role may; and a new vault in them."""

        def make(connection: Any) -> None:
            with connection.transaction():
                connection.execute(_ONE_MAKER)
                known = connection.execute(f"select to_regclass('{BASE}.vaults')").fetchone()
                for statement in () if known[0] else schema_statements():
                    connection.execute(statement)
                connection.execute(
                    f"insert into {BASE}.vaults (name, format) values (%s, %s)",
                    (self._link.address.vault, FORMAT_VERSION),
                )

        self.format_found()
        self._link.run(make)
        self._link.run(self._vault.say)

    def create_later_tables(self) -> None:
        """They are there."""

    def note_format(self) -> None:
        self._use_format(FORMAT_VERSION)

    def _use_format(self, number: int) -> None:
        self._link.run(lambda one: one.execute("update vault_head set format = %s", (number,)))

    def _ask(self, statement: str) -> Sequence[Any]:
        row: Sequence[Any] | None = self._link.answer(lambda one: one.execute(statement)).fetchone()
        if row is None:
            raise StorageError(f"{self._link.address}: the vault is gone from the database")
        return row


@cache
def _beside() -> ThreadPoolExecutor:
    """Writes what is kept; one file has one writer."""
    return ThreadPoolExecutor(1, "hybrid-kept")


class _Memories(Memories):
    """Memories, of which this machine keeps what was read, or all."""

    keeps = True

    def __init__(self, engine: PostgresEngine, link: Link) -> None:
        super().__init__(engine)
        self._link = link
        self.mirrors = mirrored()
        self._cached: tuple[str, RowCache] | None = None
        self._keeping: Future[None] | None = None
        """What is being written there, beside the one who asked for the rows."""

    def kept(self, tags: Mapping[str, bytes]) -> list[tuple[MemoryRow, Body]]:
        cache, found = self._cache(), list[tuple[MemoryRow, Body]]()
        for held in cache.read(tags) if cache and tags else ():
            with suppress(DecodeError):  # damaged
                found.append(msgpack.decode(held, type=tuple[MemoryRow, Body]))
        return found

    def keep(
        self, rows: Iterable[tuple[MemoryRow, Body | None]], tags: Mapping[str, bytes]
    ) -> None:
        if cache := self._cache():
            given = (
                (row.id, tags[row.id], msgpack.encode((row, body)))
                for row, body in rows
                if body is not None and row.id in tags
            )
            self._keeping = _beside().submit(cache.write, given)

    def mirror(self, every: Callable[[], Mapping[str, bytes]], keys: int) -> None:
        cache = self._cache() if self.mirrors else None
        if cache is not None:
            tags = every()
            for some in parts(cache.lacking(tags, keys), AT_ONCE):
                self.keep(self.with_bodies(some).values(), tags)

    def remove(self, ids: Sequence[str]) -> None:
        super().remove(ids)
        if cache := self._cache():
            cache.drop(ids)

    def close(self) -> None:
        self._wait()
        if self._cached is not None:
            self._cached[1].close()
            self._cached = None

    def _wait(self) -> None:
        if self._keeping is not None:
            self._keeping.result()
            self._keeping = None

    def _cache(self) -> RowCache | None:
        """Of the vault that the connection is about; None where the folder cannot be trusted."""
        self._wait()
        if not self._link.about:
            self._link.run(lambda connection: None)  # the first question says what it is about
        about = self._link.about
        if about and (self._cached is None or self._cached[0] != about):
            self.close()
            with suppress(BadInputError):
                self._cached = about, RowCache(about, mirror=self.mirrors)
        return self._cached[1] if self._cached else None


class _Slots(Slots):
    """Slots, whose cells have kinds that hold here."""

    def cells(self, most: int, largest: int) -> list[tuple[Any, ...]]:
        cut = (
            f"case when octet_length({name}) > {largest:d} then "
            f"decode(repeat('00', {largest + 1:d}), 'hex') else {_as_bytes(name)} end"
            for name in CELLS
        )
        return self._all(
            f"select {', '.join(cut)}, principal from vault_slots order by created, id limit ?",
            (most,),
        )


def _as_bytes(name: str) -> str:
    return name if COLUMNS["vault_slots"][name] == "bytea" else f"convert_to({name}, 'UTF8')"


class _Segments(Segments):
    """Segments, whose parts are kept on this machine, and changes that are numbered by the vault
    and not by the database."""

    def parts(
        self, ids: Sequence[str], names: Sequence[str] = PARTS, *, kept: bool = False
    ) -> Iterator[tuple[str, dict[str, bytes]]]:
        cache = segment_cache() if kept else None
        if cache is None:
            yield from super().parts(ids, names)
            return
        cut = ", ".join(f"{_begun(one)}, octet_length({one})" for one in names)
        query = f"select id, {cut} from vault_segments where id {LISTED}"
        missing = []
        for segment, *cells in self._all(query, (listed(ids),)):
            held = {
                name: _whole(cache, f"{segment}|{name}", begun, length)
                for name, begun, length in zip(names, cells[::2], cells[1::2], strict=True)
            }
            found = {name: sealed for name, sealed in held.items() if sealed is not None}
            if len(found) == len(names):
                yield segment, found
            else:
                missing.append(segment)
        for segment, fetched in super().parts(missing, names) if missing else ():
            for name, sealed in fetched.items():
                if len(sealed) > SMALL:
                    cache.write(f"{segment}|{name}", sealed)
            yield segment, fetched

    def extra(self, segment: str, kind: str, *, kept: bool = False) -> bytes | None:
        cache, place = segment_cache() if kept else None, f"{segment}|{kind}"
        if cache is None:
            return super().extra(segment, kind)
        found = self._first(
            f"select {_begun('sealed')}, octet_length(sealed) from vault_segment_parts "
            "where segment = ? and kind = ?",
            (segment, kind),
        )
        whole = _whole(cache, place, *found) if found else None
        if whole is None and found:
            whole = super().extra(segment, kind)
            if whole is not None:
                cache.write(place, whole)
        return whole

    def delete(self, ids: Iterable[str]) -> None:
        gone, cache = [*ids], segment_cache()
        super().delete(gone)
        if cache is not None:
            cache.drop(f"{one}|{part}" for one in gone for part in PARTS)

    def log(self, collection: str, memories: Sequence[str], operation: str) -> None:  # type: ignore[override]
        first = self.newest_change() + 1
        rows = [(first + n, collection, one, operation) for n, one in enumerate(memories)]
        self._insert("into vault_changes (sequence, collection, memory, operation)", *rows)


SMALL = 16_384  # bytes of a part that is fetched with what says which one it is


def _begun(name: str) -> str:
    """A part as far as it says which one it is; all of a small one."""
    much = f"case when octet_length({name}) > {SMALL} then {MARK_BYTES} else {SMALL} end"
    return f"substr({name}, 1, {much})"


def _whole(cache: SegmentCache, place: str, begun: bytes, length: int) -> bytes | None:
    return begun if length <= SMALL else cache.read(place, begun, length)


def open_storage(address: Address, **options: Any) -> PostgresStorage:
    """See :meth:`PostgresStorage.open`."""
    return PostgresStorage.open(address, **options)


def server_access(address: Address) -> FileAccess:
    """How every connection to a database is opened: a standby is read alone."""
    link = Link(address, read_only=True, patience=BUSY_SECONDS)
    try:
        row = link.run(lambda one: one.execute("select pg_is_in_recovery()").fetchone())
    finally:
        link.close()
    return FileAccess(STANDBY) if row and row[0] else WRITABLE


def check_is_vault_there(address: Address) -> FileAccess:
    """How a vault is opened. Raises NotAVaultError, FormatError or StorageError unless this version
    reads it."""
    with closing(PostgresStorage.open(address, read_only=True)) as storage:
        found, access = storage.format_found(), storage.access
        if found is None:
            raise NotAVaultError(
                f"{address}: no vault {address.vault!r} in this database. To make one: "
                f"memory-store init {shlex.quote(str(address))}"
            )
    if found != FORMAT_VERSION:
        raise FormatError(
            f"{address}: a vault of format {found}; this version reads format {FORMAT_VERSION}"
        )
    return access


def is_strange(address: Address) -> bool:
    """Whether a vault's tables have columns of other kinds than a vault has, or empty ones: as its
    server says. No, where that does not answer now."""
    link = Link(address, read_only=True, patience=BUSY_SECONDS, greeting=_Vault(address.vault))
    known = {**COLUMNS, "vault_head": {"revision": "bigint", "format": "bigint"}}

    def look(connection: Any) -> bool:
        for table, columns in known.items():
            full = (name for name in columns if (table, name) not in NULLABLE)
            empty = " or ".join(f"{name} is null" for name in full)
            one = connection.execute(f"select {', '.join(columns)} from {table} limit 0")
            kinds = [column.type_code for column in one.description]
            if kinds != [connection.adapters.types[kind].oid for kind in columns.values()]:
                return True
            if connection.execute(f"select 1 from {table} where {empty} limit 1").fetchone():
                return True
        return False

    try:
        link.run(lambda connection: None)  # a first question has its answers later
        return link.run(look)
    except ServerError:
        return False
    except StorageError:  # there is no such table, or it cannot be asked like this
        return True
    finally:
        link.close()
