"""A vault in a PostgreSQL database beside the same vault in a file.

    python -m benchmarks.databases postgresql://USER@HOST/DATABASE --notes 10000

The two take turns, so that both meet the same load. The first ratio is of medians by the clock; the
others are of processor time, which hold beside other work: that of this process, and with it the
server's, where that runs on this machine. The vault is drawn (``generated.py``), without vectors:
what they cost is the same on both.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import psycopg

from benchmarks.generated import Drawn, draw_vault
from memory_store.addresses import Address, vault_path
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore
from memory_store.vault.storage.postgres_link import let_go
from memory_store.vault.storage.transfer import copy_vault

Work = Callable[[], object]


class Processor:
    """The processor time of this process, and of a server on this machine."""

    def __init__(self, address: Address) -> None:
        with psycopg.connect(address.database) as connection:
            asked = connection.execute("select pg_backend_pid(), inet_server_addr()").fetchone()
        assert asked is not None
        backend = Path(f"/proc/{asked[0]}/stat")
        here = backend.exists() and backend.read_text().split()[1] == "(postgres)"
        self._server = int(_stat(backend)[1]) if here else 0

    def now(self) -> tuple[float, float]:
        """Seconds of both."""
        ticks = sum(map(_ticks, self._processes()))
        return time.process_time(), ticks / os.sysconf("SC_CLK_TCK")

    def _processes(self) -> list[Path]:
        if not self._server:
            return []
        children = Path(f"/proc/{self._server}/task/{self._server}/children").read_text().split()
        return [Path(f"/proc/{pid}/stat") for pid in (str(self._server), *children)]


def _stat(file: Path) -> list[str]:
    """What stands behind the name of a process (``man 5 proc_pid_stat``), from its state on."""
    return file.read_text().rpartition(") ")[2].split()


def _ticks(file: Path) -> int:
    """Of a process, and of its children that have ended."""
    try:
        return sum(map(int, _stat(file)[11:15]))
    except FileNotFoundError:
        return 0  # it ended: the server counts it among its children


def ratio(
    name: str, target: str, file: Work, server: Work, times: int, processor: Processor
) -> None:
    """Print the medians of both, taken in turn, and the ratios. (A
    server's time is counted in ticks of 10 ms, so one of these is worth nothing alone.)"""
    taken: tuple[list[float], list[float]] = ([], [])
    worked = [[0.0, 0.0], [0.0, 0.0]]
    for number in range(times + 1):
        for which, work in enumerate((file, server)):
            began, before = time.perf_counter(), processor.now()
            work()
            if number:  # the first one warms both up
                taken[which].append(time.perf_counter() - began)
                for whose, (now, then) in enumerate(zip(processor.now(), before, strict=True)):
                    worked[which][whose] += now - then
    a, b = (statistics.median(seconds) * 1_000 for seconds in taken)
    ours, all_ = worked[1][0] / worked[0][0], sum(worked[1]) / worked[0][0]
    said = f"{b / a:.2f} | {ours:.2f} | {all_:.2f}"
    print(f"| {name} | {a:,.2f} ms | {b:,.2f} ms | {said} | {target} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="A vault in a database, beside one in a file.")
    parser.add_argument("address", help="of a database that has no vault yet")
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--copy", action="store_true", help="copy it both ways, and no more")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        for name in ("CACHE", "CONFIG", "DATA", "STATE"):
            os.environ[f"MEMORY_STORE_{name}"] = str(folder / name.lower())
        os.environ["MEMORY_STORE_OFFLINE"] = "1"
        key = folder / "keys" / "notes.key"
        drawn = draw_vault(folder / "notes.db", key, wanted.notes, None)
        there = vault_path(wanted.address)
        assert isinstance(there, Address)
        copied(drawn.path, there)
        if wanted.copy:
            copied(there, folder / "back.db")
        else:
            compare(drawn, there, key)


def copied(source: Path, target: Path) -> None:
    """Copy a vault, and print how long that took, and this process of the processor."""
    began, worked = time.perf_counter(), time.process_time()
    rows = copy_vault(source, target).total
    took, work = time.perf_counter() - began, time.process_time() - worked
    kind = "database" if isinstance(target, Address) else "file"
    print(f"copy to a {kind}: {rows:,} rows in {took:.1f} s, {work:.1f} s of processor", flush=True)


def compare(drawn: Drawn, there: Address, key: Path) -> None:
    place = drawn.path
    names = ("", "file", "database", "by the clock", "processor", "with the server's", "target")
    print(f"| {' | '.join(names)} |\n{'|---' * len(names)}|")
    processor = Processor(there)

    def opened(where: Path, *, fresh: bool) -> Work:
        def work() -> None:
            if fresh:
                let_go()
            with MemoryStore.open(where, key_file=key) as one:
                one.search(drawn.queries[0], mode="keyword", limit=1)

        return work

    ratio(
        "unlock and first search, new connections",
        "≤ 2.5",
        *pair(opened, place, there, True),
        12,
        processor,
    )
    ratio("the same, connections kept", "≤ 1.2", *pair(opened, place, there, False), 12, processor)
    file = MemoryStore.open(place, key_file=key)
    database = MemoryStore.open(there, key_file=key)
    with file, database:

        def asked(store: MemoryStore) -> Work:
            queries = cycle(drawn.queries)
            return lambda: store.search(next(queries))

        ratio("search", "≤ 1.15", asked(file), asked(database), 100, processor)
        ratio("list 64 memories", "≤ 1.2", listed(file), listed(database), 60, processor)
        ratio(
            "add one",
            "≤ 2",
            lambda: file.add("a note"),
            lambda: database.add("a note"),
            40,
            processor,
        )
        batch = [MemoryDraft(text=f"of a batch {n}") for n in range(64)]
        ratio(
            "add 64",
            "≤ 1.3",
            lambda: file.add_many(batch),
            lambda: database.add_many(batch),
            16,
            processor,
        )
        sizes = [one.stats()["database_bytes"] for one in (file, database)]
        said = f"{sizes[0]:,} B | {sizes[1]:,} B | {sizes[1] / sizes[0]:.2f} | | "
        print(f"| size: the file, the rows | {said} | ≤ 1.2 |")


def listed(store: MemoryStore) -> Work:
    """To list, and so to open, as many memories as a search does."""
    return lambda: store.list(limit=64)


def pair(make: Callable[..., Work], file: Path, server: Path, fresh: bool) -> tuple[Work, Work]:
    """The same work in both places."""
    return make(file, fresh=fresh), make(server, fresh=fresh)


if __name__ == "__main__":
    main()
