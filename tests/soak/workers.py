"""Processes of the soak tests: :func:`run` with the name of a work and its arguments.

Each opens the vault by itself, says ``ready`` and works. What it has committed for certain goes
through a pipe line by line, so that a caller who kills it knows what must not be lost.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import random
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from memory_store.errors import ConflictError, NotFoundError
from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore

SUBJECTS = ("otters", "windmills", "lanterns", "harbours", "orchards", "glaciers")
POPULATION = 60  # memories that each writer keeps alive
READER_THREADS = 4
SAMPLES = 60  # of the memory held, over the whole time

Say = Callable[[str], None]


def run(work: str, arguments: dict[str, Any], pipe: Connection) -> None:
    """Do a work in this process; ends it with an exit code other than 0 when it fails."""
    os.environ.update(arguments["settings"])
    if "moment" not in arguments:
        with open_vault(arguments) as store:
            gc.collect()
            gc.freeze()  # what is loaded stays: collecting is for what the work makes
            pipe.send("ready")
            WORK[work](store, arguments, pipe.send)
        return
    trap = Trap(*arguments["moment"])
    with trap.set(), open_vault(arguments) as store:
        trap.armed = True
        pipe.send("ready")
        begun = time.monotonic()
        WORK[work](store, arguments, pipe.send)
        trap.armed = False
        pipe.send(json.dumps({"seconds": time.monotonic() - begun, **trap.counts}))


def open_vault(arguments: dict[str, Any]) -> MemoryStore:
    store = MemoryStore.open(
        arguments["path"], key_file=arguments["key_file"], embedder=arguments["model"]
    )
    store.warm()
    return store


class Trap:
    """Counts the SQL statements of this process, and kills it right before one of them.

    Before a commit is the moment at which everything is written and nothing counts yet; commits
    are counted by themselves, and not among the statements.
    """

    def __init__(self, kind: str, at: float) -> None:
        self.kind, self.at = kind, at
        self.counts = {"statements": 0, "commits": 0}
        self.armed = False

    @contextlib.contextmanager
    def set(self) -> Iterator[None]:
        """Watch every connection that is opened from now on."""
        connect = sqlite3.connect

        def watched(*given: Any, **more: Any) -> Any:
            connection = connect(*given, **more)
            connection.set_trace_callback(self._before)
            return connection

        sqlite3.connect = watched
        try:
            yield
        finally:
            sqlite3.connect = connect

    def _before(self, statement: str) -> None:
        if self.armed:
            kind = "commits" if statement.startswith("commit") else "statements"
            self.counts[kind] += 1
            if (kind, self.counts[kind]) == (self.kind, self.at):
                os.kill(os.getpid(), signal.SIGKILL)


def import_folder(store: MemoryStore, arguments: dict[str, Any], say: Say) -> None:
    """Import a folder; says how many files were read, and what another connection sees."""
    watching = sqlite3.connect(arguments["path"])
    seen = -1

    def progress(name: str, done: int, total: int | None) -> None:
        nonlocal seen
        say(f"read {done}")
        (count,) = watching.execute("select sum(version) from memories").fetchone()
        if count != seen:
            seen = count
            say(f"written {count}")

    store.import_paths([arguments["folder"]], progress=progress, embed=arguments["embed"])


def reindex(store: MemoryStore, arguments: dict[str, Any], say: Say) -> None:
    """Embed everything again with another model; says how many are done before each batch."""
    store.reindex(progress=lambda _, done, total: say(f"done {done}"))


def delete(store: MemoryStore, arguments: dict[str, Any], say: Say) -> None:
    """Delete memories one by one; says each id once it is gone."""
    for memory in arguments["ids"]:
        store.delete(memory, now=True)  # which takes it out of the index, too
        say(f"gone {memory}")


def add_and_edit(store: MemoryStore, arguments: dict[str, Any], say: Say) -> None:
    """Add memories one by one and edit every third; each write is a segment, each 8 a merge."""
    for number in range(arguments["count"]):
        memory = store.add(f"Entry {number} on {arguments['canary']}.", title=f"Entry {number}")
        say(f"added {memory.id}")
        if number % 3 == 0:
            store.edit(memory.id, text=f"Entry {number}, edited, on {arguments['canary']}.")
            say(f"edited {memory.id}")


def rotate(store: MemoryStore, arguments: dict[str, Any], say: Say) -> None:
    """Replace every key; says how many rows of a collection are sealed anew, batch by batch."""
    store.keys.rotate(progress=lambda name, done, total: say(f"{name} {done}"))


def write_for_long(store: MemoryStore, arguments: dict[str, Any], say: Say) -> None:
    """Add, edit and delete until the time is up, keeping about as many memories alive.

    In the collections that were named, which may differ in model and analyser.
    """
    choose = random.Random(arguments["seed"])
    kept: dict[str, str] = {}
    writes = 0

    def step() -> None:
        nonlocal writes
        writes += 1
        subject = choose.choice(SUBJECTS)
        text = f"Writer {arguments['seed']}, write {writes}, on {subject}."
        action = choose.random()
        if len(kept) < POPULATION or action < 0.4:
            collection = choose.choice(arguments["collections"])
            memory = store.add(text, topics=[subject], collection=collection)
            kept[memory.id] = memory.text
        elif action < 0.6:
            memory = store.edit(choose.choice(list(kept)), text=text)
            kept[memory.id] = memory.text
        while len(kept) > POPULATION:
            gone = choose.choice(list(kept))
            store.delete(gone)
            del kept[gone]

    log = Path(f"{arguments['path']}-wal")
    held, logs = repeat_until(arguments["seconds"], step, log)
    report = {"kept": kept, "rounds": writes, "held": held, "logs": logs, "errors": []}
    say(json.dumps(report))


def read_for_long(store: MemoryStore, arguments: dict[str, Any], say: Say) -> None:
    """Search, list and open in several threads until the time is up."""
    errors: list[str] = []
    rounds = [0] * READER_THREADS

    def changed(memory: str, subject: str) -> bool:
        """Whether a memory was edited or deleted since it was found; the newest text is shown."""
        try:
            return subject not in store.get(memory).text
        except NotFoundError:
            return True

    def step(number: int, choose: random.Random) -> None:
        rounds[number] += 1
        subject = choose.choice(SUBJECTS)
        mode = choose.choice(("keyword", "hybrid"))
        for row in store.search(subject, mode=mode, limit=5).rows:
            if mode == "keyword" and subject not in row.preview and not changed(row.id, subject):
                errors.append(f"{row.id} was found for {subject}: {row.preview}")
        for memory in store.list(topic=subject, limit=3):
            with contextlib.suppress(NotFoundError):  # deleted by a writer since it was listed
                store.get(memory.id)
        time.sleep(0.01)

    measured: list[tuple[list[int], list[int]]] = []
    log = Path(f"{arguments['path']}-wal")

    def work(number: int) -> None:
        choose = random.Random(arguments["seed"] * 100 + number)
        measuring = log if number == 0 else None
        try:
            found = repeat_until(arguments["seconds"], lambda: step(number, choose), measuring)
            if measuring:
                measured.append(found)
        except Exception as error:  # noqa: BLE001 - the test reads it
            errors.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(READER_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held, logs = measured[0] if measured else ([], [])
    report = {"kept": {}, "rounds": sum(rounds), "held": held, "logs": logs, "errors": errors[:5]}
    say(json.dumps(report))


def repeat_until(
    seconds: float, step: Callable[[], None], log: Path | None
) -> tuple[list[int], list[int]]:
    """Repeat a step; the memory held (:func:`resident`) and the size of the write-ahead log, if
    one is named, at :data:`SAMPLES` moments."""
    started = time.monotonic()
    held: list[int] = []
    logs: list[int] = []
    while (passed := time.monotonic() - started) < seconds:
        if log and passed >= seconds * (len(held) + 1) / (SAMPLES + 1):
            gc.collect()  # what waits to be collected is not held
            held.append(resident())
            logs.append(log.stat().st_size)
        try:
            step()
        except ConflictError:
            continue  # two writers met; the loser tries again
    return held, logs


def resident() -> int:
    """Bytes of this process that are in memory; where the system does not say, the most so far."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * resource.getpagesize()


WORK: dict[str, Callable[[MemoryStore, dict[str, Any], Say], None]] = {
    work.__name__: work
    for work in (
        import_folder,
        reindex,
        delete,
        add_and_edit,
        rotate,
        write_for_long,
        read_for_long,
    )
}
