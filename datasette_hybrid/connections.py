"""Datasette's connections to SQLite, guarded: who may not read a vault's tables gets none of them.

Boundary: all SQL that runs through Datasette's databases passes here, that of pages, ``?sql=``,
``_where``, stored queries, writes, ``_memory`` with ``--crossdb`` and other plugins alike. What is
decided is ``permissions/tables.py``'s. A plugin that opens the file by itself is outside.

SQLite's authorizer decides when a statement is prepared, and prepared statements are kept. So each
connection knows for whose access its statements were prepared; before a statement runs for another
access, the authorizer is set again, with which SQLite prepares every kept statement anew. An
authorizer that another plugin sets is asked as well, and cannot take the place of ours.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import weakref
from collections.abc import Callable, Mapping
from contextvars import ContextVar, copy_context
from typing import Any

import datasette.database
from datasette import Forbidden
from datasette.app import Datasette
from datasette.database import Database

from memory_store.host import SETTINGS_TABLE, sqlite3

from .compat import ACTIONS
from .permissions.asker import NO_ASKER, Asker, asker
from .permissions.tables import SEALED, Access, access_of, needed
from .tables.order import in_order
from .vaults import registry

OK, DENY, IGNORE = sqlite3.SQLITE_OK, sqlite3.SQLITE_DENY, sqlite3.SQLITE_IGNORE
READ, PRAGMA = sqlite3.SQLITE_READ, sqlite3.SQLITE_PRAGMA
PAGES = frozenset({"dbstat", "sqlite_dbpage", "sqlite_stmt", "sqlite_dbdata", "sqlite_dbptr"})
"""Tables that SQLite makes up of the whole file, or of everybody's statements."""
STATISTICS = re.compile(r"sqlite_stat[0-9]")
"""How many rows a table has, and samples of them. SQLite itself reads them: they look empty."""
UPKEEP = re.compile(r"\s*(vacuum|analyze|reindex|pragma\s+optimize)(\s+[\w.]+)?\s*(;\s*)?", re.I)
"""Statements on a connection that writes which read every table and return nothing of it."""

REFUSED = "not authorized"
"""Begins what refused SQL is answered with, as SQLite's own message does."""

_answering: weakref.WeakSet[Datasette] = weakref.WeakSet()
"""Those that have begun to start, or were sent anything: they may be asked."""
_isolated: ContextVar[bool] = ContextVar("hybrid_isolated", default=False)
"""Whether a connection that could write was opened for one function of the request itself."""


class TableRefusedError(sqlite3.OperationalError, Forbidden):  # type: ignore[misc]
    """SQL names a table that its asker may not read. Where no plugin catches it, it is a 403."""


class Guard:
    """What one connection may read: which of its schemas hold a vault, and for which asker."""

    def __init__(self, database: Database | None, *, writes: bool) -> None:
        self._database = (lambda: None) if database is None else weakref.ref(database)
        self._writes = writes
        self._places: Mapping[str, str | None] | None = None
        self._found_at = -1
        self._access: Mapping[str, Access] = {}
        self._looking = False
        self.other: Callable[..., int] | None = None
        self.refused: str | None = None

    def look(self, connection: Any, sql: Any) -> bool:
        """Note whose statement comes next. Returns whether the authorizer has to be set again."""
        if self._places is None or self._found_at != registry.changes:
            self._found_at = registry.changes
            self._places = self._vaults(connection, self._database())
        access = self._access_to(self._places, sql) if self._places else {}
        if isinstance(sql, str) and "attach" in sql.lower():
            self._places = None  # the next statement may find others
        if access == self._access:
            return False
        self._access = access
        return True

    def _access_to(self, places: Mapping[str, str | None], sql: Any) -> Mapping[str, Access]:
        if self._writes and isinstance(sql, str) and UPKEEP.fullmatch(sql):
            return dict.fromkeys(places, Access.ALL)
        if not self._writes and not self._can_be_asked():
            return dict.fromkeys(places, Access.ALL)
        known = NO_ASKER if self._writes and not _isolated.get() else asker.get()
        return {place: access_of(known, name) for place, name in places.items()}

    def _can_be_asked(self) -> bool:
        """Not while ``datasette inspect`` counts rows: that is run by the owner of the file."""
        database = self._database()
        return database is None or database.ds in _answering

    def _vaults(self, connection: Any, database: Database | None) -> Mapping[str, str | None]:
        self._looking = True
        try:
            return _vaults_in(connection, database)
        finally:
            self._looking = False

    def decide(
        self, action: int, first: str | None, second: str | None, schema: str | None, by: str | None
    ) -> int:
        """SQLite's question about one action of a statement that is being prepared."""
        if self._looking:
            return OK
        asked = OK if self.other is None else self.other(action, first, second, schema, by)
        return asked if asked == DENY else self._of_vaults(action, first, second, schema) or asked

    def _of_vaults(
        self, action: int, first: str | None, second: str | None, schema: str | None
    ) -> int:
        if not self._access or action not in (READ, PRAGMA):
            return OK
        name = (first or "").lower()
        if action == PRAGMA or name in PAGES:
            shut = name in PAGES or name == "stats"
            return self._refuse(name) if shut and min(self._access.values()) < Access.ALL else OK
        access = self._access.get((schema or "main").lower(), Access.ALL)
        if access is Access.ALL:
            return OK
        if STATISTICS.fullmatch(name):
            return IGNORE
        if access < needed(name):
            return self._refuse(name)
        return IGNORE if (name, (second or "").lower()) in SEALED else OK

    def _refuse(self, table: str) -> int:
        self.refused = table
        return DENY


