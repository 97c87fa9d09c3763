"""SQL that failed leaves nothing behind that could stop the server."""

from __future__ import annotations

import functools
import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from datasette_hybrid.vaults.registry import vaults_of

from .conftest import ALLOW, Filled, Serve, Served, plain_datasette

LONG = 120.0  # seconds: until a visitor waits in vain
FAILING = {
    "by itself": "select abs(-9223372036854775808)",
    "for its length": "with recursive c(n) as (select 1 union all select n + 1 from c) "
    "select count(*) from c",
    "in a search": "select title from hybrid_search('anything', 10, 'mode=nothing')",
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
        cookies=served.cookies,
        follow_redirects=True,
    )
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
