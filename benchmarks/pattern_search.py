"""Patterns over a sealed folder: how much is opened for them, and whether all is found.

    python -m benchmarks.pattern_search FOLDER [--patterns 240] [--json FILE]

The folder is imported into a sealed vault as a work tree, without vectors. Patterns are taken from
the folder itself: of source code from its test suites (what they quote and what they call), of
notes from what these link to and head. Each has a literal of four characters or more. The same is
asked of ``rg`` over the same files, where it is installed; every difference is printed. Import time
and file size are measured with trigrams and without, in processes of their own.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.report import write_figures
from memory_store.index.kinds import KINDS
from memory_store.index.trigrams import TRIGRAMS
from memory_store.session.entries import RECORDS
from memory_store.store import MemoryStore

SEED = 7
LEAST, MOST = 4, 40  # characters of what is quoted
_QUOTED = re.compile(r"[A-Za-z_][\w .,:/()-]*")
_SPOKEN = re.compile(r"\[\[([^\]|#]+)|^#+ (.+)$", re.MULTILINE)
_ESCAPED = re.compile(r"([.()])")


class Asked(Struct, frozen=True):
    """One pattern and what came of it: memories opened, and the files that it matched."""

    kind: str
    pattern: str
    opened: int
    found: frozenset[str]
    milliseconds: float


def patterns(folder: Path, count: int) -> list[tuple[str, str]]:
    """``(kind, pattern)``, the same ones for the same folder."""
    chance = random.Random(SEED)
    quoted, called = _said_by(folder)
    made = [
        *(("literal", _escape(text)) for text in quoted),
        *(("any case", f"(?i){_escape(text.swapcase())}") for text in quoted),
        *(("a gap", f"{text.split()[0]}.*{text.split()[-1]}") for text in quoted if _gapped(text)),
        *(("a call", rf"\b{name}\(") for name in called),
        *(("a definition", rf"(def|class) {name}\b") for name in called),
    ]
    kinds = list(dict.fromkeys(kind for kind, _ in made))
    each = {kind: [one for one in made if one[0] == kind] for kind in kinds}
    share = -(-count // len(kinds))
    return [one for kind in kinds for one in chance.sample(each[kind], min(share, len(each[kind])))]


def _escape(text: str) -> str:
    return _ESCAPED.sub(r"\\\1", text)


def _gapped(text: str) -> bool:
    words = text.split()
    return len(words) > 1 and all(word.isalnum() and len(word) >= LEAST for word in words)


def _said_by(folder: Path) -> tuple[list[str], list[str]]:
    """What the tests of a repository quote and call; without any, what notes link to and head."""
    quoted: set[str] = set()
    called: set[str] = set()
    for path in sorted(folder.rglob("test*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                quoted.add(node.value)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                called.add(node.func.attr)
    if not quoted:
        for path in folder.rglob("*.md"):
            found = _SPOKEN.finditer(path.read_text("utf-8"))
            quoted.update((one[1] or one[2]).strip() for one in found)
    usable = {text for text in quoted if LEAST <= len(text) <= MOST and _QUOTED.fullmatch(text)}
    return sorted(usable), sorted(name for name in called if len(name) >= LEAST)


def asked(store: MemoryStore, wanted: Iterable[tuple[str, str]]) -> Iterator[Asked]:
    """Each pattern, tried on all that may match it."""
    for kind, pattern in wanted:
        options: dict[str, Any] = {"mode": "literal", "all": True, "limit": 32}
        started = time.process_time()
        page = first = store.search(f"/{pattern}/", **options)
        took = time.process_time() - started
        found = {str(row.ref) for row in first.rows}
        while page.next:
            page = store.search(f"/{pattern}/", continue_=page.next, **options)
            found |= {str(row.ref) for row in page.rows}
        yield Asked(kind, pattern, first.opened, frozenset(found), took * 1_000)


def listed_by_ripgrep(pattern: str, tree: Path, refs: Sequence[str]) -> frozenset[str]:
    """The files that ``rg`` lists, of those that were imported. It goes line by line; ``-U`` is as
    RE2, which reads a text as a whole."""
    command = ["rg", "--no-config", "--multiline", "--files-with-matches", "--regexp", pattern]
    done = subprocess.run([*command, "--", *refs], cwd=tree, capture_output=True, check=False)
    if done.returncode > 1:
        raise RuntimeError(done.stderr.decode())
    return frozenset(done.stdout.decode().splitlines())


def summary(found: Sequence[Asked], memories: int) -> dict[str, Any]:
    """Shares of the vault that were opened, and how many of these matched."""
    shares = sorted(one.opened / memories for one in found)
    opened, matched = sum(one.opened for one in found), sum(len(one.found) for one in found)
    return {
        "patterns": len(found),
        "opened_median": round(statistics.median(shares), 4),
        "opened_p90": round(shares[int(len(shares) * 0.9)], 4),
        "matched_median": round(statistics.median(len(one.found) / memories for one in found), 4),
        "opened_that_match": round(matched / max(1, opened), 4),
        "milliseconds": round(statistics.median(one.milliseconds for one in found), 2),
    }


def table(told: Mapping[str, Any]) -> Iterator[str]:
    """The figures as lines to read."""
    yield f"{told['memories']:,} memories, {told['bytes']:,} bytes of text"
    for kind, one in told["kinds"].items():
        yield (
            f"  {kind:<14}{one['patterns']:>4} patterns, opened at the median "
            f"{one['opened_median']:.1%} (nine of ten: {one['opened_p90']:.1%}), matched "
            f"{one['matched_median']:.1%}; of the opened {one['opened_that_match']:.1%} match; "
            f"{one['milliseconds']:.1f} ms of processor time"
        )
    for name in ("with", "without"):
        one = told[name]
        seconds, size = one["seconds"], one["size"]
        yield f"  {name} trigrams: import {seconds:.2f} s of processor time, {size:,} bytes"


def imported(tree: Path, folder: Path) -> MemoryStore:
    """A sealed vault of a tree."""
    (folder / "vaults").mkdir(parents=True)
    path, key = folder / "vaults" / "tree.db", folder / "keys" / "key"
    store, _ = MemoryStore.create(path, key_file=key)
    store.import_paths([tree], embed=False)
    return store


def cost(tree: Path, *, trigrams: bool) -> dict[str, float]:
    """Processor time of an import in this process, and the size of the file."""
    if not trigrams:
        del KINDS[TRIGRAMS.name], RECORDS[TRIGRAMS.name]
    with tempfile.TemporaryDirectory() as temporary:
        started = time.process_time()
        store = imported(tree, Path(temporary))
        taken = time.process_time() - started
        store.lock()
        return {"seconds": round(taken, 2), "size": store.path.stat().st_size}


def costs(tree: Path) -> dict[str, Any]:
    """Both ways, in turns, the better of two."""
    found: dict[str, list[dict[str, float]]] = {"with": [], "without": []}
    for _ in range(2):
        for name, times in found.items():
            command = [sys.executable, "-m", __spec__.name, str(tree), "--cost", name]
            done = subprocess.run(command, check=True, capture_output=True)
            times.append(json.loads(done.stdout))
    return {name: min(times, key=lambda one: one["seconds"]) for name, times in found.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--patterns", type=int, default=240, help="how many (240)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")
    parser.add_argument("--cost", choices=["with", "without"], help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.cost:
        print(json.dumps(cost(given.folder, trigrams=given.cost == "with")))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        tree = Path(temporary) / "tree"
        shutil.copytree(given.folder, tree, ignore=shutil.ignore_patterns(".git"))
        (tree / ".git").mkdir(exist_ok=True)  # a work tree
        with imported(tree, Path(temporary)) as store:
            refs = {str(one.ref): one.id for one in store.references()}
            found = list(asked(store, patterns(tree, given.patterns)))
            texts = {ref: store.get(id_).text for ref, id_ in refs.items()}
            titles = {ref: store.get(id_).title for ref, id_ in refs.items()}
        differing = list(_differences(found, tree, titles)) if shutil.which("rg") else None
        by_kind = {
            kind: [one for one in found if one.kind == kind]
            for kind in dict.fromkeys(one.kind for one in found)
        }
        by_kind["all"] = found
        told = {
            "memories": len(refs),
            "bytes": sum(len(text.encode()) for text in texts.values()),
            "kinds": {kind: summary(some, len(refs)) for kind, some in by_kind.items()},
            **costs(tree),
        }
    print("\n".join(table(told)))
    for line in differing if differing is not None else ("rg is not installed",):
        print(f"  {line}")
    if differing is not None:
        print(f"  {len(differing)} differences from rg over {len(found)} patterns")
    write_figures(given.json, told)
    return 0


def _differences(found: Sequence[Asked], tree: Path, titles: Mapping[str, str]) -> Iterator[str]:
    for one in found:
        listed = listed_by_ripgrep(one.pattern, tree, sorted(titles))
        for ref in sorted(one.found ^ listed):
            where = "here" if ref in one.found else "by rg"
            yield f"{one.pattern!r} found {where} only: {ref} (title {titles[ref]!r})"


if __name__ == "__main__":
    raise SystemExit(main())
