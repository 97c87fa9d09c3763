"""A function of SQL that returns rows: ``select * from hybrid_search('words', 10)``.

Python's ``sqlite3`` offers functions of one value and no way to add a table. SQLite has virtual
tables, and this module reaches them through ctypes, in the very library that the connection's
module is linked to. What keeps the process alive:

* SQLite keeps pointers to the module and its callbacks until the last connection is gone, which may
  be while the interpreter ends. So both are made once per library and never freed.
* A connection that is closed that late may find no Python to call: ``xDisconnect`` is SQLite's own
  ``sqlite3_free``.
* No exception leaves a callback. ctypes would print it and return 0, which says that all went well.

Boundary: holds the rows of running statements, which may be opened text, until SQLite closes the
statement's cursor. The caller that hands the rows in has decided who may see what.
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from msgspec import Struct

from memory_store.errors import MemoryStoreError
from memory_store.sql import virtual_tables as sqlite
from memory_store.sql.virtual_tables import CONSTRAINT, ERROR, INTERRUPT, NOMEM, OK
from memory_store.sqlite import ExtensionUnavailable, linked_library

PYTHONS = ((3, 11), (3, 14))
"""From, to: their ``Modules/_sqlite/connection.h`` begins a connection with its handle."""
MODULES = ("sqlite3", "pysqlite3")
COST_OF_A_SEARCH = 1e6  # SQLite then searches once and looks the rest up, and not the reverse
USUAL_ROWS = 10
ROWS_OF_A_TABLE = 10_000  # of a source that can be narrowed down, until it is
NARROWED = 100  # how many times fewer rows an equality leaves, and less work
BINARY = b"BINARY"  # the collation of texts that are equal byte for byte
RANK = "rank"  # rows come in the order of a column of this name

Cell = str | int | float | bytes | None
Key = tuple[int, int]  # a connection's handle, and the number of a function's name


class TableFunctionUnavailable(Exception):
    """SQLite's virtual tables cannot be reached from this Python; the message says why."""


class Asked(Struct, frozen=True):
    """What a statement asks of the rows: texts that columns must be equal to, the columns that the
    rows are ordered by, each with whether the last comes first, and the columns that are read."""

    equal: Mapping[str, str] = {}
    order: tuple[tuple[str, bool], ...] = ()
    columns: frozenset[str] = frozenset()


class Source(Protocol):
    """A table function: its name, its columns with their declared types, and its rows.

    ``parameters`` are hidden columns, each with what is said where it is not given (``None``: it
    need not be). No column has the name of one. ``heeds`` are columns of text: where there are any,
    :meth:`rows` leaves out what is not equal in these, and orders as it is asked.
    """

    @property
    def name(self) -> str: ...

    @property
    def columns(self) -> Mapping[str, str]: ...

    @property
    def parameters(self) -> Mapping[str, str | None]: ...

    @property
    def heeds(self) -> Collection[str]: ...

    def rows(self, asked: Asked, *given: Any, **_: Any) -> Iterable[Sequence[Cell]]:
        """The rows of one call, cells in the columns' order; what is not given is ``None``.

        They may be read more than once, and not to the end. A cell that no statement reads may hold
        anything. A :class:`MemoryStoreError` becomes the statement's error, word for word.
        """


def add_table_function(connection: Any, source: Source) -> None:
    """Let ``connection`` select from ``source.name(…)``, with the parameters of ``source``.

    ``source`` is not kept alive here: the caller keeps it for as long as the connection lives.
    Another one of its name takes its place. Raises :class:`TableFunctionUnavailable`; the
    connection is then as it was.
    """
    for name in MODULES:
        module = sys.modules.get(name)
        if module is not None and isinstance(connection, module.Connection):
            _functions_of(module).register(connection, source)
            return
    kind = type(connection).__module__
    raise TableFunctionUnavailable(f"connections of {kind} are not known well enough")


def why_unavailable(module: Any) -> str | None:
    """Why connections of ``module`` (``sqlite3`` or pysqlite3) cannot; ``None`` when they can."""
    try:
        _functions_of(module)
    except TableFunctionUnavailable as error:
        return str(error)
    return None


class _Reading:
    """One cursor: what its last call was, the arguments, their rows, and the one it is at."""

    __slots__ = ("_later", "arguments", "call", "row", "rows")

    def __init__(
        self, call: object, arguments: tuple[Any, ...], rows: Iterable[Sequence[Cell]]
    ) -> None:
        self.call, self.arguments, self.rows = call, arguments, rows
        self.begin()

    def begin(self) -> None:
        """Go to the first row."""
        self._later: Iterator[Sequence[Cell]] = iter(self.rows)
        self.row = next(self._later, None)

    def go_on(self) -> None:
        """Go to the next row: ``None`` behind the last one."""
        self.row = next(self._later, None)


