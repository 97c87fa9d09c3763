"""What a change to the code cost a vault in a file: two checkouts do the same work, in turns.

    python -m benchmarks.two_checkouts OLDER NEWER [--notes 1000] [--turns 15] [--json FILE]

Each folder holds the source of one commit (``git worktree add``). Each has a process of its own and
a vault of its own, with the same notes, without vectors. A figure is the newer one's processor time
÷ the older one's: the median of as many turns, in which both follow each other at once, so that
other work on the machine slows both. Give one folder twice to see how far the figures scatter.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles

from msgspec import Struct
from msgspec import json as msgjson

from benchmarks.corpus import write_corpus

WORKER = """
import gc, json, sys, time
from pathlib import Path
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

place, notes, queries = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
key, vault = place / "keys" / "notes.key", place / "notes.db"

def opened(where, create=False):
    if create:
        return MemoryStore.create(where, key_file=key)[0]
    return MemoryStore.open(where, key_file=key)

with opened(vault, create=True) as first:
    first.import_paths([notes], embed=False)
store, made = opened(vault), 0

def imported(turn):
    with opened(place / f"import{turn}.db", create=True) as one:
        one.import_paths([notes], embed=False)

def unlocked(turn):
    for _ in range(10):
        with opened(vault) as one:
            one.search(queries[0], mode="keyword", limit=1)

def searched(turn):
    for query in queries:
        store.search(query, mode="keyword")

def added(turn):
    for number in range(20):
        store.add_many([MemoryDraft(text=f"Turn {turn}, the {number}th.")], embed=False)

def added_many(turn):
    drafts = [MemoryDraft(text=f"Of a batch {turn}-{number}.") for number in range(64)]
    store.add_many(drafts, embed=False)

WORKS = {
    "search, by words": searched,
    "unlock and first search": unlocked,
    "add one memory": added,
    "add 64 at once": added_many,
    "import": imported,
}
print(json.dumps([*WORKS]), flush=True)
for line in sys.stdin:
    name, turn = json.loads(line)
    gc.collect()
    before = time.process_time()
    WORKS[name](turn)
    print(json.dumps(time.process_time() - before), flush=True)
"""


class Checkout:
    """A process that runs the code of one commit."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.works: list[str] = json.loads(self._line())

    def taken(self, work: str, turn: int) -> float:
        """Seconds of the processor."""
        assert self._process.stdin is not None
        print(json.dumps([work, turn]), file=self._process.stdin, flush=True)
        return float(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextmanager
def started(checkout: Path, place: Path, notes: Path, queries: Sequence[str]) -> Iterator[Checkout]:
    """Run the code of a checkout, with nothing of the user's own."""
    own = {f"MEMORY_STORE_{n}": str(place / n) for n in ("CACHE", "CONFIG", "DATA", "STATE")}
    environment = {
        **os.environ,
        **own,
        "PYTHONPATH": str(checkout),
        "MEMORY_STORE_OFFLINE": "1",
    }
    words = [sys.executable, "-c", WORKER, str(place), str(notes), json.dumps(queries)]
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=place
    )
    try:
        yield Checkout(process)
    finally:
        process.kill()
        process.wait()


class Compared(Struct, frozen=True):
    """One kind of work: the median of the ratios, and between which half of them lie."""

    work: str
    ratio: float
    low: float
    high: float

    def __str__(self) -> str:
        return (
            f"{self.work}: {self.ratio:.3f} (half of the turns: {self.low:.3f} to {self.high:.3f})"
        )


def compared(folders: Sequence[Path], notes: int, turns: int) -> Iterator[Compared]:
    """What each kind of work takes by the second folder's code, as times what by the first's."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        corpus = write_corpus(folder / "notes", notes)
        both = []
        for number, checkout in enumerate(folders):
            place = folder / str(number)
            place.mkdir()
            queries = list(corpus.queries)
            both.append(
                stack.enter_context(started(checkout.resolve(), place, corpus.folder, queries))
            )
        ratios = defaultdict(list)
        for turn in range(turns + 1):
            for work in both[0].works:
                order = both if turn % 2 else both[::-1]
                taken = {one: one.taken(work, turn) for one in order}
                if turn:  # the first one warms both up
                    ratios[work].append(taken[both[1]] / taken[both[0]])
        for work, found in ratios.items():
            low, _, high = quantiles(found, n=4)
            yield Compared(work, median(found), low, high)


def main() -> None:
    parser = argparse.ArgumentParser(description="The same work by the code of two checkouts.")
    parser.add_argument("folders", type=Path, nargs=2, metavar="FOLDER")
    parser.add_argument("--notes", type=int, default=1_000)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--json", type=Path, help="write the figures here")
    given = parser.parse_args()
    found = [*compared(given.folders, given.notes, given.turns)]
    print(*found, sep="\n")
    if given.json:
        given.json.write_bytes(msgjson.format(msgjson.encode(found), indent=1) + b"\n")


if __name__ == "__main__":
    main()
