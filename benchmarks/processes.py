"""What one process with an opened vault holds, and what its first search costs.

    python -m benchmarks.processes VAULT KEY_FILE MODE (search | rank) QUERY…

is what the benchmark starts: a process that imports everything, unlocks, searches, and prints what
each took and how much memory it held after it (its unique set, which no other process shares).
``rank`` opens no texts, for vaults that have none.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from msgspec import to_builtins

from benchmarks.measuring import Spent, median_of, spent_on
from benchmarks.report import Held

STARTS = 3
SEARCHES = 9


def opened_process(
    size: int, vault: Path, key_file: Path, mode: str, queries: Sequence[str], *, texts: bool = True
) -> Held:
    """The medians of some processes, one after another, that search in that ``mode``.

    Without ``texts`` there is nothing to show, and they only rank.
    """
    command = [sys.executable, "-m", "benchmarks.processes", str(vault), str(key_file), mode]
    command.append("search" if texts else "rank")
    runs: list[dict[str, Any]] = []
    for _ in range(STARTS):
        ended = subprocess.run(
            [*command, *queries[: SEARCHES + 1]],
            check=True,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[1],
        )
        runs.append(json.loads(ended.stdout))
    times = {
        name: median_of([Spent(**run[name]) for run in runs])
        for name in ("unlock", "first", "later")
    }
    middle = sorted(runs, key=lambda run: run["searched"])[len(runs) // 2]
    held = {name: middle[name] for name in ("before", "unlocked", "searched", "index")}
    return Held(mode if texts else f"{mode}, ranking", size, **times, **held)


def held_alone() -> int:
    """Bytes of memory that this process shares with no other."""
    gc.collect()
    return int(psutil.Process(os.getpid()).memory_full_info().uss)


def main(arguments: Sequence[str]) -> int:
    """Be that process."""
    import memory_store.search.pipeline  # noqa: F401 - imported before anything is measured
    from memory_store.store import MemoryStore

    vault, key_file, mode, work, *queries = arguments
    if mode != "keyword":
        from memory_store.models.embedder import load_embedder

        load_embedder().embed_query("warm")
    held, opened = {"before": held_alone()}, []

    def unlock() -> None:
        opened.append(MemoryStore.open(vault, key_file=key_file))
        opened[0].search_context()

    taken = {"unlock": spent_on(unlock)}
    store = opened[0]
    held["unlocked"] = held_alone()
    options: dict[str, Any] = {"mode": mode, "rerank": False}
    asked = store.search if work == "search" else store.rank
    each = [spent_on(lambda one=one: asked(one, **options)) for one in queries]
    taken |= {"first": each[0], "later": median_of(each[1:])}
    held |= {"searched": held_alone(), "index": int(store.stats()["index_bytes"])}
    store.close()
    print(json.dumps({**{name: to_builtins(one) for name, one in taken.items()}, **held}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
