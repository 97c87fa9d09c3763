"""Speed and size, side by side with the plain way to do the same, in one run.

    python -m benchmarks.speed [--size 1000 --size 10000 …] [--vectors 100000 …] [--no-load]
        [--json FILE]

Writes a corpus of made-up notes, imports it into sealed vaults and measures. Times are medians
over repeated runs, CPU and wall, ours and the peer's in turn. Quote the ratios: the times are this
machine's. Nothing fails here, whatever the times are. At the end a Datasette is put under load:
see :mod:`benchmarks.load`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import load
from benchmarks.operations import Bench, vector_lines
from benchmarks.report import Line, Proportion, table
from memory_store.errors import ModelUnavailableError
from memory_store.models.embedder import Embedder, default_threads, load_embedder

SIZES = (1_000, 10_000)
VECTORS = (10_000, 100_000)


def measured(sizes: Sequence[int], vectors: Sequence[int]) -> Iterator[Line | Proportion]:
    """Every line, the smaller sizes first. Lines that need a model are left out without one."""
    model = _model()
    for count in sorted(vectors):
        yield from vector_lines(count)
    for number, size in enumerate(sorted(sizes)):
        with tempfile.TemporaryDirectory(prefix="memory-store-bench-") as folder:
            bench = Bench(Path(folder), size, model)
            yield from bench.lines()
            if number == 0:  # ratios that do not depend on the size
                yield bench.sealing()
                if model is not None:
                    yield bench.embedding(model)


def _model() -> Embedder | None:
    try:
        return load_embedder()
    except ModelUnavailableError as error:
        print(f"no embedding, no hybrid search: {error} {error.remedy}", file=sys.stderr)
        return None


def machine() -> str:
    """The machine class in a line: what a reader needs to judge the times, not which one it is."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return (
        f"{platform.system()} {platform.machine()}, {default_threads()} cores used, "
        f"load {load:.1f} at the start, Python {platform.python_version()}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, show the table, and write the figures as JSON where asked."""
    parser = argparse.ArgumentParser(description="Measure speed and size beside peers.")
    parser.add_argument(
        "--size", type=int, action="append", help="notes in the corpus (repeatable)"
    )
    parser.add_argument("--vectors", type=int, action="append", help="vectors (repeatable)")
    parser.add_argument("--no-load", action="store_true", help="without Datasette under load")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    given = parser.parse_args(arguments)
    started = time.perf_counter()
    conditions = machine()
    lines = []
    for line in measured(given.size or SIZES, given.vectors or VECTORS):
        print(f"  measured: {line.operation}, {line.size:,}", file=sys.stderr, flush=True)
        lines.append(line)
    print(f"{conditions}\n\n{table(lines)}\n")
    figures: dict[str, Any] = {"machine": conditions, "lines": [asdict(line) for line in lines]}
    if not given.no_load and _model() is not None:
        idle, crowds = load.measured(load.SIZE, load.CLIENTS, load.SECONDS)
        print(f"Datasette under load, {load.SIZE:,} notes. {load.report(idle, crowds)}\n")
        figures["load"] = {"idle": asdict(idle), "lines": [asdict(line) for line in crowds]}
    print(f"{time.perf_counter() - started:.0f} s in all")
    if given.json is not None:
        given.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
