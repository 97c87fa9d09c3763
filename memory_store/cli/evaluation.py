"""``memory-store eval``: which ranking is best, by the user's own judgements.

Boundary: queries and refs are shown on the user's own terminal, and written to a run file that
nobody else may read (mode 0600). Texts of memories appear in neither.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_store.cli.evaluation_report import evaluation_lines, evaluation_object
from memory_store.cli.options import (
    database_argument,
    json_option,
    judgement_options,
    request_options,
    text_or_stdin,
    with_store,
)
from memory_store.cli.progress import Progress
from memory_store.cli.rows import write_json
from memory_store.errors import BadInputError

if TYPE_CHECKING:
    from memory_store.evaluation import RunResult
    from memory_store.store import MemoryStore

EVALUATED_MODES = ("hybrid", "keyword", "vector")  # literal search has no order to measure


@click.command("eval")
@database_argument
@judgement_options(stdin=True)
@click.option(
    "--recipe", multiple=True, metavar="NAME", help="A ranking to measure, in full (repeatable)"
)
@click.option(
    "--mode",
    multiple=True,
    type=click.Choice(EVALUATED_MODES),
    help="A mode to measure, with the default recipe (repeatable)",
)
@request_options("reranker", "rerank", "expander", "expand")
@click.option("--depth", type=int, default=100, show_default=True, help="How far down to rank")
@click.option(
    "--losses",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Show the N queries on which a run loses most against the first",
)
@click.option(
    "--run-out",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write query, ref, rank and score; several runs: one file each, with the run's name",
)
@json_option("Print every figure as JSON")
@with_store
def evaluate_(
    store: MemoryStore,
    queries: Path,
    qrels: Path,
    recipe: tuple[str, ...],
    mode: tuple[str, ...],
    reranker: str | None,
    no_rerank: bool,
    expander: str | None,
    no_expand: bool,
    depth: int,
    losses: int,
    run_out: Path | None,
    as_json: bool,
) -> None:
    """Measure which ranking is best with judgements of your own.

    \b
    memory-store eval notes.db --queries queries.jsonl --qrels qrels.tsv
    memory-store eval notes.db --queries queries.jsonl --qrels qrels.tsv \\
        --recipe default --recipe gnosis --mode keyword --losses 5

    Every --recipe and every --mode is a run of its own; the first one (recipes before modes) is
    what the others are held against. Without either: the default recipe, keyword and vector.
    With --reranker a run is called after both, such as default+maxsim; run eval once for each
    reranker to compare them.
    """
    from memory_store.evaluation import evaluate, parse_judgements, parse_queries

    if str(queries) == str(qrels) == "-":
        raise BadInputError("qrels: only one of the two can be standard input", "qrels")
    asked = parse_queries(_text_of(queries), str(queries))
    judgements = parse_judgements(_text_of(qrels), str(qrels))
    shared = {"reranker": reranker, "expander": expander}
    switches = {"rerank": not no_rerank, "expand": not no_expand}
    runs, notes = _runs(store, recipe, mode)
    if reranker is not None and not no_rerank:
        runs = _named_with(reranker, runs)
    files = _run_files(run_out, list(runs), (store.path, queries, qrels))
    with Progress() as progress:
        evaluation = evaluate(
            store,
            asked,
            judgements,
            {name: {**options, **shared, **switches} for name, options in runs.items()},
            depth=depth,
            progress=progress,
        )
    for name, file in files.items():
        _write_run(file, evaluation.run(name))
    if as_json:
        write_json(evaluation_object(evaluation, asked, losses, notes))
        return
    for line in evaluation_lines(evaluation, asked, losses, notes):
        click.echo(line)


def _text_of(path: Path) -> str:
    if str(path) == "-":
        return text_or_stdin("-")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise BadInputError(f"{path}: not UTF-8 text") from None


def _runs(
    store: MemoryStore, recipes: Sequence[str], modes: Sequence[str]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Run name → search options, in the order they are shown, and notes about what is left out.

    Raises BadInputError for an unknown recipe: a run's name becomes part of a file's.
    """
    from memory_store.search.recipes import recipe_named

    if not recipes and not modes:
        missing = store.model_state().degraded
        modes = ("hybrid", "keyword") if missing else ("hybrid", "keyword", "vector")
        notes = [f"vector is not measured: {line}" for line in missing]
    else:
        notes = []
    runs: dict[str, dict[str, Any]] = {
        recipe_named(name).name: {"mode": "hybrid", "recipe": name} for name in recipes
    }
    for mode in modes:
        name = "default" if mode == "hybrid" else mode
        runs.setdefault(name, {"mode": mode, "recipe": "default"})
    return runs, notes


def _named_with(reranker: str, runs: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The runs, those that the reranker reads called after it; of a folder its last part."""
    from memory_store.search.recipes import recipe_named

    return {
        f"{name}+{Path(reranker).name}"
        if options["mode"] == "hybrid" and recipe_named(options["recipe"]).rerank
        else name: options
        for name, options in runs.items()
    }


def _run_files(given: Path | None, names: Sequence[str], inputs: Sequence[Path]) -> dict[str, Path]:
    """Run name → the file it is written to. Refuses what could not, or should not, be written."""
    if given is None:
        return {}
    if not given.parent.is_dir():
        raise BadInputError(f"run_out: the folder {given.parent} does not exist", "run_out")
    files = dict.fromkeys(names, given)
    if len(names) > 1:
        files = {name: given.with_name(f"{given.stem}-{name}{given.suffix}") for name in names}
    precious = {path.resolve() for path in inputs}
    for file in (given, *files.values()):
        if file.resolve() in precious:
            raise BadInputError(f"run_out: {file} is what the runs are made from", "run_out")
    return files


def _write_run(path: Path, run: RunResult) -> None:
    """One line for each place: query, ref, rank from 1, score, apart by tabs."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        for query, ranking in run.rankings.items():
            for rank, place in enumerate(ranking, start=1):
                ref = place.ref if place.ref.isprintable() else place.id
                file.write(f"{query}\t{ref}\t{rank}\t{place.score:.6f}\n")
