"""Tracebacks without variables, failures of SQL without the SQL.

Boundary: where ``rich`` is installed, Datasette prints every local variable of every frame when a
page of its own breaks, and when the process ends by an error. Queries and opened texts are among
them. With this plugin, tracebacks name lines and exceptions only, as they do without ``rich``.

Datasette also prints the SQL and the parameters that SQLite failed on, and a query stands in them:
``select hybrid_search('…')``. With this plugin, the kind of the failure is printed, and the SQL and
SQLite's message only where it was sent to a database without a vault and calls none of our
functions, by itself or by a view. The sender of the SQL gets its message all the same.

The variables of a traceback include the cursor of SQL that failed: see :func:`free_cursors`.
"""

from __future__ import annotations

import functools
import re
import sys
import traceback
from collections.abc import Callable
from typing import Any

from datasette import Forbidden, handle_exception
from datasette.database import Database, Results

from memory_store.host import sqlite3

from .connections import TableRefusedError
from .vaults.registry import names_found

_OURS = re.compile(r"hybrid|memory_(text|links)|code_(symbols|references)|topic_hash", re.I)
"""In the name of each function that takes words of a vault."""
_VIEWS = "select group_concat(sql) from sqlite_master where type = 'view'"
_MARK = "wrapped_by_datasette_hybrid"


def print_no_variables() -> None:
    """From now on, in this process. Safe to call again."""
    handle_exception.rich = None
    if sys.excepthook.__module__.startswith("rich."):
        sys.excepthook = sys.__excepthook__


def print_no_sql() -> None:
    """From now on, in this process, for every database: the functions work in each of them."""
    usual = Database.execute
    if _is_ours(usual):
        return

    @_ours
    @functools.wraps(usual)
    async def execute(
        self: Any, *arguments: Any, log_sql_errors: bool = True, **options: Any
    ) -> Any:
        try:
            return await usual(self, *arguments, log_sql_errors=False, **options)
        except TableRefusedError as error:
            if log_sql_errors:
                raise Forbidden(str(error)) from None
            # Datasette tries something out in all tables; one that is closed to the asker is empty
            return Results([], False, None)
        except sqlite3.Error as error:
            if log_sql_errors:
                line = f"ERROR: database = {self.name}, SQL failed: {type(error).__name__}"
                sql = str(arguments[0] if arguments else options["sql"])
                if not (_may_hold_words(self, sql) or await calls_ours(self)):
                    line = f"{line}: {error}, sql = {sql!r}"
                print(line, file=sys.stderr, flush=True)
            raise

    async def calls_ours(database: Any) -> bool:
        try:
            found = await usual(database, _VIEWS, log_sql_errors=False)
        except sqlite3.Error:
            return True
        return _OURS.search(found.rows[0][0] or "") is not None

    Database.execute = execute


def _may_hold_words(database: Any, sql: str) -> bool:
    """Whether SQL can be about a vault: to those in memory files are attached."""
    vaults = names_found(database.ds)
    return database.is_memory or database.name in vaults or _OURS.search(sql) is not None


def free_cursors(datasette: Any) -> None:
    """From now on, SQL that fails frees its cursor in the thread that ran it.

    Else the traceback keeps it, in a cycle of Datasette's, until some thread collects garbage; and
    freeing a cursor waits until its connection has nothing to do. If that runs a search by then,
    and the search needs a lock of the thread that collects, both wait for ever.
    """
    if datasette.executor is None:
        _free_in_the_loop()
    else:
        _free_in_threads(datasette.executor)


def _free_in_threads(executor: Any) -> None:
    usual = executor.submit
    if _is_ours(usual):
        return

    @_ours
    @functools.wraps(usual)
    def submit(function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Any:
        return usual(_without_variables, function, *arguments, **keywords)

    executor.submit = submit


def _free_in_the_loop() -> None:
    """Where ``num_sql_threads`` is 0, SQL runs in the thread of the event loop.

    ``execute`` and ``execute_fn`` of 1.0 share a method of their own; in 0.65 one calls the other.
    """
    name = "_execute_fn" if hasattr(Database, "_execute_fn") else "execute_fn"
    usual = getattr(Database, name)
    if _is_ours(usual):
        return

    @_ours
    @functools.wraps(usual)
    async def execute_fn(self: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            return await usual(self, *arguments, **keywords)
        except BaseException as failure:
            if self.ds.executor is None:
                _forget_variables(failure)
            raise

    setattr(Database, name, execute_fn)


def _ours(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark it. Other plugins wrap the same functions, and pass the mark on where they use wraps."""
    function.__dict__[_MARK] = True
    return function


def _is_ours(function: Callable[..., Any]) -> bool:
    return hasattr(function, _MARK)


def _without_variables(function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Any:
    try:
        return function(*arguments, **keywords)
    except BaseException as failure:
        _forget_variables(failure)
        raise


def _forget_variables(failure: BaseException) -> None:
    """Those of every frame that has ended, and of the failures that led to this one."""
    left, seen = [failure], set[int]()
    while left:
        one = left.pop()
        if id(one) not in seen:
            seen.add(id(one))
            traceback.clear_frames(one.__traceback__)
            left += [cause for cause in (one.__cause__, one.__context__) if cause is not None]
