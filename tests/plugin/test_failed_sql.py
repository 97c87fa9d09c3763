"""SQL that failed leaves nothing behind that could stop the server."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import Served

LONG = 10.0  # seconds: until somebody waits in vain
FAILING = {
    "by itself": "select abs(-9223372036854775808)",
    "for its length": "with recursive c(n) as (select 1 union all select n + 1 from c) "
    "select count(*) from c",
    "in a search": "select title from hybrid_search('anything', 10, 'mode=nothing')",
}


@pytest.fixture
def no_collecting() -> Iterator[None]:
    """Garbage is collected by the test alone."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("how", FAILING)
@pytest.mark.parametrize("page", ["/notes", "/notes.json"])
@pytest.mark.usefixtures("no_collecting")
async def test_garbage_is_collected_while_the_connection_of_sql_that_failed_is_busy(
    served: Served, page: str, how: str
) -> None:
    """A cursor that is freed waits for its connection. One that works could wait for the freer."""
    served.datasette.executor._max_workers = 1  # the connection that is busy is that which failed
    database = served.datasette.databases["notes"]
    begun, collected = threading.Event(), threading.Event()

    def busy(connection: Any) -> bool:
        def wait() -> bool:
            begun.set()
            return collected.wait(LONG)

        connection.create_function("wait", 0, wait)
        return bool(connection.execute("select wait()").fetchone()[0])

    answer = await served.datasette.client.get(
        page,
        params={"sql": FAILING[how], "_timelimit": "50"},
        cookies=served.cookies,
        follow_redirects=True,
    )
    assert answer.status_code == 400 or "message-error" in answer.text, answer.text
    waiting = asyncio.ensure_future(database.execute_fn(busy))
    await asyncio.to_thread(begun.wait, LONG)
    gc.collect()
    collected.set()
    assert await waiting, "collecting garbage waited for the connection"
