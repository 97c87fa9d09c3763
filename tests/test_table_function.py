"""A table function on plain connections: what SQL can do with it, and what it must survive.

What could end the process runs in a process of its own, which must end with code 0 and say nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from operator import itemgetter
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
from own_process import python

from memory_store.errors import BadInputError
from memory_store.sql.table_function import (
    Asked,
    TableFunctionUnavailable,
    add_table_function,
    why_unavailable,
)

ROOT = Path(__file__).parents[1]


def modules() -> list[ModuleType]:
    """The standard library's sqlite3, and pysqlite3 where it is installed."""
    found = [importlib.import_module("sqlite3")]
    with contextlib.suppress(ImportError):
        found.append(importlib.import_module("pysqlite3"))
    return found


class Numbers:
    """A table function: ``numbers(word, n)`` has n rows."""

    name = "numbers"
    columns: ClassVar[dict[str, str]] = {"rank": "integer", "word": "text", "share": "real"}
    parameters: ClassVar[dict[str, str | None]] = {
        "query": "what to search for is missing",
        "options": None,
    }

    heeds: ClassVar[Sequence[str]] = ()

    def __init__(self) -> None:
        self.asked: list[tuple[Any, Any]] = []

    def rows(self, asked: Asked, query: Any, options: Any) -> Sequence[tuple[Any, ...]]:
        self.asked.append((query, options))
        if query is None:
            return []
        count = 3 if options is None else int(options)
        if count > 1_000:
            raise BadInputError("limit: at most 1,000 — not %s, not %n", "limit")
        return [(n, f"{query} {n}", 1 / n) for n in range(1, count + 1)]


class Letters:
    """A table function: ``letters()`` needs no argument, and its rows are in no order."""

    name = "letters"
    columns: ClassVar[dict[str, str]] = {"letter": "text"}
    parameters: ClassVar[dict[str, str | None]] = {"first": None}
    heeds: ClassVar[Sequence[str]] = ()

    def rows(self, asked: Asked, first: Any) -> Sequence[tuple[Any, ...]]:
        return [(one,) for one in (first, "b", "a") if one]


class Boats:
    """A table function that heeds equalities and orders. It counts the rows that are made."""

    name = "boats"
    columns: ClassVar[dict[str, str]] = {"name": "text", "port": "text", "length": "integer"}
    parameters: ClassVar[dict[str, str | None]] = {"at_least": None}
    heeds = ("name", "port")
    every: ClassVar[list[tuple[str, str, int]]] = [
        (name, port, n % 7)
        for n, (name, port) in enumerate(product(("Ada", "ada", "Zoë", "5", ""), ("Oslo", "Kiel")))
    ]

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.made = 0

    def rows(self, asked: Asked, at_least: Any) -> Iterable[tuple[Any, ...]]:
        self.asked.append(asked)
        places = {name: place for place, name in enumerate(self.columns)}
        found = [
            row
            for row in self.every
            if row[2] >= (at_least or 0)
            and all(row[places[name]] == value for name, value in asked.equal.items())
        ]
        for name, descending in reversed(asked.order):
            found.sort(key=itemgetter(places[name]), reverse=descending)
        return Counted(self, found)


class Counted:
    """Rows that are counted when they are read."""

    def __init__(self, boats: Boats, rows: list[tuple[Any, ...]]) -> None:
        self.boats, self.rows = boats, rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for row in self.rows:
            self.boats.made += 1
            yield row


@pytest.fixture(params=modules(), ids=lambda module: module.__name__)
def module(request: pytest.FixtureRequest) -> ModuleType:
    """Every module whose connections this Python has."""
    return request.param


@pytest.fixture
def numbers() -> Numbers:
    return Numbers()


@pytest.fixture
def connection(module: ModuleType, numbers: Numbers) -> Any:
    """One with the function and a table of two questions."""
    connection = module.connect(":memory:")
    add_table_function(connection, numbers)
    connection.execute("create table questions (id integer primary key, text text)")
    connection.execute("insert into questions values (1, 'boat'), (2, 'storm')")
    yield connection
    connection.close()


@pytest.fixture
def ask(connection: Any) -> Any:
    """Runs SQL on that connection."""
    return lambda sql, *parameters: connection.execute(sql, parameters).fetchall()


def test_rows_have_their_columns_in_order(ask: Any) -> None:
    assert ask("select * from numbers('boat', 2)") == [(1, "boat 1", 1.0), (2, "boat 2", 0.5)]
    assert ask("select * from numbers('boat', '1')") == [(1, "boat 1", 1.0)]


