"""``memory-store eval``: which ranking is best, by your own judgements.

Boundary: queries and refs are shown on your own terminal, and written to a run file that other
users may not read (mode 0600). Texts of memories appear in neither.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_store.cli.options import (
    json_option,
    judgement_options,
    request_options,
    text_or_stdin,
    vault_command,
)
from memory_store.cli.progress import Progress
from memory_store.cli.rows import table_lines, write_answer
from memory_store.cli.terminal import columns, memories, printable_line, shortened
from memory_store.errors import BadInputError

if TYPE_CHECKING:
    from memory_store.evaluation import Evaluation, RunResult
    from memory_store.store import MemoryStore

EVALUATED_MODES = ("hybrid", "keyword", "vector")  # literal search has no order to measure
COMPARED = ("difference", "low", "high", "p", "better", "worse")
MAIN_MEASURE = "ndcg@10"
ADDED_AT_ONCE = 512  # documents
NAMED_REFS = 5  # of those that are not there; --json names all


@vault_command("eval")
@judgement_options(stdin=True, required=False)
@click.option(
    "--folder",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder of corpus.jsonl, queries.jsonl and qrels.tsv, or of BEIR's layout",
)
@click.option("--add", is_flag=True, help="Add the documents of --folder that the vault lacks")
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
@click.option("--fit", is_flag=True, help="Fit the default ranking to these judgements")
@click.option("--dry-run", is_flag=True, help="With --fit: report, and keep nothing")
@json_option("Print every figure as JSON")
def eval_(
    store: MemoryStore,
    queries: Path | None,
    qrels: Path | None,
    folder: Path | None,
    add: bool,
    recipe: tuple[str, ...],
    mode: tuple[str, ...],
    reranker: str | None,
    no_rerank: bool,
    expander: str | None,
    no_expand: bool,
    depth: int,
    losses: int,
    run_out: Path | None,
    fit: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Measure which ranking is best with judgements of your own.

    \b
    memory-store eval notes.db --queries queries.jsonl --qrels qrels.tsv
    memory-store eval notes.db --queries queries.jsonl --qrels qrels.tsv \\
        --recipe default --recipe gnosis --mode keyword --losses 5
    memory-store eval measured.db --folder scifact --add
    memory-store eval notes.db --queries queries.jsonl --qrels qrels.tsv --fit --dry-run

    Every --recipe and every --mode is a run of its own; the first one (recipes before modes) is
    what the others are compared with. Without either: the default recipe, keyword and vector.
    With --reranker a run is called after both, such as default+maxsim; run eval once for each
    reranker to compare them.

    --fit takes 20 judged queries or more. It keeps only what helps on queries that were left out,
    sealed in the vault. Take it back with: memory-store settings notes.db ranking general
    """
    from memory_store.evaluation import evaluate

    if folder is not None and queries is None and qrels is None:
        asked, judgements, inputs = _folder(store, folder, add)
    elif folder is None and queries is not None and qrels is not None and not add:
        asked, judgements = _files(queries, qrels)
        inputs = [queries, qrels]
    else:
        raise BadInputError(
            "eval: give either --queries and --qrels, or --folder (with or without --add)", "folder"
        )
    if fit:
        if recipe or mode or reranker or run_out or losses:
            raise BadInputError("fit: goes with queries and judgements alone", "fit")
        from memory_store.cli.ranking_fit import fit as fit_ranking

        fit_ranking(store, asked, judgements, dry_run=dry_run, as_json=as_json)
        return
    if dry_run:
        raise BadInputError("dry_run: only with --fit", "dry_run")
    shared = {"reranker": reranker, "expander": expander}
    switches = {"rerank": not no_rerank, "expand": not no_expand}
    runs, notes = _runs(store, recipe, mode)
    if reranker is not None and not no_rerank:
        runs = _named_with(reranker, runs)
    files = _run_files(run_out, list(runs), (store.path, *inputs))
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
    lines = _lines(evaluation, asked, losses, notes)
    write_answer(as_json, _report(evaluation, asked, losses, notes) if as_json else None, lines)


def _files(queries: Path, qrels: Path) -> tuple[dict[str, str], dict[str, dict[str, int]]]:
    """What is asked, and what should be found, from two files."""
    from memory_store.evaluation import parse_judgements, parse_queries

    if str(queries) == str(qrels) == "-":
        raise BadInputError("qrels: only one of the two can be standard input", "qrels")
    asked = parse_queries(_text_of(queries), str(queries))
    return asked, parse_judgements(_text_of(qrels), str(qrels))


def _folder(
    store: MemoryStore, path: Path, add: bool
) -> tuple[dict[str, str], dict[str, dict[str, int]], list[Path]]:
    """What is asked, what should be found, and the files of both. Adds missing documents on wish.

    Raises BadInputError where the vault lacks documents and must not get them: without ``add``,
    or because it holds memories of another origin, which no measurement should be mixed with.
    """
    from memory_store.evaluation import one_evaluation_folder

    found = one_evaluation_folder(path)
    asked, judgements = found.queries(), found.judgements()
    drafts = found.documents()
    present = {one.ref for one in store.references()}
    missing = [draft for draft in drafts if draft.ref not in present]
    if missing and not add:
        raise BadInputError(
            f"folder: the vault lacks {len(missing):,} of the {len(drafts):,} documents of "
            f"{found.name}. Try: the same with --add, on a vault that you made to measure in",
            "folder",
        )
    if missing and present - {draft.ref for draft in drafts}:
        raise BadInputError(
            f"add: the vault holds other memories than {found.name}, and both would be ranked "
            "together. Make a vault to measure in: memory-store init measured.db",
            "add",
        )
    with Progress() as progress:
        for start in range(0, len(missing), ADDED_AT_ONCE):
            progress(f"adding {found.name}", start, len(missing))
            store.add_many(missing[start : start + ADDED_AT_ONCE])
    return asked, judgements, [found.qrels, path]


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