class GuardedCursor(sqlite3.Cursor):
    """A cursor of a guarded connection."""

    def execute(self, sql: Any, *parameters: Any) -> Any:
        """As SQLite does; what is refused fails as other faulty SQL does."""
        return self._guarded(super().execute, in_order(sql), *parameters)

    def executemany(self, sql: Any, *parameters: Any) -> Any:
        """The same, many times."""
        return self._guarded(super().executemany, sql, *parameters)

    def executescript(self, sql: Any) -> Any:
        """The same for several statements."""
        return self._guarded(super().executescript, sql)

    def _guarded(self, run: Callable[..., Any], sql: Any, *parameters: Any) -> Any:
        connection: Any = self.connection
        guard = connection.look(sql)
        if guard is None:
            return run(sql, *parameters)
        guard.refused = None
        try:
            return run(sql, *parameters)
        except sqlite3.DatabaseError:
            if guard.refused is None:
                raise
            refused = guard.refused
        raise TableRefusedError(f"{REFUSED}: {refused} belongs to a vault")


class GuardedConnection(sqlite3.Connection):
    """A connection whose statements read of vaults what the request's actor may."""

    guard: Guard | None = None

    def cursor(self, factory: Any = GuardedCursor) -> Any:
        """A guarded one; of another class where that is asked for, guarded here."""
        if factory is not GuardedCursor:
            self.look(None)
        return super().cursor(factory)

    def execute(self, *arguments: Any) -> Any:
        """By a cursor; SQLite's own shortcut would pass by the guarded ones."""
        return self.cursor().execute(*arguments)

    def executemany(self, *arguments: Any) -> Any:
        """The same."""
        return self.cursor().executemany(*arguments)

    def executescript(self, *arguments: Any) -> Any:
        """The same."""
        return self.cursor().executescript(*arguments)

    def set_authorizer(self, authorizer_callback: Any) -> None:
        """Have another authorizer asked as well."""
        if self.guard is None:
            super().set_authorizer(authorizer_callback)
            return
        self.guard.other = authorizer_callback
        super().set_authorizer(self.guard.decide)

    def look(self, sql: Any) -> Guard | None:
        """Have statements prepared anew where they were for another asker's access."""
        if self.guard is not None and self.guard.look(self, sql):
            super().set_authorizer(self.guard.decide)
        return self.guard


def guard_connections() -> None:
    """From now on, in this process, every database of Datasette's makes guarded connections."""
    if isinstance(datasette.database.sqlite3, _GuardedModule):
        return
    datasette.database.sqlite3 = _GuardedModule()
    usual = Database.connect

    @functools.wraps(usual)
    def connect(self: Any, *arguments: Any, **options: Any) -> Any:
        connection = usual(self, *arguments, **options)
        if isinstance(connection, GuardedConnection):
            writes = options.get("write", *arguments[:1] or (False,))
            connection.guard = Guard(self, writes=bool(writes))
        return connection

    Database.connect = connect
    if hasattr(Database, "execute_isolated_fn"):
        _carry_context_into_isolated()
    _count_what_is_open()
    _label_what_is_open()


