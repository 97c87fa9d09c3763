"""Datasette under load: searches by many at once, and how long everybody else waits meanwhile.

    python -m benchmarks.load [--size 10000] [--clients 8 …] [--seconds 6] [--json FILE]

A real Datasette serves, on loopback, a vault of made-up notes and a plain table beside it; clients
in another process ask as fast as they are answered. Beside each crowd one visitor opens the home
page and another one the plain table with its facets. Quote the ratios: all of it shares the cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

from itsdangerous import URLSafeSerializer

from benchmarks.corpus import write_corpus
from benchmarks.report import drawn, shown_ratio, shown_time
from benchmarks.vaults import import_with_random_vectors
from benchmarks.visiting import Visitor, Visits, crowd, passer_by
from memory_store.models.embedder import Embedder, default_threads, load_embedder
from memory_store.store import MemoryStore

SIZE = 10_000
CLIENTS = (1, 2, 8, 32)
SECONDS = 6.0
PAUSE = 0.1  # seconds between two pages of somebody who reads
ALLOWED = 2.0  # "p95 < 2 × in process × clients ÷ cores"; "other pages < 2 × idle"
SECRET = "of this benchmark alone"
SQL = "select rank, title, preview from hybrid_search(:query, 10)"
OTHERS = {"home": "/", "table": "/plain/articles?_facet=kind&_facet=year&_size=50"}
HEADINGS = (
    *("surface", "clients", "a second", "p50", "p95", "p95 ÷ allowed", "met"),
    *("turned away", "home ÷ idle", "table ÷ idle"),
)


@dataclass(frozen=True)
class LoadLine:
    """One crowd on one surface. Times in seconds; ``home`` and ``table`` are medians ÷ idle ones.

    ``allowed`` is twice the time in process × clients ÷ cores.
    """

    surface: str
    clients: int
    per_second: float
    p50: float
    p95: float
    allowed: float
    turned_away: int
    home: float
    table: float

    def cells(self) -> tuple[str, ...]:
        """The line as the table shows it."""
        met = self.p95 <= self.allowed and max(self.home, self.table) <= ALLOWED
        return (
            self.surface,
            str(self.clients),
            f"{self.per_second:.1f}",
            shown_time(self.p50),
            shown_time(self.p95),
            shown_ratio(self.p95 / self.allowed),
            "yes" if met else "no",
            str(self.turned_away),
            shown_ratio(self.home),
            shown_ratio(self.table),
        )


@dataclass(frozen=True)
class Idle:
    """What everything takes when nobody else asks, in seconds."""

    in_process: float
    pages: Mapping[str, float]

    def __str__(self) -> str:
        pages = ", ".join(f"{name} {shown_time(taken)}" for name, taken in self.pages.items())
        return f"in process {shown_time(self.in_process)}; idle: {pages}"


class Served:
    """A Datasette over the vault and the plain table, on a free port."""

    def __init__(self, port: int, queries: Sequence[str], in_process: float) -> None:
        self.port = port
        self.queries = queries
        self.cookie = f"ds_actor={URLSafeSerializer(SECRET, 'actor').dumps({'a': {'id': 'root'}})}"
        self.in_process = in_process

    async def surfaces(self) -> dict[str, list[str]]:
        """The addresses to ask, by surface."""
        newer = await Visitor(self.port, self.cookie).get("/notes/-/query.json?sql=select+1")
        sql = "/notes/-/query.json" if newer.status == 200 else "/notes.json"
        return {
            "page": [f"/notes/-/hybrid?{urlencode({'q': one})}" for one in self.queries],
            "JSON": [f"/notes/-/hybrid.json?{urlencode({'q': one})}" for one in self.queries],
            "SQL": [f"{sql}?{urlencode({'sql': SQL, 'query': one})}" for one in self.queries],
        }

    async def idle(self) -> Idle:
        """The other pages by themselves."""
        pages = {}
        for name, path in OTHERS.items():
            visits = await crowd(self.port, self.cookie, [path], 1, 2.0)
            pages[name] = visits.percentile(50)
        return Idle(self.in_process, pages)

    async def under_load(
        self, surface: str, paths: Sequence[str], clients: int, seconds: float, idle: Idle
    ) -> LoadLine:
        """One crowd, and two who pass by."""
        over = asyncio.Event()
        passing = {
            name: asyncio.ensure_future(passer_by(self.port, self.cookie, path, PAUSE, over))
            for name, path in OTHERS.items()
        }
        asked: Visits = await crowd(self.port, self.cookie, paths, clients, seconds)
        over.set()
        others = {name: (await task).percentile(50) for name, task in passing.items()}
        return LoadLine(
            surface,
            clients,
            asked.per_second,
            asked.percentile(50),
            asked.percentile(95),
            ALLOWED * self.in_process * max(1.0, clients / default_threads()),
            asked.turned_away,
            others["home"] / idle.pages["home"],
            others["table"] / idle.pages["table"],
        )


@contextmanager
def served(folder: Path, size: int, model: Embedder) -> Iterator[Served]:
    """Make a vault and a plain table in ``folder`` and serve them."""
    corpus = write_corpus(folder / "notes", size)
    key_file = folder / "keys" / "bench.key"
    key_file.parent.mkdir()
    vault = folder / "notes.db"
    import_with_random_vectors(vault, key_file, corpus.folder, model)
    plain = folder / "plain.db"
    _plain_table(plain, size)
    with MemoryStore.open(vault, key_file=key_file) as store:
        in_process = _in_process(store, corpus.queries)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder / "datasette.log").open("w") as log:
        server = subprocess.Popen(
            [
                *(sys.executable, "-m", "datasette", "serve", str(vault), str(plain)),
                *("--port", str(port), "--secret", SECRET, "--root"),
            ],
            env={**os.environ, "MEMORY_STORE_KEY_FILE": str(key_file)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            yield Served(port, corpus.queries, in_process)
        finally:
            server.terminate()
            server.wait(timeout=30)


def _plain_table(path: Path, rows: int) -> None:
    """A table as every Datasette has one: texts, and two columns to facet by."""
    connection = sqlite3.connect(path)
    connection.execute("create table articles (id integer primary key, title, kind, year, body)")
    connection.executemany(
        "insert into articles (title, kind, year, body) values (?, ?, ?, ?)",
        ((f"Article {n}", f"kind {n % 7}", 1990 + n % 30, "word " * 40) for n in range(rows)),
    )
    connection.commit()
    connection.close()


def _in_process(store: MemoryStore, queries: Sequence[str]) -> float:
    """Median seconds of a search with the options of the page, in a process of its own."""
    taken = []
    for query in (*queries[:3], *queries):
        begun = time.perf_counter()
        store.search(query)
        taken.append(time.perf_counter() - begun)
    return median(taken[3:])


async def _begun(served: Served, paths: Sequence[str]) -> None:
    """Wait until the server answers, and searches with its models loaded."""
    for _ in range(600):
        try:
            for path in paths:
                await Visitor(served.port, served.cookie).get(path)
            return
        except OSError:
            await asyncio.sleep(0.1)
    raise RuntimeError("Datasette did not start")


async def _measured(
    served: Served, clients: Sequence[int], seconds: float
) -> tuple[Idle, list[LoadLine]]:
    await _begun(served, ["/"])
    surfaces = await served.surfaces()
    await _begun(served, [path for paths in surfaces.values() for path in paths[:3]])
    idle = await served.idle()
    lines = []
    for surface, paths in surfaces.items():
        for count in clients:
            line = await served.under_load(surface, paths, count, seconds, idle)
            print(f"  measured: {surface}, {count} clients", file=sys.stderr, flush=True)
            lines.append(line)
    return idle, lines


def measured(size: int, clients: Sequence[int], seconds: float) -> tuple[Idle, list[LoadLine]]:
    """Every surface under every crowd. Raises ``ModelUnavailableError`` without a model."""
    model = load_embedder()
    with (
        tempfile.TemporaryDirectory(prefix="memory-store-load-") as folder,
        served(Path(folder), size, model) as server,
    ):
        return asyncio.run(_measured(server, clients, seconds))


def report(idle: Idle, lines: Sequence[LoadLine]) -> str:
    """The table, and what its ratios are to."""
    return f"{idle}\n\n{drawn([HEADINGS, *(line.cells() for line in lines)])}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, show the table, and write the figures as JSON where asked."""
    parser = argparse.ArgumentParser(description="Measure Datasette under load.")
    parser.add_argument("--size", type=int, default=SIZE, help="notes in the vault")
    parser.add_argument("--clients", type=int, action="append", help="clients (repeatable)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each crowd")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    given = parser.parse_args(arguments)
    idle, lines = measured(given.size, given.clients or CLIENTS, given.seconds)
    print(report(idle, lines))
    if given.json is not None:
        figures = {"idle": asdict(idle), "lines": [asdict(line) for line in lines]}
        given.json.write_text(json.dumps(figures, indent=2), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
