"""``memory-store calibrate``: what a reranker's score is worth, fitted to your own judgements.

Boundary: prints and stores numbers and a model's name, never a query or a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from memory_store.cli.options import json_option, judgement_options, vault_command
from memory_store.cli.progress import Progress
from memory_store.cli.rows import write_answer
from memory_store.cli.terminal import bar, printable_line

if TYPE_CHECKING:
    from memory_store.evaluation.calibration import CalibrationReport
    from memory_store.store import MemoryStore

BAR_CELLS = 20


@vault_command()
@judgement_options()
@click.option("--reranker", metavar="NAME", help="Reranking model, or a folder that holds one")
@click.option("--dry-run", is_flag=True, help="Report, and store nothing")
@json_option("Print every figure as JSON")
def calibrate(
    store: MemoryStore,
    queries: Path,
    qrels: Path,
    reranker: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Fit the scores of a reranking model to judgements of your own.

    \b
    memory-store calibrate notes.db --queries queries.jsonl --qrels qrels.tsv --dry-run

    From then on the model's scores mean how likely a memory is to be relevant, and carry bands.
    The curve (two numbers) is kept in the configuration folder and holds for all your vaults.
    """
    from memory_store.evaluation import read_judgements, read_queries
    from memory_store.evaluation.calibration import calibrate as fitted_to
    from memory_store.models.calibration import store_fitted

    with Progress() as progress:
        report = fitted_to(
            store, read_queries(queries), read_judgements(qrels), reranker, progress=progress
        )
    path = None if dry_run else store_fitted(report.fitted)
    stored = None if path is None else str(path)
    ending = "Nothing stored." if stored is None else f"Stored in {printable_line(stored)}."
    found = {"ok": True, **to_builtins(report), "stored": stored}
    write_answer(as_json, found, (*_lines(report), ending))


def _lines(report: CalibrationReport) -> Iterator[str]:
    """The report as people read it."""
    fitted, before = report.fitted, report.before
    yield (
        f"{printable_line(fitted.model)}: {fitted.pairs:,} pairs of {report.queries:,} queries, "
        f"{fitted.relevant:,} relevant; {report.judged:,} judged, the others found and not judged"
    )
    was = "none" if before is None else f"centre {before.centre:.2f}, slope {before.slope:.2f}"
    yield f"curve: centre {fitted.centre:.2f}, slope {fitted.slope:.2f} (until now: {was})"
    how = "queries it was not fitted to" if report.folds > 1 else "the pairs it was fitted to"
    yield f"log-loss: {report.loss:.3f} on {how}, until now {report.loss_before:.3f}"
    yield ""
    yield f"{'score':<10}{'pairs':>7}{'relevant':>10}"
    for one in report.bins:
        drawn = bar(one.relevant, BAR_CELLS)
        yield f"{one.low:.1f}–{one.high:.1f}   {one.pairs:>7,}{one.relevant:>9.0%}  {drawn}"
    yield ""
    if report.unknown_refs:
        count = len(report.unknown_refs)
        yield f"note: {count:,} judged {'ref is' if count == 1 else 'refs are'} not in this vault"