def test_the_arguments_are_hidden_columns(ask: Any) -> None:
    assert ask("select query, options from numbers('boat', 1)") == [("boat", 1)]
    assert ask("select word from numbers where query = 'boat' and options = 1") == [("boat 1",)]


@pytest.mark.parametrize("value", ["ü 🐦", "", 7, -(2**62), 0.25, b"\0\xff", b"", None])
def test_every_kind_of_value_arrives_as_it_was(ask: Any, numbers: Numbers, value: Any) -> None:
    ask("select count(*) from numbers(?, 2)", value)
    assert numbers.asked == [(value, 2)]


def test_a_table_with_a_question_in_each_row(ask: Any) -> None:
    """The argument comes from the other table, whichever of them is named first."""
    answers = [("boat", "boat 1"), ("boat", "boat 2"), ("storm", "storm 1"), ("storm", "storm 2")]
    for tables in ("questions as q, numbers(q.text, 2) as n", "numbers(q.text, 2) n, questions q"):
        assert ask(f"select q.text, n.word from {tables} order by q.id, n.rank") == answers


def test_options_may_come_from_the_other_table_too(ask: Any) -> None:
    sql = "select q.id, n.word from questions as q, numbers(q.text, q.id) as n order by q.id, rank"
    assert ask(sql) == [(1, "boat 1"), (2, "storm 1"), (2, "storm 2")]


def test_a_join_on_a_column_asks_once(ask: Any, numbers: Numbers) -> None:
    sql = """
        select q.id, n.rank from questions as q
        left join numbers('boat', 2) as n on n.word = q.text || ' 1' order by q.id
    """
    assert ask(sql) == [(1, 1), (2, None)]
    assert numbers.asked == [("boat", 2)]


def test_every_run_of_a_statement_asks_anew(ask: Any, numbers: Numbers) -> None:
    for _ in range(2):
        ask("select * from numbers('boat', 1)")
    assert len(numbers.asked) == 2


def test_where_order_limit_and_count(ask: Any) -> None:
    assert ask("select rank from numbers('a', 9) where rank <= ?", "2") == [(1,), (2,)]
    assert ask("select rank from numbers('a', 3) order by rank desc") == [(3,), (2,), (1,)]
    assert ask("select rank from numbers('a', 9) order by rank limit 1 offset 4") == [(5,)]
    assert ask("select count(*), max(share) from numbers('a', 9)") == [(9, 1.0)]
    assert ask("with n as (select * from numbers('a')) select count(*) from n, n") == [(9,)]
    assert ask("select word from numbers where query in ('a', 'b') and options = 1") == [
        ("a 1",),
        ("b 1",),
    ]


def test_order_by_rank_needs_no_sorting(ask: Any) -> None:
    def sorts(sql: str) -> bool:
        return "ORDER BY" in str(ask(f"explain query plan {sql}"))

    assert not sorts("select word from numbers('a') order by rank")
    assert sorts("select word from numbers('a') order by rank desc")
    assert sorts("select word from numbers('a') order by word")
    assert sorts("select word from numbers where query in ('a', 'b') order by rank")


@pytest.fixture
def boats(connection: Any) -> Boats:
    """The function ``boats``, beside a real table ``fleet`` of the same rows."""
    boats = Boats()
    add_table_function(connection, boats)
    connection.execute("create table fleet (name text, port text, length integer)")
    connection.executemany("insert into fleet values (?, ?, ?)", boats.every)
    return boats


@pytest.mark.parametrize(
    "sql",
    [
        "select * from boats where name = 'Ada'",
        "select * from boats where name = 'Ada' and port = 'Kiel' and length = 1",
        "select * from boats where name = 'ada' collate nocase order by name, port",
        "select * from boats where name = 5",
        "select * from boats where name = null or name is null",
        "select * from boats where name is 'Zoë' order by length",
        "select * from boats where name = X'416461'",
        "select * from boats where name in ('Ada', 'Zoë', 'none') order by port desc, name",
        "select * from boats where name = 'Ada' or port = 'Kiel' order by name, port",
        "select * from boats where name > 'Z' order by name, port limit 2 offset 1",
        "select * from boats where not name = 'Ada' order by length desc, name desc, port limit 3",
        "select * from boats order by name collate nocase, name, port",
        "select * from boats order by length + 1, name, port",
        "select port, count(*), max(length) from boats group by port order by 2, 1",
        "select distinct port from boats order by port desc",
        "select count(*), sum(length) from boats where port = 'Oslo'",
        "select a.name, b.port from boats a join boats b on b.name = a.name order by 1, 2",
        "select a.name, b.length from boats a left join boats b on b.name = a.port order by 1, 2",
        "select name from boats where port = (select max(port) from boats) order by name desc",
        "select name from boats union select port from boats order by 1",
    ],
)
def test_what_is_heeded_gives_the_rows_of_a_real_table(ask: Any, boats: Boats, sql: str) -> None:
    assert ask(sql) == ask(sql.replace("boats", "fleet"))


