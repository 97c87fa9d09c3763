"""What a process still holds in its memory after a lock, read from outside by whoever may.

    python -m benchmarks.after_lock [--memories 1000] [--model FOLDER]

A process of its own opens a vault, searches it and locks it. Before and after the lock every byte
of its writable memory is read (``/proc/PID/mem``, Linux, as the same user or root) and searched for
the vault's keys, for the content of its key file, for every vector and for every text. What must be
found is worked out here, from the same vault, so that the process holds nothing only because it was
told what to look for. Figures are ``different things found (copies)``.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from benchmarks.report import write_figures
from memory_store.crypto.keys import SecretKey
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

PROFILES = ("default", "strict")
PIECE = 8  # bytes that are looked for first
MIXED_BITS = 20
PAGE = os.sysconf("SC_PAGESIZE")
GUARD = np.uint64(1 << 58)  # in the page map: no page, as at the end of a stack since glibc 2.42
QUERY = "heron"
KEYS, KEY_FILE, VECTORS, TEXTS = "keys", "key file", "vectors", "texts"

Things = Mapping[str, Sequence[bytes]]
Numbers = npt.NDArray[Any]


class Found(Struct, frozen=True):
    """Of one kind: how many different things were found, and how many copies of them."""

    different: int
    copies: int


def things_in(store: MemoryStore, key_file: Path) -> dict[str, list[bytes]]:
    """What an opened vault holds, by kind: every key, the key file's, every vector, every text."""
    raw = base64.b64decode(key_file.read_bytes())
    snapshot = store.search_context().snapshot
    rows = [row for n in range(snapshot.size) for row in snapshot.document_vectors(n)]
    halves = [row for part in snapshot.parts for row in part.segment.vectors]  # as they are kept
    return {
        KEYS: sorted(keys_in(store._opened.vault.keyring)),
        KEY_FILE: [raw, base64.b64encode(raw)],
        VECTORS: [row.tobytes() for row in rows] + [row.tobytes() for row in halves],
        TEXTS: [memory.text.encode() for memory in store.list(limit=100_000)],
    }


def keys_in(holder: Any, seen: set[int] | None = None) -> set[bytes]:
    """The bytes of every secret key that can be reached from an object."""
    seen = set() if seen is None else seen
    if id(holder) in seen:
        return set()
    seen.add(id(holder))
    if isinstance(holder, SecretKey):
        return {bytes(holder.buffer)}
    if isinstance(holder, Mapping):
        inside: list[Any] = list(holder.values())
    elif isinstance(holder, list | tuple | set):
        inside = list(holder)
    elif type(holder).__module__.startswith("memory_store."):
        slots = [name for one in type(holder).__mro__ for name in getattr(one, "__slots__", ())]
        inside = [getattr(holder, name, None) for name in slots]
        inside += vars(holder).values() if hasattr(holder, "__dict__") else []
    else:
        return set()
    return set().union(*(keys_in(one, seen) for one in inside))


def found_in(process: int, things: Things, width: int = 0) -> dict[str, Found]:
    """How much of what is looked for stands in the writable memory of a process.

    With a ``width`` of 4 or 8 bytes memory is read as numbers of that width, rounded to two:
    so a float16 vector is found in all that was made into it, whatever was rounded off.
    """
    pieces: dict[bytes, list[tuple[int, bytes]]] = defaultdict(list)
    for thing in {thing for some in things.values() for thing in some}:
        place = telling_piece(thing)
        pieces[thing[place : place + PIECE]].append((place, thing))
    wanted = np.array([int.from_bytes(one, "little") for one in pieces], np.uint64)
    copies: Counter[bytes] = Counter()
    for raw in writable_memory(process):
        content = _as_halves(raw, width) if width else raw
        for hit in _places(content, wanted):
            for place, thing in pieces[content[hit : hit + PIECE]]:
                copies[thing] += content.startswith(thing, max(0, hit - place))
    met = {thing: count for thing, count in copies.items() if count}
    return {
        kind: Found(len(met.keys() & {*some}), sum(met.get(thing, 0) for thing in {*some}))
        for kind, some in things.items()
    }


def _as_halves(content: bytes, width: int) -> bytes:
    with np.errstate(all="ignore"):  # most of it are no numbers
        return np.frombuffer(content, f"<f{width}").astype("<f2").tobytes()


def telling_piece(thing: bytes) -> int:
    """Where the eight bytes begin by which a thing is looked for: those that differ most.

    Zeros, or the beginning that all texts have, would be met everywhere.
    """
    starts = range(0, len(thing) - PIECE + 1, PIECE)
    return max(starts, key=lambda start: len(set(thing[start : start + PIECE])))


def _places(content: bytes, wanted: Numbers) -> Iterator[int]:
    """Where one of the ``wanted`` numbers of eight bytes stands, at any place."""
    likely = np.zeros(1 << MIXED_BITS, np.bool_)
    likely[_mixed(wanted)] = True
    for shift in range(PIECE):
        count = (len(content) - shift) // PIECE
        numbers = np.frombuffer(content, np.uint64, count, shift)
        candidates = np.flatnonzero(likely[_mixed(numbers)])
        hits = candidates[np.isin(numbers[candidates], wanted)]
        yield from (hits * PIECE + shift).tolist()


def _mixed(numbers: Numbers) -> Numbers:
    """A few bits of each number: Fibonacci hashing (Knuth, volume 3, 6.4)."""
    return (numbers * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - MIXED_BITS)


