"""How many near duplicates memory_add names, and what it takes.

    python -m benchmarks.near_duplicates [--notes 10000] [--asked 300]

The notes are drawn (see ``benchmarks.generated``) and not embedded: what is found is found by
sealed shingles. Each change is made to notes picked at random, and those are counted whose note is
named as known already, and those for which others are named. Prints Markdown: milliseconds are the
median of a call.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.generated import draw_vault
from memory_store.assistants.assistant import Assistant
from memory_store.assistants.tools import call
from memory_store.records import Memory, MemoryDraft
from memory_store.scopes import EVERYTHING
from memory_store.store import MemoryStore

SHORT = 12  # words of a short memory


def replaced(words: Sequence[str], every: int) -> str:
    """The text with one word in so many replaced by one that is in no note."""
    return " ".join("elsewhere" if n % every == every // 2 else w for n, w in enumerate(words))


CHANGES: dict[str, Callable[[Memory], str]] = {
    "as it is": lambda one: one.text,
    "other case and punctuation": lambda one: one.text.upper().replace(" ", ", ") + "!",
    "with its title in front": lambda one: f"# {one.title}\n\n{one.text}",
    "one word in 50 replaced": lambda one: replaced(one.text.split(), 50),
    "a word in front and one behind": lambda one: f"Again: {one.text} (noted)",
}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--asked", type=int, default=300)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, key_file = Path(folder, "vault", "notes.db"), Path(folder, "keys", "bench.key")
        path.parent.mkdir()
        draw_vault(path, key_file, given.notes, None)
        with MemoryStore.open(path, key_file=key_file) as store:
            measure(store, given.asked)


def measure(store: MemoryStore, asked: int) -> None:
    """Ask about changed notes, then about changed short ones."""
    helper = Assistant(store.limited_to(EVERYTHING), "write", "benchmark")
    picked = random.Random(7).sample(store.list(limit=100_000), asked)
    begun = [MemoryDraft(" ".join(one.text.split()[:SHORT])) for one in picked]
    short = store.add_many(begun, embed=False)
    print(f"| {store.embedding().total:,} notes | named | also named others | ms |")
    print("|---|--:|--:|--:|")
    for name, change in CHANGES.items():
        shown(helper, name, [(one.id, change(one)) for one in picked])
    shown(helper, "short, as it is", [(one.id, one.text) for one in short])
    shown(helper, "short, other case", [(one.id, one.text.upper() + "!") for one in short])


def shown(helper: Assistant, name: str, asked: Sequence[tuple[str, str]]) -> None:
    """One line of the table."""
    found, others, taken = 0, 0, []
    for id_, text in asked:
        begun = time.perf_counter()
        said = call(helper, "memory_add", {"memories": [{"text": text}], "if_new": True})
        taken.append(time.perf_counter() - begun)
        ids = {one["id"] for one in said["memories"][0]["already_known"]}
        found += id_ in ids
        others += bool(ids - {id_})
    print(
        f"| {name} | {100 * found / len(asked):.1f} % | {others} | {1000 * np.median(taken):.0f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