class _TableFunctions:
    """The table functions of every connection of one SQLite library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._sqlite = sqlite.Library(library)
        self._free = self._sqlite.free
        self._sources: weakref.WeakValueDictionary[Key, Source] = weakref.WeakValueDictionary()
        self._names: list[str] = []
        self._readings: dict[int, _Reading] = {}
        free = self._sqlite.address("free")
        self._module = sqlite.Module(xDisconnect=free, xDestroy=free)
        for name, prototype in sqlite.CALLBACKS.items():
            callback = prototype(_guarded(getattr(self, name)))
            setattr(self._module, name, ctypes.cast(callback, ctypes.c_void_p))
            _keep_forever(callback)
        _keep_forever(self._module)

    def register(self, connection: Any, source: Source) -> None:
        """Add ``source`` to an open connection of this library."""
        handle, module = self.handle(connection), ctypes.addressof(self._module)
        number, name = self._number(source.name), source.name.encode()
        if self._sqlite.create_module_v2(handle, name, module, number, None) != OK:
            raise TableFunctionUnavailable("SQLite refused the table function")
        self._sources[handle, number] = source

    def _number(self, name: str) -> int:
        """The number of a name, which SQLite hands back: not 0, which is NULL to it."""
        with _naming:
            if name not in self._names:
                self._names.append(name)
            return self._names.index(name) + 1

    def handle(self, connection: Any) -> int:
        """The ``sqlite3 *`` of an open connection: the first field behind the object's header."""
        handle = ctypes.c_void_p.from_address(id(connection) + object.__basicsize__).value
        if not handle:
            raise TableFunctionUnavailable("the connection is closed")
        return handle

    def finds_handles(self, connection: Any) -> bool:
        """Whether what :meth:`handle` finds is one: a database begins with its file system."""
        found = ctypes.c_void_p.from_address(self.handle(connection)).value
        return bool(found) and found == self._sqlite.vfs_find(None)

    def xConnect(self, db: int, number: int, __: int, ___: int, vtab: Any, ____: int) -> int:
        source = self._sources[db, number]
        columns = [f'"{name}" {kind}' for name, kind in source.columns.items()]
        columns += [f'"{name}" hidden' for name in source.parameters]
        declaration = f"create table x({', '.join(columns)})"
        code: int = self._sqlite.declare_vtab(db, declaration.encode())
        if code == OK:
            vtab[0] = self._sqlite.allocated(ctypes.sizeof(sqlite.Vtab))
            made = sqlite.Vtab.from_address(vtab[0])
            made.db, made.number = db, number
        return code

    def xBestIndex(self, vtab: int, plan: Any) -> int:
        pointer, plan, source = plan, plan.contents, self._source(vtab)
        names = [*source.columns]
        arguments: dict[int, int] = {}  # argument → the constraint that gives it
        equal: dict[str, int] = {}  # column → likewise
        for n in range(plan.nConstraint):
            constraint = plan.aConstraint[n]
            if constraint.op != sqlite.EQUALS or constraint.iColumn < 0:
                continue
            if constraint.iColumn >= len(names):
                if not constraint.usable:
                    return CONSTRAINT  # not before the tables that the argument comes from
                arguments.setdefault(constraint.iColumn - len(names), n)
            elif (
                constraint.usable
                and names[constraint.iColumn] in source.heeds
                and self._sqlite.vtab_collation(pointer, n) == BINARY
            ):
                equal.setdefault(names[constraint.iColumn], n)
        given = sorted(arguments)
        chosen = [*(arguments[number] for number in given), *equal.values()]
        for place, n in enumerate(chosen, start=1):
            plan.aConstraintUsage[n].argvIndex = place
        for n in arguments.values():
            plan.aConstraintUsage[n].omit = 1
        order = [plan.aOrderBy[n] for n in range(plan.nOrderBy)]
        columns = [names[one.iColumn] if 0 <= one.iColumn < len(names) else "" for one in order]
        if source.heeds:
            plan.orderByConsumed = int(bool(columns) and all(columns))
            fewer = NARROWED ** len(equal)
            plan.estimatedCost = COST_OF_A_SEARCH / fewer
            plan.estimatedRows = max(1, ROWS_OF_A_TABLE // fewer)
        else:
            plan.orderByConsumed = int(columns == [RANK] and not order[0].desc)
            plan.estimatedCost, plan.estimatedRows = COST_OF_A_SEARCH, USUAL_ROWS
        wanted = [
            [columns[n], bool(one.desc)] for n, one in enumerate(order) if plan.orderByConsumed
        ]
        read = [name for n, name in enumerate(names) if plan.colUsed >> min(n, 63) & 1]
        plan.idxStr = self._sqlite.copied(json.dumps([given, [*equal], wanted, read]))
        plan.needToFreeIdxStr = 1
        return OK

    def xOpen(self, _: int, cursor: Any) -> int:
        cursor[0] = self._sqlite.allocated(ctypes.sizeof(sqlite.VtabCursor))
        return OK

    def xClose(self, cursor: int) -> int:
        self._readings.pop(cursor, None)
        self._free(cursor)
        return OK

    def xFilter(self, cursor: int, _: int, plan: bytes, count: int, values: Any) -> int:
        vtab = sqlite.VtabCursor.from_address(cursor).pVtab.contents
        source = self._source(ctypes.addressof(vtab))
        given = [self._sqlite.value(values[n]) for n in range(count)]
        reading = self._readings.pop(cursor, None)
        try:
            if reading is None or reading.call != (plan, given):
                reading = self._asked(source, plan, given)
            else:  # the inner side of a join asks the same again for each outer row
                reading.begin()
            self._readings[cursor] = reading
        except MemoryStoreError as error:
            return self._refuse(vtab, str(error))
        except Exception as error:  # noqa: BLE001 - nothing may leave a callback
            return self._refuse(vtab, f"unexpected {_without_words(error)}")
        return OK

    def _asked(self, source: Source, plan: bytes, given: list[Any]) -> _Reading:
        """Ask a source for what a plan says and these values."""
        numbers, equal, order, columns = json.loads(plan)
        arguments: list[Any] = [None] * len(source.parameters)
        for place, number in enumerate(numbers):
            arguments[number] = given[place]
        for number, (name, needed) in enumerate(source.parameters.items()):
            if needed and number not in numbers:
                raise MemoryStoreError(f"{name}: {needed}")
        texts = zip(equal, given[len(numbers) :], strict=True)
        asked = Asked(
            {name: value for name, value in texts if isinstance(value, str)},  # SQLite looks again
            tuple((name, desc) for name, desc in order),
            frozenset(columns),
        )
        return _Reading((plan, given), tuple(arguments), source.rows(asked, *arguments))

    def xNext(self, cursor: int) -> int:
        self._readings[cursor].go_on()
        return OK

    def xEof(self, cursor: int) -> int:
        reading = self._readings.get(cursor)
        return int(reading is None or reading.row is None)

    def xColumn(self, cursor: int, context: int, column: int) -> int:
        reading = self._readings[cursor]
        row = reading.row
        assert row is not None  # SQLite asks xEof before
        hidden = column - len(row)
        self._sqlite.answer(context, row[column] if hidden < 0 else reading.arguments[hidden])
        return OK

    def xRowid(self, cursor: int, rowid: Any) -> int:
        row = self._readings[cursor].row
        assert row is not None  # likewise
        rowid[0] = hash(tuple(row))  # of either side of an ``or``, which are read one by one
        return OK

    def _source(self, vtab: int) -> Source:
        table = sqlite.Vtab.from_address(vtab)
        return self._sources[table.db, table.number]

    def _refuse(self, vtab: sqlite.Vtab, message: str) -> int:
        self._free(vtab.zErrMsg)
        vtab.zErrMsg = self._sqlite.copied(message)
        return ERROR


def _guarded(callback: Callable[..., int]) -> Callable[..., int]:
    """``callback`` with a result code for every exception."""

    def answer(*arguments: Any) -> int:
        try:
            return callback(*arguments)
        except KeyboardInterrupt:
            return INTERRUPT
        except MemoryError:
            return NOMEM
        except BaseException:  # noqa: BLE001 - nothing may leave a callback
            return ERROR

    return answer


def _without_words(error: Exception) -> str:
    """What broke and where. Not the exception's own words, which may hold what it tripped over."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"


def _keep_forever(thing: Any) -> None:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


_known: dict[str, _TableFunctions | str] = {}  # by module: its functions, or why there are none
_learning = threading.Lock()
_naming = threading.Lock()


def _functions_of(module: Any) -> _TableFunctions:
    """The table functions of a module's SQLite, tried out when first asked for."""
    with _learning:
        if module.__name__ not in _known:
            _known[module.__name__] = _tried_out(module)
        known = _known[module.__name__]
    if isinstance(known, str):
        raise TableFunctionUnavailable(known)
    return known


def _tried_out(module: Any) -> _TableFunctions | str:
    python = sys.version_info[:2]
    if not PYTHONS[0] <= python <= PYTHONS[1]:
        return f"connections of Python {python[0]}.{python[1]} are not known well enough"
    try:
        functions = _TableFunctions(linked_library(module))
    except (ExtensionUnavailable, AttributeError, TypeError) as error:
        return str(error)
    with module.connect(":memory:") as connection:
        works = functions.finds_handles(connection) and _answers(functions, connection)
    connection.close()
    return functions if works else "a table function does not answer as it should"


def _answers(functions: _TableFunctions, connection: Any) -> bool:
    """Whether a small function returns what it was given."""
    source = _Trial()
    functions.register(connection, source)
    try:
        found = connection.execute(
            "select t.*, query, options from trial('a', 2) as t order by place"
        ).fetchall()
    except Exception:  # noqa: BLE001 - whatever it is, there will be no table function
        return False
    return bool(found == [(1, "a", 0.5, "a", 2), (2, None, 2.0, "a", 2)])


class _Trial:
    name = "trial"
    columns: ClassVar[Mapping[str, str]] = {"place": "integer", "word": "text", "options_": "real"}
    parameters: ClassVar[Mapping[str, str | None]] = {"query": None, "options": None}

    heeds = ()

    def rows(self, asked: Asked, query: Any, options: Any) -> Sequence[Sequence[Cell]]:
        return [(1, query, 0.5), (options, None, 2.0)]
