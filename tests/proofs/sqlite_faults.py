"""SQLite that breaks at one point of the work, and that says whether it did.

A rehearsal counts the points at which the work could break: every few steps of SQLite's machine,
everything it asks leave for, every page by which the file grows. A fault is then drawn among
those. It is SQLite itself that breaks: it is interrupted, refused, or its file may not grow.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest

from datasette_hybrid.connections import GuardedConnection, GuardedCursor
from memory_store import sqlite as connections
from memory_store.sqlite import sqlite3

KINDS = ("interrupted", "refused", "full")
STEPS = 10  # of SQLite's machine, between two points at which it can be interrupted
REFUSABLE = ("READ", "SELECT", "FUNCTION", "INSERT", "UPDATE", "DELETE", "TRANSACTION")
ACTIONS = {getattr(sqlite3, f"SQLITE_{name}"): f"refused {name.lower()}" for name in REFUSABLE}

Points = Counter[str]


@dataclass
class Fault:
    """One way to break at its n-th point: for once, or from there on. Without a way: a rehearsal.

    ``hit`` says whether SQLite really broke, ``points`` how many points of each way were passed.
    """

    way: str = ""
    after: int = 0
    lasting: bool = True
    armed: bool = False
    hit: bool = False
    points: Points = field(default_factory=Counter)
    limit: int = 0  # pages

    def passed(self, way: str) -> bool:
        """Count a point. Whether SQLite breaks there."""
        if not self.armed:
            return False
        self.points[way] += 1
        breaks = way == self.way and (
            self.points[way] >= self.after if self.lasting else self.points[way] == self.after
        )
        self.hit |= breaks
        return breaks

    def noticed(self, error: sqlite3.Error) -> None:
        """SQLite said so."""
        self.hit |= self.armed and error.sqlite_errorname == "SQLITE_FULL" and self.way == "full"


def drawn(kind: str, points: Points, chance: random.Random) -> Fault:
    """A fault of that kind, at a point that the rehearsal passed."""
    way = chance.choice(sorted(way for way in points if way.startswith(kind) and points[way]))
    return Fault(way, chance.randint(1, points[way]), lasting=chance.random() < 0.5)


class Watched(sqlite3.Connection):
    """A connection whose points are counted, beside the handlers that others give it."""

    fault: Fault
    file = ""
    theirs: Callable[[], Any] | None = None
    allowed: Callable[..., int] | None = None

    def watch(self, fault: Fault) -> None:
        self.fault = fault
        self.file = super().execute("pragma database_list").fetchone()[2]
        super().set_progress_handler(self._step, STEPS)
        super().set_authorizer(self._ask)

    def set_progress_handler(self, handler: Any, n: int) -> None:
        """Datasette's time limits: asked at every step of ours."""
        self.theirs = handler

    def set_authorizer(self, handler: Any) -> None:
        self.allowed = handler

    def cursor(self, *_: Any) -> Any:
        return super().cursor(Noticing)

    def execute(self, *arguments: Any) -> Any:
        return self.cursor().execute(*arguments)

    def executemany(self, *arguments: Any) -> Any:
        return self.cursor().executemany(*arguments)

    def _step(self) -> int:
        return self.fault.passed("interrupted") or (self.theirs() if self.theirs else 0) or 0

    def _ask(self, action: int, *about: Any) -> int:
        if action in ACTIONS and self.fault.passed(ACTIONS[action]):
            return int(sqlite3.SQLITE_DENY)
        return self.allowed(action, *about) if self.allowed else int(sqlite3.SQLITE_OK)

    def narrow(self, path: Path) -> None:
        """Its file may grow to the fault's limit and no further."""
        if self.fault.limit and self.file == str(path):
            super().execute(f"pragma max_page_count = {self.fault.limit}")

    def close(self) -> None:
        self.file = ""
        super().close()


class Noticing(sqlite3.Cursor):
    """A cursor that notices a full disk."""

    connection: Watched

    def execute(self, *arguments: Any) -> Any:
        with self._noticing():
            return super().execute(*arguments)

    def executemany(self, *arguments: Any) -> Any:
        with self._noticing():
            return super().executemany(*arguments)

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            self.connection.fault.noticed(error)
            raise


class NoticingGuarded(Noticing, GuardedCursor):
    """The same of a connection that Datasette made."""


class WatchedGuarded(Watched, GuardedConnection):
    """A connection that Datasette made, guarded as ever: its guard asks the fault as well."""

    def cursor(self, *_: Any) -> Any:
        return sqlite3.Connection.cursor(self, NoticingGuarded)

    def look(self, sql: Any) -> Any:
        if self.guard is not None:
            self.guard.other = self._ask
        return super().look(sql)


class Switch:
    """Where the fault of a vault's connections is armed."""

    def __init__(self, path: Path, fault: Fault) -> None:
        self.path, self.fault = path, fault
        self.made: WeakSet[Watched] = WeakSet()

    def connect(self, connect: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        guarded = options.pop("factory", None) is not None
        factory = WatchedGuarded if guarded else Watched
        connection = connect(*arguments, factory=factory, **options)
        connection.watch(self.fault)
        connection.narrow(self.path)
        self.made.add(connection)
        return connection

    @contextmanager
    def armed(self) -> Iterator[None]:
        """Meanwhile points are counted, and the fault's one breaks."""
        before = pages(self.path)
        if self.fault.way == "full":
            self.fault.limit = before + self.fault.after - 1
            for connection in list(self.made):
                connection.narrow(self.path)
        self.fault.armed = True
        try:
            yield
        finally:
            self.fault.armed, self.fault.limit = False, 0
            self.fault.points["full"] = pages(self.path) - before


@contextmanager
def watching(path: Path, fault: Fault) -> Iterator[Switch]:
    """Connections that are made meanwhile, ours and Datasette's, break once they are armed."""
    connect, switch = sqlite3.connect, Switch(path, fault)
    with pytest.MonkeyPatch.context() as environment:
        environment.setattr(
            connections.sqlite3,
            "connect",
            lambda *arguments, **options: switch.connect(connect, *arguments, **options),
        )
        yield switch


def pages(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as thief:
        (count,) = thief.execute("pragma page_count").fetchone()
    return int(count)
