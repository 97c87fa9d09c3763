"""How many searches are let in: in SQL never all of Datasette's threads, on pages a queue."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from datasette.app import Datasette
from threads import no_thread_to_be_had

from datasette_hybrid.permissions.asker import Asker, asker
from datasette_hybrid.requests import admission
from datasette_hybrid.requests.admission import (
    WAITING,
    WORKERS,
    QueueFullError,
    Seats,
    WorkQueue,
    seats_in_sql,
    work,
)
from memory_store.errors import BusyError

from .conftest import ALLOW, Filled, Serve, Served

TABLE = "select title from hybrid_search('tomatoes', 1)"
VALUE = "select value ->> 'title' as title from json_each(hybrid_search('tomatoes', 1))"
REFUSED = "too many searches at once: try again in a moment"
SHORT = 0.2  # seconds
NEXT = hasattr(Datasette, "allowed")
ROWS = [{"title": "Watering the tomatoes"}]


@pytest.fixture
async def patient(filled: Filled, serve: Serve) -> Served:
    """Asked by an actor who may read, with a time limit that no test comes near."""
    return await with_threads(3, filled, serve)


async def with_threads(count: int, filled: Filled, serve: Serve) -> Served:
    settings = {"key-file": str(filled.key_file), "allow": ALLOW}
    limits = {"sql_time_limit_ms": 20_000, "num_sql_threads": count}
    served = await serve(filled.path, options={"notes": settings}, settings=limits)
    return served.by("bob")


async def asked_by(actor: str | None, queue: WorkQueue, call: Any) -> Any:
    asker.set(Asker({}, actor_id=actor))
    return await queue.run(call)


@asynccontextmanager
async def busy(queue: WorkQueue, calls: int, actor: str | None = None) -> AsyncIterator[None]:
    """So many calls in the queue, which end with the block."""
    done = threading.Event()
    held = [asyncio.create_task(asked_by(actor, queue, done.wait)) for _ in range(calls)]
    await asyncio.sleep(0)  # each has taken its place
    try:
        yield
    finally:
        done.set()
        ended = await asyncio.gather(*held, return_exceptions=True)
    for one in ended:  # a stream that looked just then had a place, too: the queue was as full
        if isinstance(one, BaseException) and not isinstance(one, QueueFullError):
            raise one


async def answers(served: Served, sql: str) -> Any:
    """What Datasette says to a query: rows, or an error's text. Asked without a detour: 1.0 answers
    the other address by this one, and both would wait."""
    response = await served.datasette.client.get(
        f"/{served.database}{'/-/query' if NEXT else ''}.json",
        params={"sql": sql, "_shape": "array"},
        cookies=served.cookies,
        follow_redirects=True,
    )
    return response.json() if response.status_code == 200 else response.text


@pytest.mark.parametrize("sql", [TABLE, VALUE.replace("->> 'title' as title", "as title")])
async def test_searches_in_sql_leave_a_thread_for_everybody_else(patient: Served, sql: str) -> None:
    async with busy(work, WORKERS):
        asked = [asyncio.ensure_future(answers(patient, sql)) for _ in range(8)]
        _, waiting = await asyncio.wait(asked, timeout=SHORT)
        assert len(waiting) == 8
        for path in ("/notes/memories.json", "/notes/collections.json"):
            assert (await patient.get(path)).status_code == 200
    for answered in waiting:
        assert "Watering" in str(await answered)


async def test_a_search_in_sql_beyond_those_that_wait_or_that_no_address_names_is_refused(
    patient: Served,
) -> None:
    many = 2 + WAITING + 1  # as many as have a seat or wait, and one
    async with busy(work, WORKERS):
        asked = [asyncio.ensure_future(answers(patient, TABLE)) for _ in range(many)]
        (refused,), _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        assert REFUSED in str(refused.result())
        with pytest.raises(QueueFullError):
            seats_in_sql(patient.datasette).run(lambda: None, 1)
    for answered in asked:
        assert answered is refused or await answered == ROWS


async def test_who_waits_for_a_turn_in_vain_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "LONGEST", SHORT)
    seats = Seats(WorkQueue(workers=1), 2)

    async def request() -> None:
        async with seats.turn():
            await asyncio.sleep(3 * SHORT)

    await asyncio.wait_for(asyncio.gather(*(request() for _ in range(30))), 30 * SHORT)


async def test_a_turn_ends_when_the_answer_begins_and_when_the_request_does() -> None:
    seats = Seats(WorkQueue(workers=1), 2)
    ends: list[str] = []

    async def request(name: str, answer: bool) -> None:
        async with seats.turn() as over:
            ends.append(f"{name} begins")
            if answer:
                over()
                await asyncio.sleep(SHORT)
            ends.append(f"{name} ends")

    await asyncio.gather(request("slow reader", True), request("next", False))
    assert ends == ["slow reader begins", "next begins", "next ends", "slow reader ends"]


async def test_a_refused_value_says_that_it_may_be_asked_again(patient: Served) -> None:
    async with busy(work, WORKERS + WAITING, "bob"):
        (row,) = await patient.sql("select hybrid_search('tomatoes') ->> '$[0].status' as status")
        assert row["status"] == 429
        assert REFUSED in str(await answers(patient, TABLE))
    assert await answers(patient, TABLE) == ROWS


@pytest.mark.parametrize("threads", [0, 1, 2])
async def test_one_search_at_a_time_is_always_possible(
    filled: Filled, serve: Serve, threads: int
) -> None:
    served = await with_threads(threads, filled, serve)
    for _ in range(2):
        assert await answers(served, TABLE) == ROWS
        assert await answers(served, VALUE) == ROWS


async def test_everything_at_once_ends(patient: Served) -> None:
    """Pages, JSON and SQL in one queue: no one waits in a circle, and each gets an answer."""
    paths = ("?q=tomatoes", ".json?q=tomatoes", "/notes/memories", "/-/hybrid?q=tomatoes")

    async def visit(path: str) -> bool:
        return (await patient.get(path)).status_code in (200, 429)

    async def select(sql: str) -> bool:
        answer = await answers(patient, sql)
        return answer == ROWS or REFUSED in str(answer) or answer == [{"title": None}]

    asked = [visit(path) for path in paths * 6] + [select(sql) for sql in (TABLE, VALUE) * 12]
    assert all(await asyncio.wait_for(asyncio.gather(*asked), timeout=300))
    assert await answers(patient, TABLE) == ROWS


async def test_one_who_asks_for_much_keeps_no_other_waiting_for_all_of_it() -> None:
    queue, go_on = WorkQueue(workers=1, waiting=3, others=4), threading.Event()
    done: list[str] = []

    def work_of(name: str) -> None:
        assert go_on.wait(120)
        done.append(name)

    def asked(name: str) -> asyncio.Task[None]:
        return asyncio.create_task(asked_by(name, queue, partial(work_of, name)))

    flood = [asked("mallory") for _ in range(5)]
    await asyncio.sleep(0)
    late = [asked("alice"), asked("bob")]
    await asyncio.sleep(0)
    go_on.set()
    (*fitting, beyond), _ = await asyncio.gather(
        asyncio.gather(*flood, return_exceptions=True), asyncio.gather(*late)
    )
    assert fitting == [None] * 4
    assert isinstance(beyond, QueueFullError)
    assert done == ["mallory", "alice", "bob", *["mallory"] * 3]


async def test_a_caller_who_waits_too_long_is_gone_when_their_turn_comes() -> None:
    queue = WorkQueue(workers=1, waiting=1)
    came = threading.Event()
    async with busy(queue, 1):
        with pytest.raises(QueueFullError):
            await asyncio.to_thread(queue.wait_for, came.set, 0.01)
        with pytest.raises(QueueFullError):  # the place is free again
            await asyncio.to_thread(queue.wait_for, came.set, 0.01)
    assert await queue.run(came.is_set) is False


async def test_a_call_that_has_begun_is_waited_for_and_may_fail() -> None:
    queue = WorkQueue(workers=1, waiting=0)
    begun = threading.Event()

    def slow() -> str:
        begun.set()
        return "done" if hurry.wait(120) else "too late"

    hurry = threading.Event()
    answer = asyncio.ensure_future(asyncio.to_thread(queue.wait_for, slow, 60))
    assert await asyncio.to_thread(begun.wait, 120)
    with pytest.raises(QueueFullError):
        await queue.run(slow)
    hurry.set()
    assert await answer == "done"
    with pytest.raises(ZeroDivisionError):
        queue.wait_for(lambda: 1 // 0, 10)
    hurry.clear()
    with pytest.raises(BusyError):
        await asyncio.to_thread(queue.wait_for, slow, 0.001)
    hurry.set()


async def test_a_call_for_which_no_thread_is_to_be_had_keeps_no_place_and_is_never_made() -> None:
    queue = WorkQueue(workers=1, waiting=1)
    made: list[str] = []
    with no_thread_to_be_had():
        for _ in range(3):
            with pytest.raises(RuntimeError, match="new thread"):
                await queue.run(partial(made.append, "too early"))
    await queue.run(partial(made.append, "in time"))
    assert made == ["in time"]
