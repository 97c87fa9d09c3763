"""A process whose threads write to a vault on a server, and note what was tried and answered.

Each line is JSON: what it is, the memory, what was said, and between which moments (of the
machine's monotonic clock). ``try`` is a text that is to be written (empty: a deletion), ``done``
the memory's id once that is acknowledged, ``read`` a text that was found (empty: none), ``error``
what was answered instead, ``crash`` an error that no program should see. After an error a writer
begins a new memory.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
import traceback
from multiprocessing.connection import Connection

from memory_store.errors import MemoryStoreError, NotFoundError
from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore

AFTER_ERROR = 0.2  # seconds
BETWEEN_READS = 0.1
LATEST = 20  # memories, of which one is read


def say(what: str, memory: str, said: str, began: float | None = None) -> None:
    now = time.monotonic()
    line = json.dumps((what, memory, said, now if began is None else began, now))
    os.write(1, (line + "\n").encode())  # a line this short is written whole


def read(store: MemoryStore, memory: str) -> None:
    """Note what a memory says."""
    began = time.monotonic()
    try:
        text = store.get(memory, refs=False).text
    except NotFoundError:
        text = ""
    say("read", memory, text, began)


def write(store: MemoryStore, memory: str) -> None:
    """One memory's life: made, edited twice, and every third deleted; read after each."""
    texts = [f"{memory} stands at step {step}" for step in range(3)]
    say("try", memory, texts[0])
    made = store.add(texts[0])
    say("done", memory, made.id)
    for text in texts[1:]:
        read(store, made.id)
        say("try", memory, text)
        store.edit(made.id, text=text)
        say("done", memory, made.id)
    if memory.endswith(("0", "3", "6")):
        say("try", memory, "")
        store.delete(made.id)
        say("done", memory, made.id)
    read(store, made.id)


def for_ever(address: str, key_file: str, name: str, reads: bool) -> None:
    """Write memories of its own; or read what others write."""
    number = 0
    while True:
        try:
            with MemoryStore.open(address, key_file=key_file) as store:
                while reads:
                    time.sleep(BETWEEN_READS)
                    if found := store.list(limit=LATEST):
                        read(store, random.choice(found).id)
                while True:
                    number += 1
                    write(store, f"{name}.{number}")
        except (MemoryStoreError, sqlite3.Error) as error:
            say("error", name, str(error)[:1_000])
            time.sleep(AFTER_ERROR)
        except BaseException:
            say("crash", name, traceback.format_exc()[-1_500:])
            raise


def main(address: str, key_file: str, name: str, threads: int, said: Connection) -> None:
    """Write by so many threads and read by one, until the process is killed."""
    os.dup2(said.fileno(), 1)
    given = [(address, key_file, f"{name}-{number}", not number) for number in range(threads + 1)]
    workers = [threading.Thread(target=for_ever, args=words) for words in given]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
