"""What ``memory-store eval`` measured, as lines for people and as data for programs.

Boundary: shows queries and refs, to whoever holds the key; texts of memories do not reach it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from memory_store.cli.rows import table_lines
from memory_store.cli.terminal import columns, printable_line, shortened

if TYPE_CHECKING:
    from memory_store.evaluation import Estimate, Evaluation, RunResult

MAIN_MEASURE = "ndcg@10"
NAMED_REFS = 5  # of those that are not there; --json names all


def evaluation_lines(
    evaluation: Evaluation, queries: dict[str, str], losses: int, notes: Sequence[str]
) -> Iterator[str]:
    """The report as people read it."""
    asked, held = len(evaluation.queries), evaluation.memories
    yield (
        f"{asked:,} judged {'query' if asked == 1 else 'queries'}, "
        f"{held:,} {'memory' if held == 1 else 'memories'}, ranked to depth {evaluation.depth}"
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

    labels = [MEASURES[name].label for name in evaluation.measures]
    cells = [
        [
            run.name,
            *(_interval(run.estimate(name)) for name in evaluation.measures),
            f"{run.pool:,}",
        ]
        for run in evaluation.runs
    ]
    yield from table_lines(cells, ["run", *labels, "pool"])


def _interval(found: Estimate) -> str:
    """A mean and its interval in 17 columns, so that four of them stand side by side."""
    return str(found).replace("0.", ".")


def _comparisons(evaluation: Evaluation) -> Iterator[str]:
    from memory_store.evaluation.statistics import shown_p

    cells = []
    for run in evaluation.runs[1:]:
        found = evaluation.comparison(run.name, MAIN_MEASURE)
        difference = f"{found.difference:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"
        counts = [f"{found.better:,}", f"{found.worse:,}"]
        cells.append([run.name, difference.replace("0.", "."), shown_p(found.p), *counts])
    yield from table_lines(
        cells, [f"against {evaluation.baseline.name}", "nDCG@10", "p", "better on", "worse on"]
    )


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


def evaluation_object(
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
        "measures": {name: _estimate(run, name) for name in evaluation.measures},
        "against_baseline": None
        if run is evaluation.baseline
        else {name: _comparison(evaluation, run, name) for name in evaluation.measures},
        "losses": [
            {
                "query": loss.query,
                "text": queries.get(loss.query),
                "baseline": round(loss.baseline, 6),
                "value": round(loss.value, 6),
            }
            for loss in evaluation.losses(run.name, losses, MAIN_MEASURE)
        ],
        "per_query": {
            query: {name: round(float(run.values[name][n]), 6) for name in evaluation.measures}
            for n, query in enumerate(evaluation.queries)
        },
    }


def _estimate(run: RunResult, measure: str) -> dict[str, float]:
    found = run.estimate(measure)
    return {name: round(getattr(found, name), 6) for name in ("mean", "low", "high")}


def _comparison(evaluation: Evaluation, run: RunResult, measure: str) -> dict[str, float]:
    found = evaluation.comparison(run.name, measure)
    names = ("difference", "low", "high", "p", "better", "worse")
    return {name: round(getattr(found, name), 6) for name in names}
