"""``watch``: follow folders, and keep the vault as they are.

Boundary: a log is kept, so that it gets figures alone; the names of files are shown to terminals.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import strftime
from typing import TYPE_CHECKING, Any

import click

from memory_store.cli.imports import (
    Heard,
    ImportCommand,
    print_degraded,
    print_names,
    print_reasons,
    report_object,
    reports_of,
)
from memory_store.cli.options import TYPE_NAMES, Steps, go_on_beside, json_option, vault_command
from memory_store.cli.progress import Progress
from memory_store.cli.rows import write_rows
from memory_store.cli.terminal import printable_line
from memory_store.records import ImportReport

if TYPE_CHECKING:
    from memory_store.cli.kept import KeptSteps
    from memory_store.store import MemoryStore


class WatchCommand(ImportCommand):
    """The keeper follows the folders; it counts as use until you stop it."""

    def invoke(self, ctx: click.Context) -> Any:
        from memory_store.importing.watcher import check_installed

        check_installed()  # before a passphrase is asked for
        return super().invoke(ctx)

    def show(self, steps: KeptSteps, given: Mapping[str, Any]) -> None:
        """Show the reports that a keeper makes."""
        paths = given["paths"]
        _show(partial(reports_of, steps, paths), paths, as_json=given["as_json"])


@vault_command(cls=WatchCommand)
@click.argument(
    "paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path, readable=False)
)
@click.option("--collection", metavar="NAME", help="Collection to import into")
@click.option("--type", metavar="NAME", help=f"Type of what is imported: {TYPE_NAMES}")
@click.option("--topic", multiple=True, metavar="NAME", help="Topic to add (repeatable)")
@click.option("--glob", multiple=True, metavar="PATTERN", help="Files to take (repeatable)")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Files to leave (repeatable)")
@click.option(
    "--prune/--keep",
    default=True,
    show_default=True,
    help="Put memories whose file is gone into the trash, or keep them",
)
@click.option("--no-embed", is_flag=True, help="Keywords and topics only; reindex adds vectors")
@click.option(
    "--rescan",
    type=click.FloatRange(min=1),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Look without an event: for drives that send none",
)
@json_option("Print each report as a line of JSON")
def watch(
    store: MemoryStore,
    paths: tuple[Path, ...],
    topic: tuple[str, ...],
    no_embed: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Follow folders, and import what changes in them, until Ctrl-C.

    \b
    memory-store watch notes.db ~/notes
    memory-store watch

    Imports first what is new. Then a note that you save is found by its words within two seconds;
    its vectors follow. A renamed file keeps its memory. The memory of a file that is gone goes to
    the trash; with --keep the file is named, and its memory kept. Without PATH it follows every
    known source. A server may have the vault open meanwhile.
    """
    beside = go_on_beside()
    named = paths if beside is None else [one.absolute() for one in paths]

    def run(heard: Heard, **stopped: Any) -> Iterator[ImportReport]:
        return store.watch(
            named,
            topics=topic,
            embed=not no_embed,
            progress=partial(heard, "progress"),
            embedding=partial(heard, "embedding"),
            **options,
            **stopped,
        )

    if beside is None:
        _show(run, paths, as_json=as_json)
        return

    def follow(step: Callable[..., None], stopped: Callable[[], bool]) -> None:
        for report in run(step, stopped=stopped):
            step("report", report)

    beside.append(Steps(follow))


def _show(
    run: Callable[[Heard], Iterator[ImportReport]], paths: Sequence[Path], *, as_json: bool
) -> None:
    on_terminal = sys.stderr.isatty()
    with Progress() as progress:

        def heard(name: str, *said: Any) -> None:
            if not on_terminal:
                return
            if name == "progress":
                progress(*said)
            elif said[0].left:
                progress.embedding(*said)
            else:
                progress.clear()

        first = True
        try:
            for report in run(heard):
                progress.clear()
                if as_json:
                    write_rows("nl", [report_object(report, False)], ())
                    sys.stdout.flush()
                else:
                    _print(report)
                if first and on_terminal:
                    named = " ".join(map(str, paths)) or "every known source"
                    click.echo(
                        f"Following {printable_line(named)} until you press Ctrl-C.", err=True
                    )
                first = False
        except KeyboardInterrupt:
            progress.clear()
            click.echo("Stopped. What was imported is kept.", err=True)


def _print(report: ImportReport) -> None:
    if sys.stderr.isatty():
        print_reasons("failed", report.failures, False)
        print_reasons("warning", report.warnings, False)
        print_names("renamed", [f"{old} is {new} now" for old, new in report.moved], False)
        print_names("gone, now in the trash", report.forgotten, False)
        print_names("gone from its source, kept here", report.vanished, False)
    gone = f", gone and kept {len(report.vanished)}" if report.vanished else ""
    counts = [part for part in f"{report.summary()}{gone}".split(", ") if part.split()[-1] != "0"]
    click.echo(f"{strftime('%H:%M:%S')} {', '.join(counts) or 'nothing to import yet'}")
    sys.stdout.flush()
    print_degraded(report.degraded)
