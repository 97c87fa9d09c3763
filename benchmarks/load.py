"""Datasette under load: searches by many at once, and how long everybody else waits meanwhile.

    python -m benchmarks.load [--size 10000] [--clients 8 …] [--seconds 6]
        [--datasette-python .venv-next/bin/python] [--json FILE]

A real Datasette serves, on loopback, a vault of made-up notes and a plain table beside it; clients
in another process ask as fast as they are answered. Each crowd comes twice: alone, and while one
visitor looks at the home page twice a second and another one at the plain table with its facets.
Before each surface these two do the same with nobody else there. At the beginning and at the end
the same requests are timed in process, one after the other, and so are the searches in them,
without any of Datasette. Quote the ratios: all of it shares the cores.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from msgspec import Struct, field, to_builtins

from benchmarks.report import drawn, shown_ratio, shown_time, write_figures
from benchmarks.serving import OTHERS, Served, served
from benchmarks.visiting import PassersBy, Visits, crowd
from memory_store.models.embedder import default_threads, load_embedder

SIZE = 10_000
CLIENTS = (1, 2, 8, 32)
SECONDS = 6.0  # of each crowd, at least
LOOKS = 40  # at each of the other pages beside each crowd, at least …
LONGEST = 60.0  # … unless that takes longer than this, in seconds
WARM_UP = 1.0  # seconds of each crowd that are not counted
SETTLED = 5.0  # seconds since the server last started a process, before any crowd is
ALLOWED = 2.0  # p95 < 2 × in process × clients ÷ cores; other pages < 2 × idle
TURNED_AWAY = 0.05  # of those who ask; beyond it the 95th of a hundred was not answered at all
HEADINGS = (
    *("surface", "clients", "a second", "p50", "p95", "p95 ÷ allowed", "÷ of a bare search"),
    *("turned away", "CPU an answer", "home ÷ idle", "table ÷ idle", "p95 beside them", "met"),
)


class Crowd(Struct, frozen=True):
    """What one crowd on one surface saw alone and ``beside`` the looks at the other pages.

    ``processor`` seconds are the server's, with its processes, for the crowd alone.
    """

    surface: str
    clients: int
    asked: Visits
    processor: float
    beside: Visits
    looks: dict[str, Visits]


class Quiet(Struct):
    """The same with nobody else there: in process, and the other pages."""

    searches: list[float] = field(default_factory=list)
    requests: dict[str, list[float]] = field(default_factory=dict)
    looks: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in OTHERS})


class LoadLine(Struct, frozen=True):
    """One crowd held against the quiet, in seconds; ``home`` and ``table`` are medians ÷ idle ones.

    ``allowed`` is twice the request's time in process × clients ÷ cores, ``allowed_bare`` the same
    of the search in it; ``processor`` is for one answer, and ``looks`` how often each of the other
    pages was seen at least.
    """

    surface: str
    clients: int
    per_second: float
    p50: float
    p95: float
    allowed: float
    allowed_bare: float
    turned_away: int
    answered: int
    processor: float
    home: float
    table: float
    looks: int
    p95_beside: float

    @property
    def met(self) -> bool:
        """Whether 95 of a hundred were answered in time, and the other pages stayed responsive."""
        asked = self.answered + self.turned_away
        in_time = self.p95 <= self.allowed and self.turned_away <= TURNED_AWAY * asked
        return in_time and max(self.home, self.table) <= ALLOWED

    def cells(self) -> tuple[str, ...]:
        """The line as the table shows it."""
        return (
            self.surface,
            str(self.clients),
            f"{self.per_second:.1f}",
            shown_time(self.p50),
            shown_time(self.p95),
            shown_ratio(self.p95 / self.allowed),
            shown_ratio(self.p95 / self.allowed_bare),
            str(self.turned_away),
            shown_time(self.processor),
            shown_ratio(self.home),
            shown_ratio(self.table),
            shown_time(self.p95_beside),
            "yes" if self.met else "no",
        )


class Loaded(Struct, frozen=True):
    """All of it: what served, what everything takes alone, and every crowd.

    ``requests`` are the seconds of each surface in process, ``search`` those of a search by itself;
    ``memory`` is what each of the server's processes held for itself at the end, in bytes.
    """

    versions: str
    search: float
    requests: dict[str, float]
    idle: dict[str, float]
    looks: int
    memory: list[int]
    lines: list[LoadLine]

    def __str__(self) -> str:
        pages = ", ".join(f"{name} {shown_time(taken)}" for name, taken in self.idle.items())
        inside = ", ".join(f"{name} {shown_time(taken)}" for name, taken in self.requests.items())
        memory = " + ".join(f"{held / 1e6:.0f}" for held in self.memory)
        return (
            f"{self.versions}. In process: {inside}; a search {shown_time(self.search)}. "
            f"Idle: {pages} ({self.looks} looks each). "
            f"Memory of its processes at the end: {memory} MB.\n\n"
            f"{drawn([HEADINGS, *(line.cells() for line in self.lines)])}"
        )


async def _beside(
    server: Served, seconds: float, looks: int, surface: Sequence[str] = (), clients: int = 0
) -> tuple[Visits, PassersBy, float]:
    """A crowd (or nobody), those who pass by if there are to be any ``looks``, and the processor
    seconds of the server for both."""
    over = asyncio.Event()
    passing = PassersBy(server.port, server.cookie, OTHERS if looks else {})
    begun, before = time.perf_counter(), server.processor_seconds()
    crowding = asyncio.ensure_future(crowd(server.port, server.cookie, surface, clients, over))
    tasks: list[asyncio.Future[Any]] = [crowding, asyncio.ensure_future(passing.look(over))]
    while (taken := time.perf_counter() - begun) < LONGEST and not _failed(tasks):
        if taken >= seconds and passing.fewest >= looks:
            break
        await asyncio.sleep(0.05)
    over.set()
    await asyncio.gather(*tasks)
    return crowding.result(), passing, server.processor_seconds() - before


def _failed(tasks: Sequence[asyncio.Future[Any]]) -> bool:
    return any(task.done() and task.exception() is not None for task in tasks)


async def _quiet(server: Served, seconds: float, looks: int, quiet: Quiet) -> None:
    """Once more with nobody there."""
    quiet.searches += server.searches()
    _, passing, _ = await _beside(server, seconds, looks)
    for name, visits in passing.seen.items():
        quiet.looks[name] += visits.answered


def _inside(server: Served, surfaces: dict[str, list[str]], quiet: Quiet) -> None:
    """Once more in process."""
    for surface, seconds in server.requests_in_process(surfaces).items():
        quiet.requests.setdefault(surface, []).extend(seconds)


async def _warm(server: Served, paths: Sequence[str], clients: int) -> None:
    """What is not counted: models load, caches fill, processes start."""
    over = asyncio.Event()
    asyncio.get_running_loop().call_later(WARM_UP, over.set)
    await crowd(server.port, server.cookie, paths, clients, over)


async def _settled(server: Served, paths: Sequence[str], clients: int) -> None:
    """Have a crowd until the server has started all the processes that it will."""
    over = asyncio.Event()
    crowding = asyncio.ensure_future(crowd(server.port, server.cookie, paths, clients, over))
    running, since = server.running, time.perf_counter()
    while time.perf_counter() - since < SETTLED and not crowding.done():
        await asyncio.sleep(0.05)
        if server.running != running:
            running, since = server.running, time.perf_counter()
    over.set()
    await crowding


async def _measured(server: Served, clients: Sequence[int], seconds: float, looks: int) -> Loaded:
    surfaces = await server.surfaces()
    for paths in (list(OTHERS.values()), *surfaces.values()):
        await _warm(server, paths, 1)
    await _settled(server, surfaces["page"], max(clients))
    quiet, crowds = Quiet(), []
    _inside(server, surfaces, quiet)
    for surface, paths in surfaces.items():
        await _quiet(server, seconds, looks, quiet)
        for count in clients:
            await _warm(server, paths, count)
            asked, _, processor = await _beside(server, seconds, 0, paths, count)
            beside, passing, _ = await _beside(server, seconds, looks, paths, count)
            crowds.append(Crowd(surface, count, asked, processor, beside, passing.seen))
            print(f"  measured: {surface}, {count} clients", file=sys.stderr, flush=True)
    await _quiet(server, seconds, looks, quiet)
    _inside(server, surfaces, quiet)
    idle = {name: median(taken) for name, taken in quiet.looks.items()}
    return Loaded(
        await server.versions(),
        median(quiet.searches),
        {surface: median(seconds) for surface, seconds in quiet.requests.items()},
        idle,
        min(map(len, quiet.looks.values())),
        server.resident_bytes(),
        [_line(one, quiet, idle) for one in crowds],
    )


def _line(one: Crowd, quiet: Quiet, idle: dict[str, float]) -> LoadLine:
    """A crowd held against the quiet."""
    turns = ALLOWED * max(1.0, one.clients / default_threads())
    return LoadLine(
        one.surface,
        one.clients,
        one.asked.per_second,
        one.asked.percentile(50),
        one.asked.percentile(95),
        turns * median(quiet.requests[one.surface]),
        turns * median(quiet.searches),
        one.asked.turned_away,
        len(one.asked.answered),
        one.processor / max(1, len(one.asked.answered)),
        one.looks["home"].percentile(50) / idle["home"],
        one.looks["table"].percentile(50) / idle["table"],
        min(len(visits.answered) for visits in one.looks.values()),
        one.beside.percentile(95),
    )


def measured(
    size: int = SIZE,
    clients: Sequence[int] = CLIENTS,
    seconds: float = SECONDS,
    looks: int = LOOKS,
    python: Path | None = None,
) -> Loaded:
    """Every surface under every crowd. Raises ``ModelUnavailableError`` without a model."""
    model = load_embedder()
    with (
        tempfile.TemporaryDirectory(prefix="memory-store-load-") as folder,
        served(Path(folder), size, model, python) as server,
    ):
        return asyncio.run(_measured(server, clients, seconds, looks))


def as_json(loaded: Loaded) -> dict[str, Any]:
    """The figures, with the verdict of each line."""
    lines = [{**to_builtins(line), "met": line.met, "cells": line.cells()} for line in loaded.lines]
    return {**to_builtins(loaded), "headings": HEADINGS, "lines": lines}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, show the table, and write the figures as JSON where asked."""
    parser = argparse.ArgumentParser(description="Measure Datasette under load.")
    parser.add_argument("--size", type=int, default=SIZE, help="notes in the vault")
    parser.add_argument("--clients", type=int, action="append", help="clients (repeatable)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each crowd, at least")
    parser.add_argument(
        "--datasette-python", type=Path, help="the Python of another environment, to serve with"
    )
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    given = parser.parse_args(arguments)
    loaded = measured(
        given.size, given.clients or CLIENTS, given.seconds, python=given.datasette_python
    )
    print(loaded)
    write_figures(given.json, as_json(loaded))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
