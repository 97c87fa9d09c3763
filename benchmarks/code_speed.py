"""How fast a large tree of source code is imported, asked and searched, without vectors.

    python -m benchmarks.code_speed [--tree FOLDER] [--files 3000] [--symbol Popen] [--changed 60]

Without ``--tree`` it is drawn evenly from the Python files of this Python's own library and of the
packages beside it, and committed. Then another branch changes some files, and all of it is imported
once more. Times are processor time, of all processes together; beside the imports stand
that of this process alone, and that of a clock, which depends on what else the machine does.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from memory_store.access import KEY_HOLDER
from memory_store.sql.functions import StoreAndGrants, register
from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore

QUESTIONS = (
    "where is a socket opened",
    "parse command line options",
    "class of a temporary directory",
    "how are cookies signed",
)
ADDED = "added_by_the_other_branch"
STATEMENTS = (
    "select * from code_symbols limit 101",
    "select file, line from code_symbols where kind = 'class' limit 101",
    'select * from code_symbols order by "references" desc limit 20',
    "select kind, count(*) from code_symbols group by kind",
    f"select * from code_references where name = '{ADDED}'",
    "select * from code_references limit 101",
    "select * from code_symbols",
)


def drawn(files: int, folder: Path) -> Path:
    """A tree of so many Python files of this installation; of more than there are, some again."""
    there = sorted(
        (path, Path(sysconfig.get_path(kind)))
        for kind in ("stdlib", "purelib")
        for path in Path(sysconfig.get_path(kind)).rglob("*.py")
    )
    chosen = there[:: max(1, len(there) // files)]
    for number in range(files):
        turn, place = divmod(number, len(chosen))
        path, root = chosen[place]
        target = folder / f"{root.name}{turn or ''}" / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return folder


def spent(work: Callable[[], object]) -> float:
    """Seconds of processor time of this process."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def beside() -> float:
    """Seconds of processor time of the processes that this one had begun and that have ended."""
    there = os.times()
    return there.children_user + there.children_system


def git(tree: Path, *words: str) -> None:
    """Run Git in a tree."""
    person = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", "-C", str(tree), *person, *words], check=True)


def change(tree: Path, files: int) -> int:
    """Switch to a branch with one more definition in so many Python files, evenly drawn; gives how
    many there were."""
    git(tree, "checkout", "-q", "-b", "other")
    there = sorted(tree.rglob("*.py"))
    drawn_from = there[:: max(1, len(there) // max(1, files))][:files]
    for path in drawn_from:
        with path.open("ab") as stream:
            stream.write(f"\n\ndef {ADDED}():\n    return None\n".encode())
    git(tree, "commit", "-qam", "two")
    return len(drawn_from)


def imported(store: MemoryStore, tree: Path, what: str) -> Iterator[tuple[str, float]]:
    """An import, and its seconds of processor time, of this process's, and of the clock."""
    begun, others = time.monotonic(), beside()
    own = spent(lambda: store.import_paths([tree], embed=False))
    yield what, own + beside() - others
    yield "  of this process", own
    yield "  by the clock", time.monotonic() - begun


def asked_for(store: MemoryStore, symbol: str) -> list[str]:
    """The names to look up: that one, if the tree defines it; the one that is used most; and one
    that is used as often as half of those that are used."""
    every = {one.name: one.references for one in store.code.every_symbol()}
    by_use = sorted((name for name, uses in every.items() if uses), key=every.__getitem__)
    drawn_names = [by_use[len(by_use) // 2], by_use[-1]] if by_use else []
    return [*dict.fromkeys((*[symbol] * (symbol in every), *drawn_names))]


def selected(store: MemoryStore) -> Iterator[tuple[str, float]]:
    """Each of the statements, the second time that it is run."""
    connection = sqlite3.connect(":memory:")
    register(connection, lambda named: StoreAndGrants(store, KEY_HOLDER))
    for statement in STATEMENTS:
        for turn in range(2):
            seconds = spent(lambda sql=statement: connection.execute(sql).fetchall())
            if turn:
                yield statement, seconds
    connection.close()


def figures(tree: Path, folder: Path, symbol: str, changed: int) -> Iterator[tuple[str, float]]:
    """What was done, and its seconds."""
    path, key_file = folder / "vaults" / "code.db", folder / "keys" / "key"
    path.parent.mkdir()
    with MemoryStore.create(path, key_file=key_file)[0] as store:
        yield from imported(store, tree, "the import, without vectors")
        yield from imported(store, tree, "the same again, nothing changed")
        count = change(tree, changed)
        yield from imported(store, tree, f"the same again, {count:,} files changed")
        yield f"files: {store.stats()['memories']:,}", 0.0
    with MemoryStore.open(path, key_file=key_file) as store:
        yield "the first look-up of a symbol", spent(lambda: store.code.symbols(ADDED))
        yield "the first question about all symbols", spent(store.code.context)
        for name in asked_for(store, symbol):
            later = median(spent(lambda n=name: store.code.symbols(n)) for _ in range(20))
            yield f"symbols({name!r})", later
        known = median(spent(lambda: store.exists("Popen")) for _ in range(20))
        yield "exists('Popen')", known
        yield f"symbols: {len(store.code.every_symbol(counted=False)):,}", 0.0
        yield from selected(store)
        for question in QUESTIONS:
            store.search(question, mode="keyword")
            times = [spent(lambda q=question: store.search(q, mode="keyword")) for _ in range(5)]
            yield f"search({question!r})", median(times)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tree", type=Path, help="source code, instead of what is drawn")
    parser.add_argument("--files", type=int, default=3_000, help="how many files are drawn")
    parser.add_argument("--symbol", default="Popen", help="a name to look up, if it is there")
    parser.add_argument("--changed", type=int, default=60, help="how many files are changed")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        tree = folder / "tree"
        shutil.copytree(given.tree, tree) if given.tree else drawn(given.files, tree)
        for words in (
            ("init", "-q"),
            ("add", "-A"),
            ("commit", "-q", "--allow-empty", "-m", "one"),
        ):
            git(tree, *words)
        for what, seconds in figures(tree, folder, given.symbol, given.changed):
            print(f"{what:<70}{f'{seconds * 1_000:,.1f} ms' if seconds else ''}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
