"""SQL that failed leaves nothing behind that could stop the server."""

from __future__ import annotations

import functools
import gc
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from datasette_hybrid.vaults.registry import vaults_of
from memory_store.sqlite import sqlite3

from .conftest import ALLOW, Filled, Serve, Served, plain_datasette

LONG = 120.0  # seconds: until a visitor waits in vain
FAILING = {
    "by itself": "select abs(-9223372036854775808)",
    "for its length": "with recursive c(n) as (select 1 union all select n + 1 from c) "
    "select count(*) from c",
    "in a search": "select title from hybrid_search('anything', json_object('mode', 'nothing'))",
}


@pytest.fixture
def no_collecting() -> Iterator[None]:
    """Garbage is collected by the test alone, and only what comes of it."""
    gc.disable()
    gc.freeze()
    yield
    gc.unfreeze()
    gc.enable()


@pytest.mark.parametrize("threads", [0, 1])
@pytest.mark.parametrize("how", FAILING)
@pytest.mark.parametrize("page", ["/notes", "/notes.json"])
@pytest.mark.usefixtures("no_collecting")
async def test_garbage_is_collected_while_the_connection_of_sql_that_failed_is_busy(
    filled: Filled, serve: Serve, page: str, how: str, threads: int
) -> None:
    """A cursor that is freed waits for its connection. One that works could wait for the freer.

    There is one connection, of one thread or of the event loop's.
    """
    settings = {"key-file": str(filled.key_file), "allow": ALLOW}
    limits = {"num_sql_threads": threads}
    served = await serve(filled.path, options={"notes": settings}, settings=limits)
    await fail(served, page, how)
    assert await can_be_collected(served), "collecting garbage waited for the connection"


@pytest.mark.usefixtures("no_collecting")
async def test_the_same_holds_where_another_plugin_wraps_how_threads_are_given_work(
    filled: Filled,
) -> None:
    settings = {"key-file": str(filled.key_file), "allow": ALLOW}
    configuration = {"plugins": {"datasette-hybrid": {"databases": {"notes": settings}}}}
    limits = {"num_sql_threads": 1}
    datasette = plain_datasette((filled.path,), configuration, settings=limits)
    usual = datasette.executor.submit
    datasette.executor.submit = functools.wraps(usual)(lambda *given: usual(*given))
    await datasette.invoke_startup()
    served = Served(datasette)
    await fail(served, "/notes.json", "by itself")
    assert await can_be_collected(served), "collecting garbage waited for the connection"
    vaults_of(datasette).lock_all()


async def fail(served: Served, page: str, how: str) -> None:
    answer = await served.datasette.client.get(
        page,
        params={"sql": FAILING[how], "_timelimit": "50"},
        cookies=served.by("root").cookies,
        follow_redirects=True,
    )
    assert "too many arguments" not in answer.text, "it fails while it runs, not before"
    assert answer.status_code == 400 or "message-error" in answer.text, answer.text


async def can_be_collected(served: Served) -> bool:
    """Whether a thread can collect garbage while a statement waits for it."""
    begun, collected = threading.Event(), threading.Event()

    def collect() -> None:
        begun.wait(LONG)
        gc.collect()
        collected.set()

    def wait() -> bool:
        begun.set()
        return collected.wait(LONG)

    def busy(connection: Any) -> bool:
        connection.create_function("wait", 0, wait)
        return bool(connection.execute("select wait()").fetchone()[0])

    collecting = threading.Thread(target=collect)
    collecting.start()
    answer: bool = await served.datasette.databases["notes"].execute_fn(busy)
    collecting.join()
    return answer


@pytest.mark.parametrize(
    ("database", "sql", "said"),
    [
        (
            "shop",
            "select nope from orders",
            "no such column: nope, sql = 'select nope from orders'",
        ),
        ("shop", "select hybrid_search('nope', nope)", ""),
        ("called", "select nope from orders", ""),
        ("_memory", "select nope", ""),
        ("notes", "select nope", ""),
    ],
)
async def test_sql_that_cannot_be_about_a_vault_is_named_where_it_fails(
    filled: Filled, serve: Serve, capfd: Any, tmp_path: Path, database: str, sql: str, said: str
) -> None:
    others = [tmp_path / "shop.db", tmp_path / "called.db"]
    for path in others:
        with closing(sqlite3.connect(path)) as file:
            file.execute("create table orders (id)")
            if path.stem == "called":
                file.execute("create view v as select hybrid_search(id) from orders")
    options = filled.options(allow=ALLOW)
    served = await serve(filled.path, *others, options=options, memory=True)
    with pytest.raises(sqlite3.OperationalError):
        await served.datasette.get_database(database).execute(sql)
    (line,) = [one for one in capfd.readouterr().err.splitlines() if "ERROR" in one]
    told = f": {said}" if said else ""
    assert line == f"ERROR: database = {database}, SQL failed: OperationalError{told}"
