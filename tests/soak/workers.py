"""Processes of the soak tests: ``python workers.py WORK JSON-ARGUMENTS``.

Each opens the vault by itself, says ``ready`` and works. What it has committed for certain goes to
standard output line by line, so that whoever kills it knows what must not be lost.
"""

from __future__ import annotations

import json
import random
import resource
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from memory_store.errors import ConflictError, NotFoundError
from memory_store.store import MemoryStore

SUBJECTS = ("otters", "windmills", "lanterns", "harbours", "orchards", "glaciers")
POPULATION = 60  # memories that each writer keeps alive
READER_THREADS = 4


def say(word: str) -> None:
    """One line to whoever is watching, at once."""
    print(word, flush=True)


def open_vault(arguments: dict[str, Any]) -> MemoryStore:
    store = MemoryStore.open(
        arguments["path"], key_file=arguments["key_file"], embedder=arguments["model"]
    )
    store.warm()
    say("ready")
    return store


def import_folder(arguments: dict[str, Any]) -> None:
    """Import a folder; says how many memories another connection sees meanwhile."""
    store = open_vault(arguments)
    watching = sqlite3.connect(arguments["path"])
    seen = -1

    def progress(name: str, done: int, total: int | None) -> None:
        nonlocal seen
        (count,) = watching.execute("select count(*) from memories").fetchone()
        if count != seen:
            seen = count
            say(str(count))

    store.import_paths([arguments["folder"]], progress=progress, embed=arguments["embed"])


def reindex(arguments: dict[str, Any]) -> None:
    """Embed everything again with another model."""
    open_vault(arguments).reindex()


def delete(arguments: dict[str, Any]) -> None:
    """Delete memories one by one; says each id once it is gone."""
    store = open_vault(arguments)
    for memory in arguments["ids"]:
        store.delete(memory)
        say(memory)


def add_and_edit(arguments: dict[str, Any]) -> None:
    """Add memories one by one and edit every third; each write is a segment, each 8 a merge."""
    store = open_vault(arguments)
    for number in range(arguments["count"]):
        memory = store.add(f"Entry {number} on {arguments['canary']}.", title=f"Entry {number}")
        say(memory.id)
        if number % 3 == 0:
            store.edit(memory.id, text=f"Entry {number}, edited, on {arguments['canary']}.")


def write_for_long(arguments: dict[str, Any]) -> None:
    """Add, edit and delete until the time is up, keeping about as many memories alive.

    In the collections that were named, which may differ in model and analyser.
    """
    store = open_vault(arguments)
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

    peaks = repeat_until(arguments["seconds"], step)
    say(json.dumps({"kept": kept, "rounds": writes, "peaks": peaks, "errors": []}))


def read_for_long(arguments: dict[str, Any]) -> None:
    """Search, list and open in several threads until the time is up."""
    store = open_vault(arguments)
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
            with suppress(NotFoundError):  # deleted by a writer since it was listed
                store.get(memory.id)
        time.sleep(0.01)

    peaks: list[int] = []

    def work(number: int) -> None:
        choose = random.Random(arguments["seed"] * 100 + number)
        try:
            found = repeat_until(arguments["seconds"], lambda: step(number, choose))
            if number == 0:
                peaks.extend(found)
        except Exception as error:  # noqa: BLE001 - told to the test
            errors.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(READER_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say(json.dumps({"kept": {}, "rounds": sum(rounds), "peaks": peaks, "errors": errors[:5]}))


def repeat_until(seconds: float, step: Callable[[], None]) -> list[int]:
    """Repeat a step; the most memory held so far (ru_maxrss) at each quarter of the time."""
    started = time.monotonic()
    peaks: list[int] = []
    while (passed := time.monotonic() - started) < seconds:
        if passed >= seconds * (len(peaks) + 1) / 4:
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        try:
            step()
        except ConflictError:
            continue  # two writers met; the loser tries again
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return peaks


WORK: dict[str, Callable[[dict[str, Any]], None]] = {
    work.__name__: work
    for work in (import_folder, reindex, delete, add_and_edit, write_for_long, read_for_long)
}

if __name__ == "__main__":
    WORK[sys.argv[1]](json.loads(sys.argv[2]))
