"""Speed and size, side by side with the plain way to do the same, in one run.

    python -m benchmarks.speed [--full] [--only PART …] [--qmd FOLDER] [--evals FOLDER]
        [--json FILE]

Writes a corpus of made-up notes, imports it into sealed vaults and measures; larger vaults are
drawn (:mod:`benchmarks.generated`). Times are medians over repeated runs, CPU and wall, ours and
the peers' in turn. Quote the ratios: the times are this machine's. Nothing fails here, whatever the
times are. At the end a Datasette is put under load: see :mod:`benchmarks.load`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks import load
from benchmarks.cross_encoder import reranking_lines
from benchmarks.development_sets import development_sets
from benchmarks.large import large_lines
from benchmarks.operations import Bench
from benchmarks.report import Measured, as_data, tables, write_figures
from benchmarks.vector_leg import recall_lines, vector_lines
from memory_store.errors import ModelUnavailableError
from memory_store.models.embedder import Embedder, default_threads, load_embedder

PARTS = ("vectors", "imported", "drawn", "reranking", "recall", "load")
PACKAGES = ("numpy", "fastembed", "flashrank", "sqlite-vec", "datasette")


class Sizes(Struct, frozen=True):
    """How many vectors, imported notes, drawn notes, and notes to rerank among."""

    vectors: tuple[int, ...]
    imported: tuple[int, ...]
    drawn: tuple[int, ...]
    reranked: int = 1_000


RECALL_SETS = ("demo", "scifact", "cranfield", "xquad-de", "locomo")
QUICK = Sizes((1_000, 10_000, 100_000), (1_000, 10_000), (100_000,))
FULL = Sizes((1_000, 10_000, 100_000, 1_000_000), (1_000, 10_000), (100_000, 1_000_000))


class Speed(Struct, frozen=True):
    """One run: its sizes, its model, and where a peer and real texts are, if they are."""

    sizes: Sizes
    model: Embedder | None
    qmd: Path | None = None
    evals: Path | None = None
    vaults: Path | None = None

    def vectors(self) -> Iterator[Measured]:
        """The vector leg."""
        for count in self.sizes.vectors:
            yield from vector_lines(count)

    def imported(self) -> Iterator[Measured]:
        """Vaults that Markdown was imported into. What needs a model is left out without one."""
        for number, size in enumerate(self.sizes.imported):
            with _folder() as folder:
                bench = Bench(folder, size, self.model, self.qmd)
                yield from bench.lines()
                yield from bench.sealing()
                if number == 0 and self.model is not None:  # a ratio of its own number of notes
                    yield from bench.embedding(self.model)

    def drawn(self) -> Iterator[Measured]:
        """Vaults that no import would have made in time."""
        for size in self.sizes.drawn:
            with _folder() as folder:
                yield from large_lines(folder, size, self.model)

    def reranking(self) -> Iterator[Measured]:
        """A cross-encoder of TinyBERT's size."""
        if self.model is not None:  # its tokenizer is needed
            with _folder() as folder:
                yield from reranking_lines(folder, self.sizes.reranked)

    def recall(self) -> Iterator[Measured]:
        """The scan of sign bits on real embeddings."""
        if self.model is not None:
            with _folder() as folder:
                vaults = self.vaults or folder
                vaults.mkdir(parents=True, exist_ok=True)
                yield from recall_lines(list(development_sets(self.evals, RECALL_SETS)), vaults)


def _folder() -> Any:
    return _Temporary(prefix="memory-store-bench-")


class _Temporary(tempfile.TemporaryDirectory[str]):
    """A folder for a while, as a path."""

    def __enter__(self) -> Path:  # type: ignore[override]
        return Path(super().__enter__())


def _model() -> Embedder | None:
    try:
        return load_embedder()
    except ModelUnavailableError as error:
        print(f"no embedding, no hybrid search: {error} {error.remedy}", file=sys.stderr)
        return None


def machine() -> str:
    """The machine class in a line: what a reader needs to judge the times, not which one it is."""
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return (
        f"{platform.system()} {platform.machine()}, {default_threads()} cores used, "
        f"load {busy:.1f} at the start"
    )


def versions() -> dict[str, str]:
    """What was measured with what."""
    found = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"Python": platform.python_version(), "SQLite": sqlite3.sqlite_version, **found}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, show the tables, and write the figures as JSON where asked."""
    given = _parser().parse_args(arguments)
    parts = [name for name in PARTS if name in (given.only or PARTS)]
    started, model = time.perf_counter(), _model()
    speed = Speed(FULL if given.full else QUICK, model, given.qmd, given.evals, given.vaults)
    figures: dict[str, Any] = {
        "machine": machine(),
        "versions": versions(),
        "command": _command(given),
        "without_qmd": given.qmd is None,
        "lines": [],
    }
    lines: list[Measured] = []
    for part in parts:
        if part == "load":
            _measure_load(figures, model)
        else:
            for line in getattr(speed, part)():
                print(f"  {' · '.join(filter(None, line.cells()))}", file=sys.stderr, flush=True)
                lines.append(line)
            figures["lines"] = [as_data(line) for line in lines]
        # after each part: what was measured is not lost by what follows
        write_figures(given.json, figures)
    print(f"{figures['machine']}\n\n{tables(lines)}\n")
    print(f"{time.perf_counter() - started:.0f} s in all")
    return 0


def _measure_load(figures: dict[str, Any], model: Embedder | None) -> None:
    if model is None:
        return
    loaded = load.measured()
    print(f"Datasette under load, {load.SIZE:,} notes. {loaded}\n")
    figures["load"] = load.as_json(loaded)


def _command(given: argparse.Namespace) -> str:
    """What was asked for, without the machine's own paths."""
    said = ["python -m benchmarks.speed", *(["--full"] if given.full else [])]
    said += [f"--only {part}" for part in given.only or ()]
    said += [f"--{name} FOLDER" for name in ("qmd", "evals", "vaults") if getattr(given, name)]
    return " ".join(said)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure speed and size beside peers.")
    parser.add_argument("--full", action="store_true", help="a million vectors and notes as well")
    parser.add_argument("--only", action="append", choices=PARTS, help="a part of it (repeatable)")
    parser.add_argument("--qmd", type=Path, help="folder that QMD was installed into with npm")
    parser.add_argument("--evals", type=Path, help="development sets, for recall on real texts")
    parser.add_argument("--vaults", type=Path, help="keep their vaults here, as make quality does")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
