"""``python -m benchmarks.load`` measures what it says, against a real Datasette."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks are no part of the package

from benchmarks import load
from benchmarks.visiting import COME_AGAIN, TICK, PassersBy, crowd
from memory_store.models.embedder import default_threads


@pytest.fixture
def loaded(tiny_model: Path, private_folders: Path, monkeypatch: pytest.MonkeyPatch) -> load.Loaded:
    """Two clients, a vault of thirty notes, and as little time as will do."""
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    monkeypatch.setattr(load, "WARM_UP", 0.1)
    monkeypatch.setattr(load, "SETTLED", 0.1)
    return load.measured(30, (2,), 0.3, 1)


@pytest.mark.soak  # a minute
def test_every_surface_is_asked_and_other_pages_beside_it(loaded: load.Loaded) -> None:
    assert [line.surface for line in loaded.lines] == ["page", "JSON", "SQL"]
    assert set(loaded.idle) == {"home", "table"}
    for line in loaded.lines:
        assert line.answered + line.turned_away > 0
        assert line.allowed == pytest.approx(
            load.ALLOWED * loaded.requests[line.surface] * max(1.0, 2 / default_threads())
        )
        assert line.allowed_bare == pytest.approx(
            load.ALLOWED * loaded.search * max(1.0, 2 / default_threads())
        )
    assert any(line.processor > 0 for line in loaded.lines), "what the server used is reported"
    assert loaded.memory[0] > 20_000_000, "a Datasette with an opened vault in it"
    written = json.loads(json.dumps(load.as_json(loaded)))
    assert len(written["headings"]) == len(written["lines"][0]["cells"])
    assert "Datasette" in written["versions"]
    line = replace(loaded.lines[0], p95=0.0, home=1.0, table=1.0, answered=100, turned_away=0)
    assert line.met
    assert not replace(line, turned_away=6).met, "95 of a hundred were not answered"
    assert not replace(line, p95=2 * line.allowed).met
    assert not replace(line, home=2.1).met


@asynccontextmanager
async def answering(status: dict[str, int]) -> AsyncIterator[tuple[int, Counter[str]]]:
    """A server of the least kind: every path with its status. Yields its port, and how often it
    was asked for each path."""
    asked: Counter[str] = Counter()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            path = head.split(b" ", 2)[1].decode()
            asked[path] += 1
            writer.write(f"HTTP/1.1 {status[path]} _\r\nContent-Length: 2\r\n\r\nok".encode())

    def ended(task: asyncio.Task[None]) -> None:
        task.exception()  # a visitor who leaves ends the wait for the next request

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(answer(reader, writer))
        task.add_done_callback(ended)

    server = await asyncio.start_server(served, "127.0.0.1")
    async with server:
        yield server.sockets[0].getsockname()[1], asked


async def test_a_crowd_counts_who_is_turned_away_and_who_passes_by_looks_on_the_beat() -> None:
    async with answering({"/": 200, "/full": 429}) as (port, requests):
        over, begun = asyncio.Event(), time.monotonic()
        passing = PassersBy(port, "", {"home": "/", "again": "/"})

        async def until_all_were_there() -> None:
            while passing.fewest < 1 or requests["/full"] < 3:
                await asyncio.sleep(0.01)
            over.set()

        asked, turned, *_ = await asyncio.gather(
            crowd(port, "", ["/"], 2, over),
            crowd(port, "", ["/full"], 3, over),
            passing.look(over),
            until_all_were_there(),
        )
        took = time.monotonic() - begun
    assert asked.turned_away == 0
    assert asked.answered
    assert turned.answered == []
    assert 3 <= turned.turned_away <= 3 * (1 + took // COME_AGAIN), (
        "each comes again a second later"
    )
    assert 1 <= passing.fewest <= 1 + took / TICK, "twice a second at most"


async def test_an_answer_that_is_none_ends_the_crowd() -> None:
    async with answering({"/": 500}) as (port, _):
        with pytest.raises(RuntimeError, match="/: 500"):
            await crowd(port, "", ["/"], 1, asyncio.Event())