def writable_memory(process: int) -> Iterator[bytes]:
    """The pages of a process that can be written to and are there, side by side ones together.

    It stands still meanwhile: it would let go of some of them else, and hide what it moves.
    """
    with (
        _stopped(process),
        open(f"/proc/{process}/mem", "rb", buffering=0) as memory,
        open(f"/proc/{process}/pagemap", "rb", buffering=0) as pagemap,
    ):
        for line in Path(f"/proc/{process}/maps").read_text().splitlines():
            span = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if span is None or "[vvar" in line:
                continue
            first, last = (int(one, 16) // PAGE for one in span.groups())
            pagemap.seek(first * PIECE)
            entries = np.frombuffer(pagemap.read((last - first) * PIECE), np.uint64)
            held = entries >> np.uint64(62) != 0  # in memory, or swapped out
            held &= entries & GUARD == 0
            for start, end in _runs(held):
                memory.seek((first + start) * PAGE)
                yield b"".join(_read(memory, (end - start) * PAGE))


@contextmanager
def _stopped(process: int) -> Iterator[None]:
    os.kill(process, signal.SIGSTOP)
    try:
        while not all(map(_stands_still, Path(f"/proc/{process}/task").iterdir())):
            time.sleep(0.001)
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def _stands_still(thread: Path) -> bool:
    try:
        state = (thread / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True  # it ended before it was stopped
    return state in "TtZX"  # man 5 proc: stopped, or at its end


def _read(memory: RawIOBase, size: int) -> Iterator[bytes]:
    """So many bytes; one call may give fewer."""
    while size > 0:
        piece = memory.read(size)
        if not piece:
            raise EOFError("a page of the process is gone")
        yield piece
        size -= len(piece)


def _runs(there: Numbers) -> list[tuple[int, int]]:
    """The spans of pages that are there."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], there.astype(np.int8), [0]))))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def fill(path: Path, key_file: Path, profile: str, model: str | None, memories: int) -> None:
    """A vault of short texts, all different."""
    store, _ = MemoryStore.create(path, key_file=key_file, profile=profile, embedder=model)
    with store:
        drafts = [
            MemoryDraft(f"The {QUERY} of pond {n} stands in reed bed {n * 7919 % 9973}, alone.")
            for n in range(memories)
        ]
        store.add_many(drafts)


@contextmanager
def holding(path: Path, key_file: Path, model: str | None) -> Iterator[subprocess.Popen[str]]:
    """A process that has opened the vault and searched it, and locks it when it is told to."""
    command = [sys.executable, "-m", "benchmarks.after_lock", "--hold"]
    given = json.dumps({"path": str(path), "key_file": str(key_file), "model": model})
    process = subprocess.Popen(
        [*command, given], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        await_line(process, "open")
        yield process
    finally:
        process.kill()
        process.wait()


def tell_to_lock(process: subprocess.Popen[str]) -> None:
    """Have it lock, and wait until it has."""
    assert process.stdin is not None
    process.stdin.write("lock\n")
    process.stdin.flush()
    await_line(process, "locked")


def await_line(process: subprocess.Popen[str], line: str) -> None:
    """Wait until the process says ``line``."""
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    if said != line:
        raise RuntimeError(f"the process that opens the vault said {said!r}, not {line!r}")


def hold(path: str, key_file: str, model: str | None) -> None:
    """Open, search in every mode, say so; at the first line from outside lock, and wait on."""
    store = MemoryStore.open(path, key_file=key_file, embedder=model)
    for mode in ("hybrid", "keyword", "vector", "literal"):
        store.search(QUERY, mode=mode, limit=32)
    print("open", flush=True)
    sys.stdin.readline()
    store.lock()
    print("locked", flush=True)
    sys.stdin.readline()


def looked_at(
    folder: Path, profile: str, model: str | None, memories: int
) -> tuple[str, dict[str, Found], dict[str, Found]]:
    """The kind of vector index, what was found while the vault was open, and after its lock."""
    path, key_file = folder / f"{profile}.db", folder / "keys" / f"{profile}.key"
    fill(path, key_file, profile, model, memories)
    with MemoryStore.open(path, key_file=key_file, embedder=model) as store:
        things = things_in(store, key_file)
        kind = store.vector_index().kind
    with holding(path, key_file, model) as process:
        while_open = found_in(process.pid, things)
        tell_to_lock(process)
        return kind, while_open, found_in(process.pid, things)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both profiles and print a table."""
    parser = argparse.ArgumentParser(description="Read a process's memory after a lock.")
    parser.add_argument("--memories", type=int, default=1_000)
    parser.add_argument("--model", help="embedding model; by default the usual one")
    parser.add_argument("--write", type=Path, help="a JSON file for docs/trust/security.md")
    parser.add_argument("--hold", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.hold:
        hold(**json.loads(given.hold))
        return 0
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MEMORY_STORE_STATE"] = str(Path(folder) / "state")
        for profile in PROFILES:
            kind, before, after = looked_at(Path(folder), profile, given.model, given.memories)
            counts = {
                name: [found.different, found.copies, after[name].different, after[name].copies]
                for name, found in before.items()
            }
            figures.append(
                {"profile": profile, "index": kind, "memories": given.memories, **counts}
            )
            print(f"{profile} ({kind}), {given.memories:,} memories")
            for name, found in before.items():
                left = after[name]
                print(
                    f"  {name:8}  open {found.different:,} ({found.copies:,})"
                    f"  locked {left.different:,} ({left.copies:,})"
                )
    write_figures(given.write, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
