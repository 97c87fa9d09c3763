"""A vault in a PostgreSQL database beside the same vault in a file.

    python -m benchmarks.databases postgresql://USER@HOST/DATABASE --notes 10000 [--json FILE]

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
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Any

import psycopg
from msgspec import Struct, json

from benchmarks.generated import Drawn, draw_vault
from memory_store.addresses import Address, vault_path
from memory_store.paths import cache_folder
from memory_store.records import MemoryDraft
from memory_store.sqlite import connect
from memory_store.store import MemoryStore
from memory_store.vault.storage import Storage
from memory_store.vault.storage.postgres_link import let_go
from memory_store.vault.storage.schema import columns_of
from memory_store.vault.storage.table import marks
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


class Ratio(Struct, frozen=True):
    """What one operation takes in a database, as times what it takes in a file."""

    name: str
    clock: float
    processor: float
    with_server: float
    target: float


class Taken(Struct, frozen=True):
    """What one copy took: so many seconds by the clock for so many memories."""

    to: str
    memories: int
    seconds: float


class Measured(Struct):
    """All of a run: see ``docs/figures/databases.json``."""

    conditions: str
    ratios: list[Ratio] = []
    copies: list[Taken] = []
    batches: float = 0.0
    """What rows take as a copy writes them, as times what they take one by one."""


def ratio(
    name: str,
    target: float,
    file: Work,
    server: Work,
    times: int,
    processor: Processor,
    before: Work = lambda: None,
) -> Ratio:
    """The ratios of both, taken in turn, which are printed with the medians. ``before`` each turn
    something is done that does not count. (A server's time is counted in ticks of 10 ms, so one of
    these is worth nothing alone.)"""
    taken: tuple[list[float], list[float]] = ([], [])
    worked = [[0.0, 0.0], [0.0, 0.0]]
    for number in range(times + 1):
        for which, work in enumerate((file, server)):
            before()
            began, then = time.perf_counter(), processor.now()
            work()
            if number:  # the first one warms both up
                taken[which].append(time.perf_counter() - began)
                for whose, (now, earlier) in enumerate(zip(processor.now(), then, strict=True)):
                    worked[which][whose] += now - earlier
    a, b = (statistics.median(seconds) * 1_000 for seconds in taken)
    found = Ratio(name, b / a, worked[1][0] / worked[0][0], sum(worked[1]) / worked[0][0], target)
    said = f"{found.clock:.2f} | {found.processor:.2f} | {found.with_server:.2f}"
    print(f"| {name} | {a:,.2f} ms | {b:,.2f} ms | {said} | ≤ {target} |", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="A vault in a database, beside one in a file.")
    parser.add_argument("address", help="of a database that has no vault yet")
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--copy", action="store_true", help="copy it both ways, and no more")
    parser.add_argument(
        "--json", type=Path, help="write the figures here; what else is there stays"
    )
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
        file = wanted.json
        found = read(file) if file and file.exists() else Measured("")
        copies = [copied(drawn.path, there, wanted.notes)]
        if wanted.copy:
            found.copies = [*copies, copied(there, folder / "back.db", wanted.notes)]
            found.batches = in_batches(drawn.path, there.of_vault("by-rows"))
        else:
            load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start"
            found.conditions = f"{load}, PostgreSQL {version(there)}, {wanted.notes:,} notes"
            found.ratios = compare(drawn, there, key)
        if file:
            file.write_bytes(json.format(json.encode(found), indent=1) + b"\n")


def read(file: Path) -> Measured:
    """What an earlier run measured."""
    return json.decode(file.read_bytes(), type=Measured)


def version(address: Address) -> str:
    """That of a server."""
    with psycopg.connect(address.database) as connection:
        return str(connection.info.server_version // 10_000)


def copied(source: Path, target: Path, memories: int) -> Taken:
    """Copy a vault, and print how long that took, and this process of the processor."""
    began, worked = time.perf_counter(), time.process_time()
    rows = copy_vault(source, target).total
    took, work = time.perf_counter() - began, time.process_time() - worked
    kind = "database" if isinstance(target, Address) else "file"
    print(f"copy to a {kind}: {rows:,} rows in {took:.1f} s, {work:.1f} s of processor", flush=True)
    return Taken(kind, memories, took)


def in_batches(source: Path, there: Address, turns: int = 5) -> float:
    """The ratio of writing 2,000 rows of memories as a copy does, and one by one: of medians by the
    clock, in turn."""
    into = f"memories ({', '.join(columns_of('memories'))})"
    one_row = f"insert into {into} values ({marks(len(columns_of('memories')))})"
    with closing(Storage.open(source, read_only=True)) as file, closing(Storage.open(there)) as to:
        to.create_tables()
        query = f"select {', '.join(columns_of('memories'))} from memories limit 2000"
        rows = file.engine.execute(query).fetchall()
        taken: tuple[list[float], list[float]] = ([], [])
        for _ in range(turns):
            for which in (0, 1):
                began = time.perf_counter()
                with to.transaction():
                    if which:
                        for row in rows:
                            to.engine.changed(one_row, tuple(row))
                    else:
                        to.engine.insert(f"into {into}", rows)
                taken[which].append(time.perf_counter() - began)
                with to.transaction():
                    to.engine.execute("delete from memories")
    found = statistics.median(taken[0]) / statistics.median(taken[1])
    print(f"rows in batches ÷ one by one: {found:.2f}", flush=True)
    return found


def compare(drawn: Drawn, there: Address, key: Path) -> list[Ratio]:
    """Every operation in both places."""
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

    new, same = pair(opened, place, there, True), pair(opened, place, there, False)
    found = [
        ratio("unlock and first search, with new connections", 2.5, *new, 12, processor),
        ratio("the same, with those that were kept", 1.2, *same, 12, processor),
    ]
    file = MemoryStore.open(place, key_file=key)
    database = MemoryStore.open(there, key_file=key)
    with file, database:

        def asked(store: MemoryStore, **options: Any) -> Work:
            queries = cycle(drawn.queries)
            return lambda: store.search(next(queries), **options)

        batch = [MemoryDraft(text=f"of a batch {n}") for n in range(64)]
        searches, lists = (asked(file), asked(database)), (listed(file), listed(database))
        pools = (asked(file, deep=True, limit=64), asked(database, deep=True, limit=64))
        one = (lambda: file.add("a note"), lambda: database.add("a note"))
        many = (lambda: file.add_many(batch), lambda: database.add_many(batch))
        fresh = "nothing of them kept here"
        found += [
            ratio(f"search, by words, {fresh}", 1.15, *searches, 100, processor, nothing_kept),
            ratio("search, by words, of memories that were read", 1.15, *searches, 100, processor),
            ratio(f"search that opens 64, {fresh}", 1.2, *pools, 60, processor, nothing_kept),
            ratio(f"list 64 memories, {fresh}", 1.2, *lists, 60, processor, nothing_kept),
            ratio("list 64 memories that were read", 1.2, *lists, 60, processor),
            ratio("add one memory", 2, *one, 40, processor),
            ratio("add 64 at once", 1.3, *many, 16, processor),
        ]
        sizes = [one.stats()["database_bytes"] for one in (file, database)]
        share = sizes[1] / sizes[0]
        room = on_disk(there) / sizes[0]
        print(f"size of the rows ÷ the file: {share:.2f}; with indexes and free space: {room:.2f}")
        return [
            *found,
            Ratio("size of the rows", share, share, share, 1.2),
            Ratio("size of the tables, with indexes and free space", room, room, room, 1.2),
        ]


def on_disk(address: Address) -> int:
    """Bytes of all tables of vaults in a database, with their indexes."""
    query = """
        select sum(pg_total_relation_size(oid)) from pg_class
        where relnamespace = 'memory_store'::regnamespace and relkind = 'r'
    """
    with psycopg.connect(address.database) as connection:
        (found,) = connection.execute(query).fetchone() or (0,)
    return int(found)


def nothing_kept() -> None:
    """Let go of the memories that this machine keeps of databases."""
    for file in (cache_folder() / "memories").glob("*.db"):
        with closing(connect(file)) as kept:
            kept.execute("delete from kept")


def listed(store: MemoryStore) -> Work:
    """To list, and so to open, as many memories as a search does."""
    return lambda: store.list(limit=64)


def pair(make: Callable[..., Work], file: Path, server: Path, fresh: bool) -> tuple[Work, Work]:
    """The same work in both places."""
    return make(file, fresh=fresh), make(server, fresh=fresh)


if __name__ == "__main__":
    main()
