"""What a process that wrote to a vault still holds of its vectors and keys after a lock.

    python -m benchmarks.after_lock_of_writing [--model FOLDER] [--no-search]

A process of its own opens a strict vault, adds twenty memories one by one and twenty-four at once
(so that parts of the index are merged), edits six, indexes all again, searches and locks. Its
memory is read from outside as in ``after_lock``, for every vector that ever was in the vault: as
float16 (as it is stored), float32 and float64 (as it was made). Their beginnings do not count:
the allocator writes over that of memory which was freed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.after_lock import (
    KEYS,
    QUERY,
    VECTORS,
    Found,
    await_line,
    found_in,
    tell_to_lock,
    things_in,
)
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

ONE_BY_ONE, AT_ONCE, EDITED = 20, 24, 6
BEGINNING = 16  # numbers of a vector that an allocator may have written over
HALF, SINGLE, DOUBLE = "float16", "float32", "float64"
WIDTHS = {SINGLE: 4, DOUBLE: 8}


def text(number: int) -> str:
    """A short text, different from all others."""
    return f"The {QUERY} of pond {number} stands in reed bed {number * 7919 % 9973}, alone."


def write_and_hold(path: str, key_file: str, model: str | None, search: bool) -> None:
    """Add, edit and index again, stop before and after; lock at a line from outside, wait on."""
    store = MemoryStore.open(path, key_file=key_file, embedder=model)
    added = [store.add(text(n)) for n in range(ONE_BY_ONE)]
    store.add_many([MemoryDraft(text(ONE_BY_ONE + n)) for n in range(AT_ONCE)])
    _stop("added")
    for number, memory in enumerate(added[:EDITED]):
        store.edit(memory.id, text=text(100 + number))
    collection = added[0].collection
    store.collections.set(collection, analyser="de")
    store.reindex()
    for mode in ("hybrid", "keyword", "vector", "literal") if search else ():
        store.search(QUERY, mode=mode, limit=32)
    _stop("open")
    store.lock()
    _stop("locked")


def _stop(line: str) -> None:
    print(line, flush=True)
    sys.stdin.readline()


@contextmanager
def writing(given: dict[str, object]) -> Iterator[subprocess.Popen[str]]:
    """A process that writes to the vault, and has stopped after it added."""
    command = [sys.executable, "-m", "benchmarks.after_lock_of_writing", "--hold"]
    process = subprocess.Popen(
        [*command, json.dumps(given)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        await_line(process, "added")
        yield process
    finally:
        process.kill()
        process.wait()


def looked_at(
    folder: Path, model: str | None, *, search: bool = True, widths: Sequence[str] = (SINGLE,)
) -> tuple[int, dict[str, Found], dict[str, Found]]:
    """How many vectors there were; what was found of them as float16, and of the keys, while the
    vault was open; the same after its lock, and as numbers of other ``widths``."""
    path, key_file = folder / "strict.db", folder / "keys" / "strict.key"
    store, _ = MemoryStore.create(path, key_file=key_file, profile="strict", embedder=model)
    store.close()
    given = {"path": str(path), "key_file": str(key_file), "model": model, "search": search}
    with writing(given) as process:
        things = _held(path, key_file, model)
        assert process.stdin is not None
        process.stdin.write("go on\n")
        process.stdin.flush()
        await_line(process, "open")
        later = _held(path, key_file, model)
        things = {kind: sorted({*things[kind], *later[kind]}) for kind in later}
        while_open = _found(process.pid, things, ())
        tell_to_lock(process)
        return len(things[VECTORS]), while_open, _found(process.pid, things, widths)


def _held(path: Path, key_file: Path, model: str | None) -> dict[str, list[bytes]]:
    """The keys, and every float16 vector without its beginning."""
    with MemoryStore.open(path, key_file=key_file, embedder=model) as store:
        parts = store.search_context().snapshot.parts
        rows = [row[BEGINNING:].tobytes() for part in parts for row in part.segment.vectors]
        return {KEYS: things_in(store, key_file)[KEYS], VECTORS: rows}


def _found(process: int, things: dict[str, list[bytes]], widths: Sequence[str]) -> dict[str, Found]:
    as_kept = found_in(process, things)
    vectors = {VECTORS: things[VECTORS]}
    made = {name: found_in(process, vectors, WIDTHS[name])[VECTORS] for name in widths}
    return {KEYS: as_kept[KEYS], HALF: as_kept[VECTORS], **made}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="Read a writing process's memory after a lock.")
    parser.add_argument("--model", help="embedding model; by default the usual one")
    parser.add_argument("--no-search", action="store_true", help="write only")
    parser.add_argument("--hold", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.hold:
        write_and_hold(**json.loads(given.hold))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MEMORY_STORE_STATE"] = str(Path(folder) / "state")
        count, before, after = looked_at(
            Path(folder), given.model, search=not given.no_search, widths=[*WIDTHS]
        )
    print(f"strict, {count} vectors")
    for when, figures in (("open", before), ("locked", after)):
        for name, found in figures.items():
            print(f"  {when:6}  {name:8}  {found.different:,} ({found.copies:,})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
