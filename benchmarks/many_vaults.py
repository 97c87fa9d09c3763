"""A node with very many vaults: what a search takes on it, beside a node with that vault alone.

    python -m benchmarks.many_vaults [--vaults 1000] [--turns 200]
        [--datasette-python .venv-next/bin/python] [--json FILE]

Two Datasettes serve the same vault of made-up notes on loopback, one of them with others beside it,
small ones. Both are asked the same in turns, so that whatever else runs slows both. Then a few of
the others are searched, each for the first time. Fails (exit 1) where the median search among many
takes more than 1.2 times as long as alone.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

from msgspec import Struct, to_builtins

from benchmarks.corpus import write_corpus
from benchmarks.report import shown_time, write_figures
from benchmarks.serving import Server, started
from benchmarks.vaults import import_with_random_vectors
from memory_store.models.embedder import Embedder, load_embedder

VAULTS = 1_000
NOTES = 1_000  # of the vault that is searched
SMALL = 20  # notes of each other one
TURNS = 200
WARM_UP = 20  # turns that are not counted
FIRST = 20  # vaults that are searched for the first time
ALLOWED = 1.2


class Node(Struct, frozen=True):
    """One of the two: seconds until it served, of the median search, and memory of its own."""

    vaults: int
    start: float
    search: float
    memory: int


class Compared(Struct, frozen=True):
    """Both, and the seconds of the median search in a vault that was not searched before."""

    versions: str
    alone: Node
    among: Node
    first: float

    @property
    def ratio(self) -> float:
        """The median search among many ÷ alone."""
        return self.among.search / self.alone.search

    def __str__(self) -> str:
        lines = [
            f"{one.vaults:>6,} vaults: starts in {shown_time(one.start)}, a search "
            f"{shown_time(one.search)}, memory {one.memory / 1e6:,.0f} MB"
            for one in (self.alone, self.among)
        ]
        lines.append(f"  the first search in another vault: {shown_time(self.first)}")
        lines.append(f"  among many ÷ alone: {self.ratio:.2f} (at most {ALLOWED})")
        return "\n".join([self.versions, *lines])


def _small_vaults(folder: Path, key_file: Path, count: int, model: Embedder) -> list[Path]:
    """So many vaults that the key file opens. They have vectors, or the server would embed them."""
    notes = write_corpus(folder / "small", SMALL).folder
    made = [folder / f"other{number}.db" for number in range(count)]
    for path in made:
        import_with_random_vectors(path, key_file, notes, model)
    return made


async def _asked(server: Server, paths: Sequence[str]) -> list[float]:
    """Seconds of each search. Raises ``RuntimeError`` for one that has no answer."""
    visitor, taken = server.visitor(), []
    for path in paths:
        reply = await visitor.get(path)
        if reply.status != 200:
            raise RuntimeError(f"{path}: {reply.status} {reply.body[:200]!r}")
        taken.append(reply.seconds)
    visitor.leave()
    return taken


async def _in_turns(
    servers: Sequence[Server], queries: Sequence[str], turns: int
) -> list[list[float]]:
    """Seconds of the same searches on each server, one after another in turns."""
    seconds: list[list[float]] = [[] for _ in servers]
    for turn in range(WARM_UP + turns):
        path = f"/notes/-/hybrid.json?{urlencode({'q': queries[turn % len(queries)]})}"
        for server, taken in zip(servers, seconds, strict=True):
            taken += await _asked(server, [path])
    return [taken[WARM_UP:] for taken in seconds]


def measured(vaults: int = VAULTS, turns: int = TURNS, python: Path | None = None) -> Compared:
    """Both nodes. Raises ``ModelUnavailableError`` without a model."""
    model = load_embedder()
    with tempfile.TemporaryDirectory(prefix="memory-store-many-") as temporary, ExitStack() as ends:
        folder = Path(temporary)
        corpus = write_corpus(folder / "notes", NOTES)
        key_file = folder / "keys" / "bench.key"
        key_file.parent.mkdir()
        import_with_random_vectors(folder / "notes.db", key_file, corpus.folder, model)
        others = _small_vaults(folder, key_file, vaults - 1, model)
        environment = {**os.environ, "MEMORY_STORE_KEY_FILE": str(key_file)}
        servers, starts = [], []
        for files in ([], others):
            begun = time.perf_counter()
            log = folder / f"{len(files)}.log"
            served = started([folder / "notes.db", *files], environment, log, python)
            servers.append(ends.enter_context(served))
            starts.append(time.perf_counter() - begun)
        taken = asyncio.run(_in_turns(servers, corpus.queries, turns))
        new = [f"/{one.stem}/-/hybrid.json?q=house" for one in others[:: max(1, vaults // FIRST)]]
        first = median(asyncio.run(_asked(servers[1], new)))
        alone, among = (
            Node(count, start, median(seconds), sum(server.resident_bytes()))
            for count, start, seconds, server in zip(
                (1, vaults), starts, taken, servers, strict=True
            )
        )
        return Compared(asyncio.run(servers[1].versions()), alone, among, first)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, show, and write the figures as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--vaults", type=int, default=VAULTS, help="on the node with many (1000)")
    parser.add_argument("--turns", type=int, default=TURNS, help="searches on each node (200)")
    parser.add_argument(
        "--datasette-python", type=Path, help="the Python of another environment, to serve with"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    given = parser.parse_args(arguments)
    found = measured(given.vaults, given.turns, given.datasette_python)
    print(found)
    write_figures(given.json, {**to_builtins(found), "ratio": round(found.ratio, 3)})
    if found.ratio > ALLOWED:
        print(f"FAILED: more than {ALLOWED} times as long", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
