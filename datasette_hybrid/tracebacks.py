"""Tracebacks without variables, failures of SQL without the SQL.

Boundary: where ``rich`` is installed, Datasette prints every local variable of every frame when a
page of its own breaks, and when the process ends by an error. Queries and opened texts are among
them. With this plugin, tracebacks name lines and exceptions only, as they do without ``rich``.

Datasette also prints the SQL and the parameters that SQLite failed on, and a query stands in them:
``select hybrid_search('…')``. With this plugin, the kind of the failure is printed. Whoever sent
the SQL is told all the same.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from datasette import handle_exception
from datasette.database import Database

from memory_store.sqlite import sqlite3


def print_no_variables() -> None:
    """From now on, in this process. Safe to call again."""
    handle_exception.rich = None
    if sys.excepthook.__module__.startswith("rich."):
        sys.excepthook = sys.__excepthook__


def print_no_sql() -> None:
    """From now on, in this process, for every database: the functions work in each of them."""
    usual = Database.execute
    if hasattr(usual, "__wrapped__"):
        return

    @functools.wraps(usual)
    async def execute(
        self: Any, *arguments: Any, log_sql_errors: bool = True, **options: Any
    ) -> Any:
        try:
            return await usual(self, *arguments, log_sql_errors=False, **options)
        except sqlite3.Error as error:
            if log_sql_errors:
                told = f"ERROR: database = {self.name}, SQL failed: {type(error).__name__}"
                print(told, file=sys.stderr, flush=True)
            raise

    Database.execute = execute
