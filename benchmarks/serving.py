"""A Datasette to put under load: a sealed vault, a plain table beside it, and what it uses."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil
from itsdangerous import URLSafeSerializer

from benchmarks.corpus import write_corpus
from benchmarks.inside import measured as inside_measured
from benchmarks.vaults import import_with_random_vectors
from benchmarks.visiting import Visitor
from memory_store.models.embedder import Embedder
from memory_store.store import MemoryStore

SECRET = "of this benchmark alone"
SQL = "select rank, title, preview from hybrid_search(:query, 10)"
OTHERS = {"home": "/", "table": "/plain/articles?_facet=kind&_facet=year&_size=50"}
PATIENCE = 120.0  # seconds a server may take to start, or to answer its first search


class Server:
    """A running Datasette."""

    def __init__(self, port: int, process: psutil.Process) -> None:
        self.port = port
        self.cookie = f"ds_actor={URLSafeSerializer(SECRET, 'actor').dumps({'a': {'id': 'root'}})}"
        self._process = process

    def processor_seconds(self) -> float:
        """What the server and the processes it started have used so far, of all cores."""
        times = [one.cpu_times() for one in self._processes()]
        own = self._process.cpu_times()  # with those of its processes that have ended
        gone = own.children_user + own.children_system if hasattr(own, "children_user") else 0.0
        return sum(one.user + one.system for one in times) + gone

    @property
    def running(self) -> int:
        """How many processes serve."""
        return len(self._processes())

    def resident_bytes(self) -> list[int]:
        """Memory of the server's processes that no other process shares, the server's own first."""
        return [one.memory_full_info().uss for one in self._processes()]

    def _processes(self) -> list[psutil.Process]:
        return [self._process, *self._process.children(recursive=True)]

    async def versions(self) -> str:
        """What serves, in a line."""
        told: dict[str, Any] = json.loads((await self.visitor().get("/-/versions.json")).body)
        python = told["python"]["version"]
        return (
            f"Datasette {told['datasette']['version']}, Python {python}, "
            f"SQLite {told['sqlite']['version']}"
        )

    def visitor(self) -> Visitor:
        """Another browser, which the owner sits at."""
        return Visitor(self.port, self.cookie)


class Served(Server):
    """The same, and the vault that it serves opened in this process to compare with."""

    def __init__(
        self,
        server: Server,
        queries: Sequence[str],
        store: MemoryStore,
        inside: Callable[..., dict[str, list[float]]],
    ) -> None:
        super().__init__(server.port, server._process)
        self.queries = queries
        self._inside = inside
        self._store = store

    def requests_in_process(self, addresses: Mapping[str, Sequence[str]]) -> dict[str, list[float]]:
        """Seconds of each request by itself, in a process without a server: by surface."""
        return self._inside(secret=SECRET, cookie=self.cookie, addresses=addresses)

    def searches(self) -> list[float]:
        """Seconds of each search with the options of the page, in this process."""
        self._store.search(self.queries[0])
        taken = []
        for query in self.queries:
            begun = time.perf_counter()
            self._store.search(query)
            taken.append(time.perf_counter() - begun)
        return taken

    async def surfaces(self) -> dict[str, list[str]]:
        """The addresses to ask, by surface."""
        newer = await self.visitor().get("/notes/-/query.json?sql=select+1")
        sql = "/notes/-/query.json" if newer.status == 200 else "/notes.json"
        return {
            "page": [f"/notes/-/hybrid?{urlencode({'q': one})}" for one in self.queries],
            "JSON": [f"/notes/-/hybrid.json?{urlencode({'q': one})}" for one in self.queries],
            "SQL": [f"{sql}?{urlencode({'sql': SQL, 'query': one})}" for one in self.queries],
        }


@contextmanager
def started(
    files: Sequence[Path], environment: Mapping[str, str], log: Path, python: Path | None
) -> Iterator[Server]:
    """Serve databases with ``python`` (this one), until it is left."""
    command = [
        *(str(python or sys.executable), "-m", "datasette", "serve", *map(str, files)),
        *("--port", "0", "--secret", SECRET, "--root"),
    ]
    with log.open("w") as output:
        server = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield Server(_port_of(server, log), psutil.Process(server.pid))
        finally:
            server.terminate()
            server.wait(timeout=30)


@contextmanager
def served(folder: Path, size: int, model: Embedder, python: Path | None) -> Iterator[Served]:
    """Make a vault and a plain table in ``folder`` and serve them with ``python`` (this one)."""
    corpus = write_corpus(folder / "notes", size)
    key_file = folder / "keys" / "bench.key"
    key_file.parent.mkdir()
    files = [folder / "notes.db", folder / "plain.db"]
    import_with_random_vectors(files[0], key_file, corpus.folder, model)
    _plain_table(files[1], size)
    environment = {**os.environ, "MEMORY_STORE_KEY_FILE": str(key_file)}
    with MemoryStore.open(files[0], key_file=key_file) as store:
        store.search(corpus.queries[0])
        with started(files, environment, folder / "datasette.log", python) as server:
            inside = partial(inside_measured, python or Path(sys.executable), files, environment)
            yield Served(server, corpus.queries, store, inside)


def _port_of(server: subprocess.Popen[bytes], log: Path) -> int:
    """Where it listens, once it does. Raises ``RuntimeError`` with the server's last words."""
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up and server.poll() is None:
        said = re.search(r"Uvicorn running on http://[\w.]+:(\d+)", log.read_text("utf-8"))
        if said:
            return int(said[1])
        time.sleep(0.1)
    raise RuntimeError(f"Datasette did not start: {log.read_text('utf-8')[-500:]}")


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
