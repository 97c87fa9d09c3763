"""How long whole commands take with a keeper and without one, in turn, on one machine.

    python -m benchmarks.keeper NOTES.db --key-file FILE "a query" "another" [--runs 9]

Prints Markdown: wall time and processor time of the command's own process, medians. ``python -m
benchmarks.corpus FOLDER`` writes notes to import first.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from memory_store.keeper.client import connected_to
from memory_store.keeper.launch import socket_for

COMMAND = (sys.executable, "-m", "memory_store")


def timed(environment: dict[str, str], *words: str) -> tuple[float, float]:
    """Milliseconds until a command has ended, and those that its process used of a processor."""
    begun, before = time.perf_counter(), os.times()
    subprocess.run([*COMMAND, *words], env=environment, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    used = sum(after[2:4]) - sum(before[2:4])
    return (time.perf_counter() - begun) * 1000, used * 1000


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vault")
    parser.add_argument("queries", nargs="+")
    parser.add_argument("--key-file", required=True)
    parser.add_argument("--runs", type=int, default=9)
    given = parser.parse_args()
    usual = {**os.environ, "MEMORY_STORE_KEY_FILE": os.path.abspath(given.key_file)}
    ways = {"keeper": usual, "alone": {**usual, "MEMORY_STORE_KEEPER": "off"}}
    subprocess.run([*COMMAND, "unlock", given.vault], env=usual, check=True)
    commands = {
        "hybrid search": ["search", given.vault],
        "keyword search": ["search", given.vault, "--mode", "keyword"],
        "list": ["list", given.vault],
    }
    print("| command | keeper, ms | alone, ms | ratio | keeper, CPU ms | alone, CPU ms |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, words in commands.items():
        taken: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        for run in range(given.runs + 1):
            query = [] if name == "list" else [given.queries[run % len(given.queries)]]
            for way, environment in ways.items():
                taken[way].append(timed(environment, *words, *query))
        wall = {way: median(one for one, _ in found[1:]) for way, found in taken.items()}
        used = {way: median(one for _, one in found[1:]) for way, found in taken.items()}
        cells = [f"{wall['keeper']:.0f}", f"{wall['alone']:.0f}"]
        cells += [f"{wall['keeper'] / wall['alone']:.2f}"]
        cells += [f"{used['keeper']:.0f}", f"{used['alone']:.0f}"]
        print(f"| {name} | {' | '.join(cells)} |")
    connection = connected_to(socket_for(Path(given.vault)))
    assert connection is not None, "it was ended meanwhile"
    connection.close()
    subprocess.run([*COMMAND, "lock", given.vault], env=usual, check=True)


if __name__ == "__main__":
    main()
