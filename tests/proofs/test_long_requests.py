"""What is looked at in every statement and every address takes no longer than its length.

Before a request is known to be allowed, its address and its SQL are compared with patterns. A
pattern that tries again from each place holds up everybody's requests at once.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Any

import pytest
from plugin.conftest import Filled, Serve, Served

from datasette_hybrid.tables.order import RANKED

LONG = 60_000  # bytes: uvicorn takes no longer line of a request
SECONDS = 0.5  # of CPU, of a server that does nothing else: it was a minute, 8 and 2 seconds
SQL = f"select a{' from memories where x' * 900} {RANKED} {RANKED * 150}{' order by a' * 1_900} ("
assert 50_000 < len(SQL) < LONG


async def seconds_of(answer: Awaitable[Any]) -> float:
    begun = time.process_time()
    await answer
    return time.process_time() - begun


@pytest.fixture
async def stranger(filled: Filled, serve: Serve) -> Served:
    stranger = (await serve(filled.path, options=filled.options())).by(None)
    await stranger.get("/notes/-/nowhere")  # whatever is done once is done
    return stranger


async def test_a_stranger_s_long_sql(stranger: Served) -> None:
    client = stranger.datasette.client
    asked = client.get("/notes.json", params={"sql": SQL}, follow_redirects=True)
    assert await seconds_of(asked) < SECONDS


async def test_a_stranger_s_long_address(stranger: Served) -> None:
    path = "/-/hybrid" * (LONG // 9)
    assert await seconds_of(stranger.datasette.client.post(f"{path}/x")) < SECONDS


async def test_a_long_statement_that_writes(stranger: Served) -> None:
    database = stranger.datasette.databases["notes"]

    async def written() -> None:
        with pytest.raises(Exception, match="syntax error"):
            await database.execute_write(f"vacuum{' ' * LONG}(")

    assert await seconds_of(written()) < SECONDS
