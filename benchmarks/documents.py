"""How much of a folder of documents is read, how fast, and in how much memory.

    python -m benchmarks.documents FOLDER

Prints a Markdown table: files of each kind, how many gave text, how many have none to give (empty,
scans), how many could not be read, and why. Time and memory are those of the processes that read.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from pathlib import Path

from memory_store.importing.converters import process
from memory_store.importing.converters.document import LeftOutError, UnreadableError
from memory_store.importing.converters.kinds import KINDS, Kind


def measured(kind: Kind, files: list[Path]) -> tuple[str, Counter[str]]:
    """A row of the table, and how often each reason was given."""
    read = left_out = characters = 0
    reasons: Counter[str] = Counter()
    data = [path.read_bytes() for path in files]
    began = time.perf_counter()
    for content in data:
        try:
            documents = process.convert(kind.name, content)
            read += 1
            characters += sum(len(one.text) for one in documents)
        except LeftOutError as error:
            left_out += 1
            reasons[str(error)] += 1
        except UnreadableError as error:
            reasons[str(error)] += 1
    seconds = time.perf_counter() - began
    process.close()
    size = sum(map(len, data)) / 1e6
    suffixes = ", ".join(f"`{suffix}`" for suffix in kind.suffixes)
    return (
        f"| {suffixes} | {len(files)} | {size:.1f} | {read} | {left_out} | "
        f"{len(files) - read - left_out} | {characters / 1e6:.2f} | {seconds:.1f} |",
        reasons,
    )


def main() -> None:
    """Measure the folder that is named."""
    below = [path for path in sorted(Path(sys.argv[1]).rglob("*")) if path.is_file()]
    print("| kind | files | MB | read | without text | not readable | million characters | s |")
    print("|---|---|---|---|---|---|---|---|")
    reasons: dict[str, Counter[str]] = {}
    for kind in KINDS:
        files = [path for path in below if path.suffix.lower() in kind.suffixes]
        if files:
            row, reasons[kind.name] = measured(kind, files)
            print(row, flush=True)
    for name, counted in reasons.items():
        for reason, times in counted.most_common():
            print(f"\n{name}: {reason}: {times}", end="")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"\n\nThe largest process took {peak / 1024:.0f} MB.")


if __name__ == "__main__":
    main()
