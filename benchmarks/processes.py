"""What one process with an opened vault holds, and what its first search costs.

    python -m benchmarks.processes VAULT KEY_FILE MODE QUERY…

is what the benchmark starts: a process that imports everything, unlocks, searches, and prints what
each took and how much memory it held after it (its unique set, which no other process shares).
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
    process: str, size: int, vault: Path, key_file: Path, mode: str, queries: Sequence[str]
) -> Held:
    """The medians of some processes, one after another, that search in that ``mode``."""
    command = [sys.executable, "-m", "benchmarks.processes", str(vault), str(key_file), mode]
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
    return Held(process, size, **times, **held)


def _alone() -> int:
    gc.collect()
    return int(psutil.Process(os.getpid()).memory_full_info().uss)


def main(arguments: Sequence[str]) -> int:
    """Be that process."""
    import memory_store.search.pipeline  # noqa: F401 - imported before anything is measured
    from memory_store.store import MemoryStore

    vault, key_file, mode, *queries = arguments
    if mode != "keyword":
        from memory_store.models.embedder import load_embedder

        load_embedder().embed_query("warm")
    held, opened = {"before": _alone()}, []

    def unlock() -> None:
        opened.append(MemoryStore.open(vault, key_file=key_file))
        opened[0].search_context()

    taken = {"unlock": spent_on(unlock)}
    store = opened[0]
    held["unlocked"] = _alone()
    options: dict[str, Any] = {"mode": mode, "rerank": False}
    each = [spent_on(lambda one=one: store.search(one, **options)) for one in queries]
    taken |= {"first": each[0], "later": median_of(each[1:])}
    held |= {"searched": _alone(), "index": int(store.stats()["index_bytes"])}
    store.close()
    print(json.dumps({**{name: to_builtins(one) for name, one in taken.items()}, **held}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
