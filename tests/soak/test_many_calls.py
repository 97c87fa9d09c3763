"""An assistant's server is called a hundred thousand times, and holds no more memory than before.

``SOAK_CALLS`` sets how often. Beside the verdict it prints what was held at the start, at each
quarter and at the end.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # flatness

from flatness import growth

from memory_store.store import MemoryStore

pytest.importorskip("mcp", reason="the extra mcp is not installed")
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

pytestmark = pytest.mark.soak

CALLS = int(os.environ.get("SOAK_CALLS", "100000"))
SAMPLES = 100
POPULATION = 200  # memories that are kept alive
MOST_GROWTH = 0.05  # of the memory held, in the later half of the calls
UNLIMITED = """
from memory_store.assistants import allowance
allowance.CALLS = allowance.BYTES = 10**12  # a minute; the usual limit would take seven hours
from memory_store.cli import main
main()
"""
SUBJECTS = ("otters", "windmills", "lanterns", "harbours", "orchards", "glaciers")


class Work:
    """What one assistant asks, by chance, of a vault whose size stays about the same."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self.choose = random.Random(1)
        self.alive: dict[str, int] = {}
        self.asked: Counter[str] = Counter()

    async def use(self, tool: str, **arguments: Any) -> Any:
        self.asked[tool] += 1
        answer = await self.session.call_tool(tool, arguments)
        assert not answer.is_error, answer.content
        return answer.structured_content

    async def refused(self) -> None:
        self.asked["refused"] += 1
        answer = await self.session.call_tool(
            "memory_search", {"limit": self.asked["refused"] + 99}
        )
        assert answer.is_error

    async def step(self) -> None:
        """One call."""
        chance, subject = self.choose.random(), self.choose.choice(SUBJECTS)
        if len(self.alive) < POPULATION or chance < 0.05:
            text = f"Note {sum(self.asked.values())} on {subject}, seen in the harbour."
            new = {"text": text, "topics": [subject], "type": self.choose.choice(["fact", "task"])}
            (added,) = (await self.use("memory_add", memories=[new]))["memories"]
            self.alive[added["id"]] = 1
        elif chance < 0.10:
            id_ = self.choose.choice([*self.alive])
            if len(self.alive) > POPULATION:
                await self.use("memory_update", id=id_, delete=True, version=self.alive.pop(id_))
            else:
                changed = await self.use("memory_update", id=id_, text=f"Anew on {subject}.")
                self.alive[id_] = changed["version"]
        elif chance < 0.6:
            shape = self.choose.choice(["json", "compact"])
            await self.use("memory_search", query=f"{subject} harbour", format=shape)
        elif chance < 0.8:
            await self.use("memory_read", ids=self.choose.sample([*self.alive], 2))
        elif chance < 0.88:
            await self.use("tasks", topic=[subject])
        elif chance < 0.92:
            await self.use("memory_landscape")
        elif chance < 0.96:
            await self.use("memory_start", query=subject)
        elif chance < 0.98:
            self.asked["resource"] += 1
            await self.session.read_resource(f"memory://notes/{self.choose.choice([*self.alive])}")
        else:
            await self.refused()


async def test_calls_without_end_take_no_more_memory(
    store: MemoryStore, key_file: Path, tiny_model: Path
) -> None:
    command = ["-c", UNLIMITED, "mcp", str(store.path), "--key-file", str(key_file), "--write"]
    environment = {**os.environ, "MEMORY_STORE_MODEL": str(tiny_model)}
    server = StdioServerParameters(command=sys.executable, args=command, env=environment)
    earlier = set(psutil.Process().children())
    async with (
        stdio_client(server) as (incoming, outgoing),
        ClientSession(incoming, outgoing) as session,
    ):
        await session.initialize()
        (process,) = set(psutil.Process().children()) - earlier
        work, held, begun = Work(session), [], time.monotonic()
        every = max(1, CALLS // SAMPLES)
        for number in range(CALLS):
            if number % every == 0:
                held.append(process.memory_info().rss)
                if number % (25 * every) == 0:
                    print(_line(number, held[-1], begun), flush=True)
            await work.step()
        held.append(process.memory_info().rss)
        print(_line(CALLS, held[-1], begun), dict(work.asked), flush=True)
    assert {one.id for one in store.list(limit=10 * POPULATION)} == {*work.alive}
    assert growth(held) <= MOST_GROWTH, held


def _line(calls: int, held: int, begun: float) -> str:
    return f"{calls:,} calls: {held / 1e6:.0f} MB, {time.monotonic() - begun:.0f} s"
