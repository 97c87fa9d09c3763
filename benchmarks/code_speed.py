"""How fast a large tree of source code is imported, asked and searched, without vectors.

    python -m benchmarks.code_speed [--tree FOLDER] [--files 3000] [--symbol Popen]

Without ``--tree`` it is drawn evenly from the Python files of this Python's own library and of the
packages beside it. Times are of this process's processor time.
"""

from __future__ import annotations

import argparse
import shutil
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from memory_store.store import MemoryStore

QUESTIONS = (
    "where is a socket opened",
    "parse command line options",
    "class of a temporary directory",
    "how are cookies signed",
)


def drawn(files: int, folder: Path) -> Path:
    """A tree of so many Python files of this installation."""
    there = sorted(
        (path, Path(sysconfig.get_path(kind)))
        for kind in ("stdlib", "purelib")
        for path in Path(sysconfig.get_path(kind)).rglob("*.py")
    )
    for path, root in there[:: max(1, len(there) // files)][:files]:
        target = folder / root.name / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return folder


def spent(work: Callable[[], object]) -> float:
    """Seconds of processor time."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def figures(tree: Path, folder: Path, symbol: str) -> Iterator[tuple[str, float]]:
    """What was done, and its seconds."""
    path, key_file = folder / "vaults" / "code.db", folder / "keys" / "key"
    path.parent.mkdir()
    with MemoryStore.create(path, key_file=key_file)[0] as store:
        yield "the import, without vectors", spent(lambda: store.import_paths([tree], embed=False))
        again = spent(lambda: store.import_paths([tree], embed=False))
        yield "the same again, nothing changed", again
        yield f"files: {store.stats()['memories']:,}", 0.0
    with MemoryStore.open(path, key_file=key_file) as store:
        yield "the first question about symbols", spent(lambda: store.code.symbols(symbol))
        later = median(spent(lambda: store.code.symbols(symbol)) for _ in range(20))
        yield f"symbols({symbol!r}) from then on", later
        for question in QUESTIONS:
            store.search(question, mode="keyword")
            times = [spent(lambda q=question: store.search(q, mode="keyword")) for _ in range(5)]
            yield f"search({question!r})", median(times)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tree", type=Path, help="source code, instead of what is drawn")
    parser.add_argument("--files", type=int, default=3_000, help="how many files are drawn")
    parser.add_argument("--symbol", default="Popen", help="a name that the tree defines")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        tree = folder / "tree"
        shutil.copytree(given.tree, tree) if given.tree else drawn(given.files, tree)
        (tree / ".git").mkdir(exist_ok=True)  # so that it is imported as a work tree
        for what, seconds in figures(tree, folder, given.symbol):
            print(f"{what:<48}{f'{seconds * 1_000:,.1f} ms' if seconds else ''}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
