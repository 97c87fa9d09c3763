"""How long an exchange takes, and how much it writes: ``python -m benchmarks.sync``.

Two copies of a vault of drawn notes exchange by a folder, without a model. Times are of the
processor (one core), so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

Answer = TypeVar("Answer")
WORDS = 220  # of a note: about 1,500 characters


def timed(what: str, work: Callable[[], Answer]) -> Answer:
    """Do it, and print how long the processor was at it."""
    begun = time.process_time()
    answer = work()
    print(f"{what}: {time.process_time() - begun:.1f} s", flush=True)
    return answer


def drafts(count: int) -> list[MemoryDraft]:
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghij", k=draw.randint(3, 9))) for _ in range(3_000)]
    return [
        MemoryDraft(
            " ".join(draw.choices(words, k=WORDS)), title=f"Note {n}", topics=(words[n % 50],)
        )
        for n in range(count)
    ]


def measure(folder: Path, count: int) -> None:
    drive, key = folder / "drive", folder / "keys" / "notes.key"
    for name in ("drive", "desk", "phone"):
        (folder / name).mkdir()

    def size() -> int:
        return sum(file.stat().st_size for file in drive.iterdir())

    desk, _ = MemoryStore.create(folder / "desk" / "notes.db", key_file=key)
    with desk:
        timed(f"add {count:,} memories", lambda: desk.add_many(drafts(count), embed=False))
        timed("first sync", lambda: desk.sync_with_folder(drive, embed=False))
        vault = desk.path.stat().st_size
        print(f"folder: {size() / 1e6:.1f} MB; vault: {vault / 1e6:.1f} MB")
        with MemoryStore.join(folder / "phone" / "notes.db", drive, key_file=key) as phone:
            timed("the other device takes all", lambda: phone.sync_with_folder(drive, embed=False))
            for memory in desk.list(limit=10):
                desk.edit(memory.id, title="Changed")
            before = size()
            timed("sync after 10 edits", lambda: desk.sync_with_folder(drive, embed=False))
            print(f"added to the folder: {(size() - before) / 1e3:.0f} KB")
            timed("the other takes them", lambda: phone.sync_with_folder(drive, embed=False))
            timed("sync without news", lambda: phone.sync_with_folder(drive, embed=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    count = parser.parse_args().memories
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MEMORY_STORE_STATE"] = str(Path(folder) / "state")
        measure(Path(folder), count)


if __name__ == "__main__":
    main()
