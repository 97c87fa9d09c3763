"""Source code beside others: the same tree and questions, one program after another, in one run.

    python -m benchmarks.code_peers TREE [--ripgrep rg] [--semble PYTHON --model FOLDER]

``--semble`` is a Python that has semble, ``--model`` a folder in Model2Vec's format, with which it
needs no model hub; ours makes no vectors. Each step is a process of its own. Its seconds are
processor time from its start to its end, of the processes that it began, too; a question's are
those of a program that is running.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.code_speed import QUESTIONS, beside

INDEX, AGAIN, FIRST, QUESTION = "index", "again, nothing changed", "the first answer", "a question"
_OURS = """
import sys, time
from pathlib import Path
from statistics import median
from memory_store.store import MemoryStore
step, folder, tree, *questions = sys.argv[1:]
vault, key = Path(folder, "vaults", "code.db"), Path(folder, "keys", "key")
if step == "index":
    vault.parent.mkdir()
    MemoryStore.create(vault, key_file=key)[0].close()
with MemoryStore.open(vault, key_file=key) as store:
    if step in ("index", "again"):
        store.import_paths([Path(tree)], embed=False)
    else:
        def ask(question):
            begun = time.process_time()
            store.search(question, recipe="code", limit=10)
            return time.process_time() - begun
        times = [ask(one) for one in questions]
        if step == "warm":
            print(median(ask(one) for one in questions * 5))
"""
_SEMBLE = """
import sys, time
from statistics import median
from semble import SembleIndex
from semble.cache import save_index_to_cache
step, model, tree, *questions = sys.argv[1:]
index = SembleIndex.from_path(tree, model_path=model)
save_index_to_cache(index, tree)
def ask(question):
    begun = time.process_time()
    index.search(question, top_k=10)
    return time.process_time() - begun
times = [ask(one) for one in questions]
if step == "warm":
    print(median(ask(one) for one in questions * 5))
"""


def spent(command: Sequence[str], **environment: str) -> tuple[float, str]:
    """Seconds of processor time of a process and all that it began, and what it says."""
    before = beside()
    done = subprocess.run(
        command, env={**os.environ, **environment}, check=True, capture_output=True, text=True
    )
    return beside() - before, done.stdout


def steps(command: Sequence[str], tree: Path, **environment: str) -> Iterator[tuple[str, float]]:
    """The steps of a program, and their seconds."""
    begin, end = command[:-1], [command[-1], str(tree)]
    asked: dict[str, Sequence[str]] = {INDEX: (), AGAIN: (), FIRST: QUESTIONS[:1]}
    for name, questions in asked.items():
        step = name.partition(",")[0].partition(" ")[0]
        yield name, spent([*begin, step, *end, *questions], **environment)[0]
    yield QUESTION, float(spent([*begin, "warm", *end, *QUESTIONS], **environment)[1])


def size(folder: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())


def ripgrep(program: str, tree: Path) -> Iterator[tuple[str, float]]:
    """A word: it has no index, and reads the tree each time."""
    command = [program, "--line-number", "--word-regexp", "session|class", str(tree)]
    times = sorted(spent(command)[0] for _ in range(5))
    yield QUESTION, times[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is there, and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("--ripgrep", default=shutil.which("rg"), help="the program")
    parser.add_argument("--semble", help="a Python that has it")
    parser.add_argument("--model", type=Path, help="a folder in Model2Vec's format, for semble")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        ours, cache = Path(temporary, "ours"), Path(temporary, "semble")
        for folder in (ours, cache):
            folder.mkdir()
        tree = shutil.copytree(given.tree, Path(temporary, "tree"))
        (tree / ".git").mkdir(exist_ok=True)
        print(f"{sum(1 for one in tree.rglob('*') if one.is_file()):,} files, {size(tree):,} bytes")
        found = {"ours": steps([sys.executable, "-c", _OURS, str(ours)], tree)}
        if given.semble:
            command = [given.semble, "-c", _SEMBLE, str(given.model)]
            found["semble"] = steps(command, tree, SEMBLE_CACHE_LOCATION=str(cache))
        if given.ripgrep:
            found["ripgrep"] = ripgrep(given.ripgrep, tree)
        for program, figures in found.items():
            for name, seconds in figures:
                print(f"  {program:<10}{name:<26}{seconds * 1000:>10,.1f} ms", flush=True)
        print(f"  ours, its vault {size(ours):,} bytes; semble, its cache {size(cache):,}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