def test_a_source_is_told_what_is_asked_and_makes_only_the_rows_that_are_read(
    ask: Any, boats: Boats
) -> None:
    def told(sql: str) -> Asked:
        boats.asked, boats.made = [], 0
        ask(sql)
        (one,) = boats.asked
        return one

    assert told("select length from boats(1) where name = 'Ada' and port like 'K%'") == Asked(
        {"name": "Ada"}, (), frozenset({"name", "port", "length"})
    )
    assert boats.made == 1
    order = (("length", True), ("name", False))
    assert told("select port from boats order by length desc, name limit 2").order == order
    assert boats.made == 2
    assert told("select port from boats where name = 'x' collate nocase").equal == {}
    assert told("select 1 from boats where name = 5").equal == {}
    assert told("select 1 from boats order by name collate nocase").order == ()
    assert told("select name from boats limit 1 offset 3").columns == {"name"}
    assert boats.made == 4
    boats.asked = []
    ask("select b.port from questions as q cross join boats as b where b.name = q.text")
    assert [one.equal for one in boats.asked] == [{"name": "boat"}, {"name": "storm"}]


def test_a_view_may_ask(ask: Any) -> None:
    ask("create view boats as select * from numbers('boat', 2)")
    assert ask("select word from boats where rank = 2") == [("boat 2",)]


def test_a_refusal_is_the_statements_error_word_for_word(ask: Any, module: ModuleType) -> None:
    with pytest.raises(module.OperationalError) as refused:
        ask("select * from numbers('a', 5000)")
    assert str(refused.value) == "limit: at most 1,000 — not %s, not %n"
    with pytest.raises(module.OperationalError, match="what to search for is missing"):
        ask("select * from numbers")
    with pytest.raises(module.OperationalError, match="too many arguments"):
        ask("select * from numbers('a', 1, 2)")
    assert len(ask("select * from numbers('a')")) == 3


def test_a_connection_has_several_functions_and_one_may_need_no_argument(
    ask: Any, connection: Any
) -> None:
    letters = Letters()
    add_table_function(connection, letters)
    assert ask("select * from letters") == ask("select * from letters()") == [("b",), ("a",)]
    assert ask("select * from letters('c')") == [("c",), ("b",), ("a",)]
    assert ask("select l.letter, n.word from letters() l, numbers(l.letter, 1) n order by 1") == [
        ("a", "a 1"),
        ("b", "b 1"),
    ]


def test_a_function_registered_again_answers_statements_prepared_before(
    module: ModuleType,
) -> None:
    connection, sql = module.connect(":memory:"), "select word from numbers('a', 1)"
    for _ in range(2):  # the second statement is the first one, from the connection's cache
        numbers = Numbers()
        add_table_function(connection, numbers)
        assert connection.execute(sql).fetchall() == [("a 1",)]
        assert len(numbers.asked) == 1
    connection.close()


def test_without_its_source_a_function_is_an_error(module: ModuleType) -> None:
    connection = module.connect(":memory:")
    add_table_function(connection, Numbers())
    with pytest.raises(module.OperationalError):
        connection.execute("select * from numbers('a')")
    connection.close()


def test_a_closed_or_a_foreign_connection_is_refused(module: ModuleType) -> None:
    assert why_unavailable(module) is None
    connection = module.connect(":memory:")
    connection.close()
    with pytest.raises(TableFunctionUnavailable, match="closed"):
        add_table_function(connection, Numbers())
    with pytest.raises(TableFunctionUnavailable, match="not known"):
        add_table_function(object(), Numbers())


