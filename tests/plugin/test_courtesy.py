"""While several search, other requests go first, for a moment; no one waits for long."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic
from typing import Any

import httpx
import pytest
from datasette import Response, hookimpl
from datasette.plugins import pm

from datasette_hybrid.requests import turns
from datasette_hybrid.requests.admission import WorkQueue
from datasette_hybrid.requests.turns import Requests, let_others_go_first, turn_to_search

from .conftest import Filled, Serve

PATIENCE = 30.0  # much longer than usual, so that a busy machine is not taken for waiting
SHORT = 0.05


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE", PATIENCE)


async def waited(requests: Requests, *, search: bool, steps: int = 1) -> float:
    """Seconds that a request waits for others in so many steps."""
    with requests.answering(search=search):
        await asyncio.sleep(0)  # the others have begun, too
        begun = monotonic()
        for _ in range(steps):
            await let_others_go_first()
        return monotonic() - begun


@asynccontextmanager
async def unfinished(requests: Requests, *searches: bool) -> AsyncIterator[None]:
    """Requests that are being answered meanwhile: whether each is a search."""
    over = asyncio.Event()

    async def answered(search: bool) -> None:
        with requests.answering(search=search):
            await over.wait()

    tasks = [asyncio.create_task(answered(search)) for search in searches]
    await asyncio.sleep(0)
    yield
    over.set()
    await asyncio.gather(*tasks)


async def test_who_searches_alone_waits_for_a_moment_only() -> None:
    requests = Requests()
    async with unfinished(requests, False):
        assert 0 < await waited(requests, search=True) < PATIENCE / 4


async def test_several_searches_wait_until_the_others_are_answered() -> None:
    requests, ended = Requests(), asyncio.Event()

    async def other() -> float:
        with requests.answering(search=False):
            await asyncio.sleep(SHORT)
            ended.set()
        return monotonic()

    async def search() -> float:
        with requests.answering(search=True):
            await asyncio.sleep(0)
            await let_others_go_first()
            assert ended.is_set()
            return monotonic()

    answered = await asyncio.gather(other(), search(), search())
    assert answered[0] <= min(answered[1:])


async def test_those_who_came_while_a_search_waited_for_its_turn_go_first_and_find_a_thread() -> (
    None
):
    requests, queue = Requests(), WorkQueue(workers=1)
    go_on, others_ended = threading.Event(), threading.Event()

    async def search(call: Callable[[], bool]) -> bool:
        with requests.answering(search=True):
            return await queue.run(call, turn_to_search(queue.workers))

    first = asyncio.ensure_future(search(partial(go_on.wait, 120)))
    waiting = [asyncio.ensure_future(search(others_ended.is_set)) for _ in range(2)]
    await asyncio.sleep(0)
    with requests.answering(search=False):
        go_on.set()
        assert await first
        await asyncio.sleep(SHORT)
        assert await queue.run(lambda: "a table's cells") == "a table's cells"
        others_ended.set()
    assert await asyncio.gather(*waiting) == [True, True]


async def test_no_one_waits_longer_than_their_patience_in_however_many_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 0.5)
    requests = Requests()
    async with unfinished(requests, False):
        searches = [waited(requests, search=True, steps=20) for _ in range(3)]
        first, *others = await asyncio.gather(*searches)
    assert first < 5, "it came alone"
    assert all(0.45 <= seconds < 5 for seconds in others)


async def test_no_one_waits_for_requests_that_do_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's body that never arrives, or an assistant that listens for ten minutes."""
    monkeypatch.setattr(turns, "LONG", SHORT)
    requests = Requests()
    async with unfinished(requests, *[True] * 3, False):
        assert await waited(requests, search=True) < PATIENCE / 2
        async with unfinished(requests, False):  # one that has just begun
            assert await waited(requests, search=True) < PATIENCE / 2, "it searches alone"


async def test_a_thousand_requests_make_no_search_wait_much_longer() -> None:
    requests = Requests()
    async with unfinished(requests, *[True] * 1_000):
        with requests.answering(search=True):
            turn = turns._turn.get()
            assert turn is not None
            assert turn.left <= 4 * PATIENCE


async def test_other_pages_wait_for_no_one() -> None:
    requests = Requests()
    async with unfinished(requests, True, True, False):
        assert await waited(requests, search=False) < PATIENCE / 2


async def test_searches_in_sql_let_another_page_go_first_too(filled: Filled, serve: Serve) -> None:
    begun, over = asyncio.Event(), asyncio.Event()

    class Slow:
        __name__ = "slow"

        @hookimpl
        def register_routes(self) -> list[tuple[str, Any]]:
            async def answer() -> Response:
                begun.set()
                await over.wait()
                return Response.text("done")

            return [(r"^/-/slow$", answer)]

    pm.register(Slow(), "slow")
    try:
        served = (await serve(filled.path)).by("root")
        query = {"sql": "select 1 as found -- hybrid_search", "_shape": "array"}
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(served.datasette.app()),  # one, as of a server
            base_url="http://localhost",
            cookies=served.cookies,
            follow_redirects=True,
        ) as browser:
            other = asyncio.ensure_future(browser.get("/-/slow"))
            await begun.wait()
            asking = (browser.get("/notes.json", params=query) for _ in range(3))
            searches = [asyncio.ensure_future(one) for one in asking]
            await asyncio.wait(searches, timeout=1)
            assert [one.done() for one in searches].count(True) <= 1, "the first came alone"
            over.set()
            assert (await other).text == "done"
            assert [(await one).json() for one in searches] == [[{"found": 1}]] * 3
    finally:
        pm.unregister(name="slow")


async def test_a_page_that_searches_by_itself_does_not_wait_for_itself(
    filled: Filled, serve: Serve
) -> None:
    class Asking:
        __name__ = "asking"

        @hookimpl
        def register_routes(self) -> list[tuple[str, Any]]:
            async def ask(datasette: Any) -> Response:
                begun = monotonic()
                reply = await datasette.client.get("/notes/-/hybrid.json?q=")
                return Response.json([reply.status_code, monotonic() - begun])

            return [(r"^/-/ask$", ask)]

    pm.register(Asking(), "asking")
    try:
        served = await serve(filled.path)
        replies = await asyncio.gather(*(served.by("root").get("/-/ask") for _ in range(3)))
    finally:
        pm.unregister(name="asking")
    statuses, seconds = zip(*(reply.json() for reply in replies), strict=True)
    assert set(statuses) == {423}
    assert min(seconds) < PATIENCE
