"""A process whose threads write to a vault on a server, and say of each write what was answered.

Each line: what is tried (the memory, then its new text; empty for a deletion), and ``done`` with
the memory's id once it is acknowledged. After an error a writer begins a new memory.
"""

from __future__ import annotations

import json
import os
import threading
import time
from multiprocessing.connection import Connection

from memory_store.errors import MemoryStoreError
from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore

AFTER_ERROR = 0.2  # seconds


def say(*words: str) -> None:
    os.write(1, (json.dumps(words) + "\n").encode())  # a line this short is written whole


def write(store: MemoryStore, memory: str) -> None:
    """One memory's life: made, edited twice, and every third deleted."""
    texts = [f"{memory} stands at step {step}" for step in range(3)]
    say("try", memory, texts[0])
    made = store.add(texts[0])
    say("done", memory, made.id)
    for text in texts[1:]:
        say("try", memory, text)
        store.edit(made.id, text=text)
        say("done", memory, made.id)
    if memory.endswith(("0", "3", "6")):
        say("try", memory, "")
        store.delete(made.id)
        say("done", memory, made.id)


def write_for_ever(address: str, key_file: str, name: str) -> None:
    number = 0
    while True:
        try:
            with MemoryStore.open(address, key_file=key_file) as store:
                while True:
                    number += 1
                    write(store, f"{name}.{number}")
        except (MemoryStoreError, sqlite3.Error) as error:
            say("error", name, str(error))
            time.sleep(AFTER_ERROR)


def main(address: str, key_file: str, name: str, threads: int, said: Connection) -> None:
    """Write by so many threads, until the process is killed."""
    os.dup2(said.fileno(), 1)
    given = [(address, key_file, f"{name}-{number}") for number in range(threads)]
    writers = [threading.Thread(target=write_for_ever, args=words) for words in given]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