PRELUDE = """
import gc, importlib, sys, threading, time
from memory_store.errors import MemoryStoreError
from memory_store.sql.table_function import add_table_function

sqlite3 = importlib.import_module(sys.argv[1])

class Numbers:
    name, columns = "numbers", {"rank": "integer", "word": "text"}
    parameters = {"query": None, "options": None}
    heeds = ()
    def __init__(self, raises=None):
        self.raises = raises
    def rows(self, asked, query, options):
        if self.raises is not None:
            raise self.raises
        return [(n, f"{query} {n}") for n in range(int(options or 3))]

def connected(source=None):
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    source = source or Numbers()
    add_table_function(connection, source)
    connection.create_function("keeps", 0, lambda: source)  # alive as long as the connection
    return connection

def errors(connection, sql, message=None):
    try:
        connection.execute(sql).fetchall()
    except (sqlite3.Error, MemoryError) as error:
        assert message in (None, str(error)), error
        return str(error)
    raise AssertionError("no error")
"""

ORDEALS = {
    "the interpreter ends while connections and cursors are open": """
        kept = []
        for number in range(20):
            connection = connected()
            cursor = connection.execute("select * from numbers('a', 50)")
            next(cursor)
            kept.append((connection, cursor))
        kept.append(kept)
    """,
    "a connection is closed under its cursors": """
        connection = connected()
        cursors = [connection.execute(f"select * from numbers('{n}', 9)") for n in range(1_000)]
        for cursor in cursors:
            next(cursor)
        assert next(cursors[7]) == (1, "7 1")
        connection.close()
        try:
            next(cursors[0])
        except sqlite3.ProgrammingError:
            pass
        else:
            raise AssertionError("no error")
    """,
    "a cursor is the last thing that knows its connection": """
        cursor = connected().execute("select * from numbers('a', 9)")
        next(cursor)
        gc.collect()
        assert len(cursor.fetchall()) == 8
    """,
    "the source raises whatever there is": """
        for raised in (ValueError("private words"), RecursionError(), MemoryError(), SystemExit(3),
                       GeneratorExit(), KeyboardInterrupt(), AssertionError("private words")):
            connection = connected(Numbers(raised))
            for sql in ("select * from numbers('a')", "select 1 from numbers('a'), numbers('b')"):
                assert "private" not in errors(connection, sql)
            connection.close()
        strange = Numbers(MemoryStoreError("with \\0, \\ud800 and %s"))
        errors(connected(strange), "select * from numbers('a')", "with , ? and %s")
    """,
    "many threads, each with its connections": """
        def work():
            for turn in range(10):
                connection = connected()
                for _ in range(10):
                    sql = "select * from numbers('a', 10) as a, numbers(a.word, 3)"
                    assert len(connection.execute(sql).fetchall()) == 30
                if turn % 2:
                    connection.close()
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    """,
    "daemon threads are in the middle of it at the end": """
        begun = threading.Barrier(5)
        def work():
            connection = connected()
            begun.wait()
            while True:
                connection.execute("select * from numbers('a', 1000)").fetchall()
        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        begun.wait()
    """,
    "a progress handler or another thread interrupts": """
        connection = connected()
        long = "select count(*) from numbers('a', 999), numbers('b', 999), numbers('c', 999)"
        connection.set_progress_handler(lambda: 1, 50)
        for _ in range(20):
            errors(connection, long, "interrupted")
        connection.set_progress_handler(None, 0)
        class Interrupting(Numbers):
            def rows(self, asked, query, options):
                connection.interrupt()
                return super().rows(asked, query, options)
        source = Interrupting()
        add_table_function(connection, source)
        errors(connection, long, "interrupted")
        add_table_function(connection, Numbers.keep)
        assert len(connection.execute("select * from numbers('a')").fetchall()) == 3
    """,
    "a search asks its own connection": """
        class Nested(Numbers):
            def rows(self, asked, query, options):
                if query != "inner":
                    connection.execute("select * from numbers('inner')").fetchall()
                    connection.execute("pragma database_list").fetchall()
                return super().rows(asked, query, options)
        source = Nested()
        connection = connected(source)
        assert len(connection.execute("select * from numbers('a', 9)").fetchall()) == 9
    """,
}


@pytest.mark.parametrize("ordeal", ORDEALS)
def test_the_process_survives_when(ordeal: str, module: ModuleType) -> None:
    script = PRELUDE + "Numbers.keep = Numbers()\n" + textwrap.dedent(ORDEALS[ordeal])
    done = python("-X", "dev", "-W", "ignore", "-c", script, module.__name__, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
