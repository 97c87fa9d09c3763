"""Opens, edits, imports, searches and reads a vault on a disk that fails, in a process of its own.

    python failing.py JSON     prints a line of JSON for each step: what is kept, what was refused

The disk may fail at any call. What it fails at is refused by a StorageError, once more or as often
as the disk fails; anything else that is raised ends the process with a code other than 0.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from memory_store.errors import StorageError
from memory_store.store import MemoryStore

TRIES = 3  # at each step
EDITED = 3


def main(path: str, key_file: str, notes: str) -> None:
    store: MemoryStore | None = None

    def opened() -> MemoryStore:
        nonlocal store
        store = store or MemoryStore.open(path, key_file=key_file)
        return store

    def edit() -> None:
        for memory in opened().list(limit=EDITED):
            opened().edit(memory.id, text=f"{memory.text.partition(' Edited')[0]} Edited.")
            tell("edited", memory.id)

    def import_notes() -> None:
        for note in sorted(Path(notes).iterdir()):
            assert opened().import_paths([note], embed=False).failed == 0
            tell("imported", note.read_text())

    def search() -> None:
        for row in opened().search("sluice", mode="keyword", limit=20).rows:
            tell("found", [row.id, opened().get(row.id).text])

    def read() -> None:
        for memory in opened().list(limit=100):
            tell("read", [memory.id, memory.text])

    for step in (read, edit, search, import_notes, search, read):
        tried(step)
    if store:
        store.lock()


def tried(step: Callable[[], None]) -> None:
    """Take a step, again where the disk fails at it."""
    for _ in range(TRIES):
        try:
            step()
            return
        except StorageError as error:
            tell("refused", str(error))


def tell(what: str, reported: object) -> None:
    print(json.dumps([what, reported]), flush=True)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