def guard_answers(datasette: Datasette | None) -> None:
    """From now on requests may arrive: guard the vaults of this Datasette."""
    if datasette is not None:
        _answering.add(datasette)


def guard_other(connection: Any, database: str, datasette: Any) -> None:
    """A connection that some plugin made by itself: closed to everybody where it holds a vault."""
    if isinstance(connection, GuardedConnection):
        return
    guard = Guard(datasette.databases.get(database), writes=True)
    if guard.look(connection, None):
        connection.set_authorizer(guard.decide)


async def is_guarded(datasette: Any, database: str) -> bool:
    """Whether the guard works on a database that holds a vault: tried as a stranger would."""
    token = asker.set(NO_ASKER)
    try:
        await datasette.databases[database].execute_fn(
            lambda connection: connection.execute("select count(*) from vault_settings").fetchone()
        )
    except sqlite3.DatabaseError:
        return True
    finally:
        asker.reset(token)
    return False


class _GuardedModule:
    """SQLite's module as ``datasette.database`` sees it: its connections are guarded."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sqlite3, name)

    def connect(self, *arguments: Any, **options: Any) -> Any:
        """A guarded connection, unless another class of connections is asked for."""
        return sqlite3.connect(*arguments, **{"factory": GuardedConnection, **options})


def _vaults_in(connection: Any, database: Any) -> Mapping[str, str | None]:
    """Schema → Datasette's name of the vault it holds; ``None`` where Datasette serves it as none.

    The schema of a connection says so itself, not the name or the link of the file. What
    cannot be looked at counts as a vault.
    """
    cursor = sqlite3.Connection.cursor(connection, sqlite3.Cursor)
    cursor.row_factory = None
    main = None if database is None else database.name
    try:
        found = {}
        for _, schema, file in cursor.execute("pragma database_list").fetchall():
            quoted = schema.replace('"', '""')
            (holds,) = cursor.execute(
                f'select exists (select 1 from "{quoted}".sqlite_master where name = :name)',
                {"name": SETTINGS_TABLE},
            ).fetchone()
            if holds:
                found[schema.lower()] = main if schema == "main" else _served(database, file)
    except sqlite3.Error:
        return {"main": main}
    return found


def _served(database: Any, file: str) -> str | None:
    """Datasette's name of an attached file."""
    served = {} if database is None else database.ds.databases
    paths = ((name, one.path) for name, one in served.items() if one.path and not one.is_memory)
    return next((name for name, path in paths if os.path.realpath(path) == file), None)


def _carry_context_into_isolated() -> None:
    """1.0 works out what SQL will do on a connection of its own, in a thread that knows no asker.

    Without this, SQL that its asker may run would be refused before it runs.
    """
    usual = Database.execute_isolated_fn

    @functools.wraps(usual)
    async def execute_isolated_fn(self: Any, fn: Callable[[Any], Any]) -> Any:
        context = copy_context()
        context.run(_isolated.set, True)

        @functools.wraps(fn)
        def inside(connection: Any) -> Any:
            return context.run(fn, connection)

        return await usual(self, inside)

    Database.execute_isolated_fn = execute_isolated_fn


def _count_what_is_open() -> None:
    """Datasette counts all tables, and keeps the counts of immutable files for everybody.

    It leaves out all counts where one table refuses to be counted, so each is, and those that are
    closed to the asker are taken out of the answer.
    """
    usual = Database.table_counts

    @functools.wraps(usual)
    async def table_counts(self: Any, *arguments: Any, **options: Any) -> Any:
        if self.name not in registry.names_found(self.ds):
            return await usual(self, *arguments, **options)
        access = access_of(asker.get(), self.name)
        token = asker.set(Asker({}, databases={self.name: frozenset(ACTIONS)}))
        try:
            counts = await usual(self, *arguments, **options)
        finally:
            asker.reset(token)
        return {table: count for table, count in counts.items() if access >= needed(table)}

    Database.table_counts = table_counts


def _label_what_is_open() -> None:
    """0.65 looks up the labels of foreign keys without asking whether their table may be seen."""
    usual = Datasette.expand_foreign_keys
    if "actor" in inspect.signature(usual).parameters:
        return

    @functools.wraps(usual)
    async def expand_foreign_keys(self: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return await usual(self, *arguments, **options)
        except Forbidden:
            return {}

    Datasette.expand_foreign_keys = expand_foreign_keys
