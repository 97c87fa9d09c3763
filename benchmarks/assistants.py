"""How long an assistant waits: its tools, the landscape, and the start of its server.

    python -m benchmarks.assistants [--notes 10000] [--runs 5]

The notes are drawn (see ``benchmarks.generated``). Prints Markdown: milliseconds of wall
time, the best, the median and the 95th of a hundred; and the least that this process used of a
processor, which says what the code needs on a machine that does other work, too.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import numpy as np

from benchmarks.generated import draw_vault
from memory_store.assistants.assistant import Assistant
from memory_store.assistants.tools import call
from memory_store.models.embedder import load_embedder
from memory_store.scopes import EVERYTHING
from memory_store.store import MemoryStore

COMMAND = (sys.executable, "-m", "memory_store")
CALLS = 40
FACT = "The boiler was serviced in spring by the firm from the harbour road; it wants a new valve"


def shown(name: str, taken: Sequence[tuple[float, float]]) -> None:
    """One line of the table."""
    wall = np.percentile([one * 1000 for one, _ in taken], [0, 50, 95])
    used = min(one * 1000 for _, one in taken)
    cells = [len(taken), *(f"{one:.0f}" for one in wall), f"{used:.0f}" if used else ""]
    print(f"| {name} | {' | '.join(map(str, cells))} |", flush=True)


def timed(work: Callable[[int], Any], runs: int) -> list[tuple[float, float]]:
    """Seconds of each run, and those that this process used of a processor."""
    return [once(partial(work, number)) for number in range(runs)]


def once(work: Callable[[], Any]) -> tuple[float, float]:
    """The same of one run."""
    begun, before = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - begun, time.process_time() - before


def tools(store: MemoryStore, queries: Sequence[str]) -> None:
    """The tools on an open vault."""
    helper = Assistant(store.limited_to(EVERYTHING), "write", "benchmark")

    def use(name: str, **given: Any) -> Any:
        return call(helper, name, given)

    def landscape(number: int) -> tuple[float, float]:
        use("memory_add", memories=[{"text": f"Changed {number} {FACT}"}])
        return once(store.landscape)

    use("memory_search", query=queries[0])
    ids = [one.id for one in store.list(limit=100)]
    shown("landscape, after a change", [landscape(number) for number in range(5)])
    shown("landscape, unchanged", timed(lambda _: store.landscape(), 5))
    asked = len(queries)
    calls: dict[str, Callable[[int], Any]] = {
        "memory_search": lambda n: use("memory_search", query=queries[n % asked]),
        "memory_read": lambda n: use("memory_read", ids=[ids[n], ids[n + 1]]),
        "memory_start": lambda _: use("memory_start"),
        "memory_landscape": lambda _: use("memory_landscape"),
        "tasks": lambda _: use("tasks"),
        "memory_add, a fact": lambda n: use("memory_add", memories=[{"text": f"{FACT}, {n}."}]),
    }
    every = []
    for name, work in calls.items():
        taken = timed(work, CALLS)
        every += taken
        shown(name, taken)
    shown("all calls", every)


async def first_result(path: Path, query: str) -> float:
    """Seconds from the start of the server to its first result."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    command, *words = (*COMMAND, "mcp", str(path))
    server = StdioServerParameters(command=command, args=words, env=dict(os.environ))
    begun = time.perf_counter()
    async with stdio_client(server) as pipes, ClientSession(*pipes) as session:
        await session.initialize()
        found = await session.call_tool("memory_search", {"query": query})
        assert not found.is_error, found.content
        return time.perf_counter() - begun  # what its end takes is not waited for


def starts(path: Path, queries: Sequence[str], runs: int) -> None:
    """Whole processes, with a keeper and without."""
    asked = len(queries)

    def search(number: int) -> None:
        words = [*COMMAND, "search", str(path), queries[number % asked]]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)

    def begin(number: int) -> tuple[float, float]:
        return anyio.run(first_result, path, queries[number % asked]), 0.0

    begin(0)  # what the disk has, and compiled modules, are not what is measured
    shown("first result of mcp, cold", [begin(number) for number in range(runs)])
    subprocess.run([*COMMAND, "unlock", str(path)], check=True, stdout=subprocess.DEVNULL)
    try:
        search(0)
        shown(
            "hybrid search, whole process, warm",
            [(wall, 0.0) for wall, _ in timed(search, 4 * runs)],
        )
        shown("first result of mcp, warm", [begin(number) for number in range(2 * runs)])
    finally:
        subprocess.run([*COMMAND, "lock", str(path)], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, key_file = Path(folder, "vault", "notes.db"), Path(folder, "keys", "bench.key")
        path.parent.mkdir()
        drawn = draw_vault(path, key_file, given.notes, load_embedder())
        os.environ["MEMORY_STORE_KEY_FILE"] = str(key_file)
        print(f"| {given.notes:,} notes | runs | best | median | p95 | CPU |")
        print("|---|--:|--:|--:|--:|--:|")
        with MemoryStore.open(path, key_file=key_file) as store:
            store.embed_missing()  # a drawn vault has no words as spelled; a keeper would add them
            store.warm()
            tools(store, drawn.queries)
        starts(path, drawn.queries, given.runs)


if __name__ == "__main__":
    main()