def _lines(
    evaluation: Evaluation, queries: dict[str, str], losses: int, notes: Sequence[str]
) -> Iterator[str]:
    """The report as people read it."""
    asked = len(evaluation.queries)
    yield (
        f"{asked:,} judged {'query' if asked == 1 else 'queries'}, "
        f"{memories(evaluation.memories)}, ranked to depth {evaluation.depth}"
    )
    yield ""
    yield from _figures(evaluation)
    if len(evaluation.runs) > 1:
        yield ""
        yield from _comparisons(evaluation)
    if losses:
        yield from _losses(evaluation, queries, losses)
    yield ""
    yield (
        "In brackets: 95 % intervals (bootstrap over queries). To rank, "
        f"{sum(run.opened for run in evaluation.runs):,} memories were opened; "
        "the refs of all were read for the judgements."
    )
    for note in (*notes, *_notes(evaluation)):
        yield f"note: {printable_line(note)}"
    for line in dict.fromkeys(line for run in evaluation.runs for line in run.degraded):
        yield f"degraded: {printable_line(line)}"


def _figures(evaluation: Evaluation) -> Iterator[str]:
    from memory_store.evaluation import MEASURES

    names = evaluation.measures
    cells = [
        # a mean and its interval in 17 columns, so that four of them stand side by side
        [run.name, *(str(run.estimate(n)).replace("0.", ".") for n in names), f"{run.pool:,}"]
        for run in evaluation.runs
    ]
    yield from table_lines(cells, ["run", *(MEASURES[name].label for name in names), "pool"])


def _comparisons(evaluation: Evaluation) -> Iterator[str]:
    from memory_store.evaluation.statistics import shown_p

    cells = []
    for run in evaluation.runs[1:]:
        found = evaluation.comparison(run.name, MAIN_MEASURE)
        difference = f"{found.difference:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"
        counts = [f"{found.better:,}", f"{found.worse:,}"]
        cells.append([run.name, difference.replace("0.", "."), shown_p(found.p), *counts])
    against = f"against {evaluation.baseline.name}"
    yield from table_lines(cells, [against, "nDCG@10", "p", "better on", "worse on"])


def _losses(evaluation: Evaluation, queries: dict[str, str], count: int) -> Iterator[str]:
    for run in evaluation.runs[1:]:
        found = evaluation.losses(run.name, count, MAIN_MEASURE)
        yield ""
        if not found:
            yield f"{run.name} loses against {evaluation.baseline.name} on no query."
            continue
        yield f"Where {run.name} loses most against {evaluation.baseline.name} (nDCG@10):"
        for loss in found:
            text = printable_line(queries.get(loss.query, ""))
            line = f"  {loss.baseline:.3f} → {loss.value:.3f}  {printable_line(loss.query)}  {text}"
            yield shortened(line, columns())


def _notes(evaluation: Evaluation) -> Iterator[str]:
    """What about the judgements deserves a look."""
    unknown, shared = evaluation.unknown_refs, evaluation.shared_refs
    if unknown:
        what = "ref is" if len(unknown) == 1 else "refs are"
        yield f"{len(unknown):,} judged {what} not in this vault: {_some(unknown)}"
    if shared:
        what = "ref names" if len(shared) == 1 else "refs name"
        yield f"{len(shared):,} judged {what} several memories, which all count: {_some(shared)}"
    if evaluation.textless:
        count = len(evaluation.textless)
        what = "query has no text and counts" if count == 1 else "queries have no text and count"
        yield f"{count:,} judged {what} 0: {_some(evaluation.textless)}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED_REFS]) + (", …" if len(names) > NAMED_REFS else "")


def _report(
    evaluation: Evaluation, queries: dict[str, str], losses: int, notes: Sequence[str]
) -> dict[str, Any]:
    """The report as data."""
    return {
        "ok": True,
        "queries": len(evaluation.queries),
        "memories": evaluation.memories,
        "depth": evaluation.depth,
        "baseline": evaluation.baseline.name,
        "runs": [_run_object(evaluation, run, queries, losses) for run in evaluation.runs],
        "unknown_refs": list(evaluation.unknown_refs),
        "shared_refs": list(evaluation.shared_refs),
        "textless": list(evaluation.textless),
        "notes": list(notes),
    }


def _run_object(
    evaluation: Evaluation, run: RunResult, queries: dict[str, str], losses: int
) -> dict[str, Any]:
    return {
        "name": run.name,
        "mode": run.options["mode"],
        "recipe": run.options["recipe"],
        "pool": run.pool,
        "opened": run.opened,
        "reranked": run.reranked,
        "degraded": list(run.degraded),
        "measures": {
            name: _rounded(run.estimate(name), "mean", "low", "high")
            for name in evaluation.measures
        },
        "against_baseline": None
        if run is evaluation.baseline
        else {
            name: _rounded(evaluation.comparison(run.name, name), *COMPARED)
            for name in evaluation.measures
        },
        "losses": [
            {
                "query": loss.query,
                "text": queries.get(loss.query),
                **_rounded(loss, "baseline", "value"),
            }
            for loss in evaluation.losses(run.name, losses, MAIN_MEASURE)
        ],
        "per_query": {
            query: {name: round(float(run.values[name][n]), 6) for name in evaluation.measures}
            for n, query in enumerate(evaluation.queries)
        },
    }


def _rounded(found: Any, *names: str) -> dict[str, float]:
    return {name: round(getattr(found, name), 6) for name in names}
