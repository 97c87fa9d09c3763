"""``import``, ``add`` and ``reindex``: what goes into a vault."""

from __future__ import annotations

import os
import shlex
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import convert
from msgspec.structs import asdict, replace

from memory_store.cli.failures import EXIT_FAILED, EXIT_INTERRUPTED
from memory_store.cli.options import (
    TYPE_NAMES,
    Steps,
    go_on_beside,
    json_option,
    key_value_pairs,
    text_or_stdin,
    vault_command,
)
from memory_store.cli.progress import KEPT, Progress
from memory_store.cli.rows import write_answer, write_json
from memory_store.cli.terminal import memories, printable_line
from memory_store.cli.vault_argument import VaultCommand
from memory_store.configuration import typed_vault
from memory_store.errors import BadInputError, LockedError, StorageError
from memory_store.records import Embedding, ImportReport, PoorlyRead

if TYPE_CHECKING:
    from memory_store.cli.kept import KeptSteps
    from memory_store.store import MemoryStore


class ImportCommand(VaultCommand):
    """Takes databases, too, as sources of memories. Where a keeper has the vault open, that reads
    and writes beside other commands, and here is shown what it says."""

    takes_files = True

    def invoke(self, ctx: click.Context) -> Any:
        from memory_store.cli.kept import steps_by_keeper

        steps = steps_by_keeper(ctx)
        if steps is None:
            return super().invoke(ctx)
        with closing(steps):
            return self.show(steps, ctx.params)

    def show(self, steps: KeptSteps, given: Mapping[str, Any]) -> None:
        """Show what a keeper says of an import."""
        from memory_store.cli.kept import done_by_keeper

        chosen = {name: given[name] for name in ("dry_run", "verbose", "as_json")}
        report = partial(_only_report, steps, given["paths"])
        database = given["database"]

        def choose(one: PoorlyRead) -> None:
            words = ["collections", str(database), "set", one.id, "--embedder", MULTILINGUAL]
            done_by_keeper(words)
            raise _InBackground

        _show(report, database, choose, kept_open=True, **chosen)


STDIN = "-"
KINDS = {"in_words": ImportReport, "embedding": Embedding, "poorly_read": PoorlyRead}
"""What a step says that is a record."""

Heard = Callable[..., None]
"""Takes the name of a step of an import, and what it says."""

MULTILINGUAL = "multilingual"  # the preset
SO_FAR = "What was imported so far is kept: run it again to go on"
MOST_NAMED = 10  # of what an import forgot, unless all of it is asked for
SAME_NAMED = 3  # of what failed for one reason
TO_NAME = "name it"  # in the reason of what is skipped until you do, and so is always named


@vault_command("import", cls=ImportCommand)
@click.argument(
    "paths",
    metavar="[PATH]...",
    nargs=-1,
    type=click.Path(path_type=Path, allow_dash=True, readable=False),  # one of many is named later
)
@click.option("--collection", metavar="NAME", help="Collection to import into")
@click.option("--type", metavar="NAME", help=f"Type of what is imported: {TYPE_NAMES}")
@click.option("--topic", multiple=True, metavar="NAME", help="Topic to add (repeatable)")
@click.option("--glob", multiple=True, metavar="PATTERN", help="Files to take (repeatable)")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Files to leave (repeatable)")
@click.option(
    "--all-files", is_flag=True, help="Source code of any folder, also ignored or generated"
)
@click.option("--blame", is_flag=True, help="Of source code, who changed each part last, by Git")
@click.option("--keep-originals", is_flag=True, help="Seal each file as it is, too")
@click.option("--table", metavar="NAME", help="Table of a .db file to import")
@click.option("--text-column", metavar="NAME", help="Column of that table that holds the text")
@click.option("--dry-run", is_flag=True, help="Say what would be imported, change nothing")
@click.option(
    "--prune/--keep",
    default=None,
    help="Forget memories whose source is gone, or keep all (default: forget what left a Git work "
    "tree by another commit)",
)
@click.option("--no-embed", is_flag=True, help="Keywords and topics only; reindex adds vectors")
@click.option("--verbose", is_flag=True, help="Name all that was skipped or forgotten")
@json_option("Print the report as JSON")
def import_(
    store: MemoryStore,
    paths: tuple[Path, ...],
    topic: tuple[str, ...],
    no_embed: bool,
    verbose: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Import files and folders; unchanged ones are skipped.

    \b
    memory-store import notes.db ~/notes
    memory-store import notes.db work.ndjson --collection work
    memory-store import notes.db blog.db --table posts --text-column body
    pbpaste | memory-store import notes.db -

    A Git work tree gives its source code, too, as Git sees it: docs say what is left out.
    From folders: notes (.md .txt .rst .org …) and documents (.pdf .docx .xlsx .html .epub .eml …);
    what holds many records (.json .csv .db .mbox) when named or matched by --glob, an archive
    (.zip) when named; other kinds are skipped and counted. A renamed file keeps its memory; what
    is gone is named, and kept until --prune; what another commit of a work tree lacks goes to the
    trash, unless you say --keep. Without PATH every known source is imported again.
    Exit code 1 when a chosen file was invalid; everything else is kept.
    """
    from memory_store.cli.models import offer_model
    from memory_store.importing.job import ImportJob, ImportRequest
    from memory_store.models.places import chosen_embedder

    if not (no_embed or options["dry_run"]):
        no_embed = offer_model(chosen_embedder(store.embedder_name()), store.path)
    named = [one if str(one) == STDIN else one.absolute() for one in paths]
    beside = go_on_beside()
    given = None if beside is None else sys.stdin  # of the caller, as long as the command runs
    request = ImportRequest.of_paths(
        paths if beside is None else named, topics=topic, embed=not no_embed, **options
    )

    def run(heard: Heard) -> ImportReport:
        job = ImportJob(
            request=request,
            progress=partial(heard, "progress"),
            embedded=partial(heard, "embedded"),
            embedding=partial(heard, "embedding"),
            words_first=True,
            in_words=partial(heard, "in_words"),
            poorly_read=partial(heard, "poorly_read"),
            stdin=given,
        )
        return store.run_import(job)

    if beside is not None:
        beside.append(Steps(lambda step, _: step("report", run(step))))
        return

    def choose(one: PoorlyRead) -> None:
        store.collections.set(one.id, embedder=MULTILINGUAL)

    _show(run, store.path, choose, dry_run=request.dry_run, verbose=verbose, as_json=as_json)


class _InBackground(Exception):
    """A keeper goes on by itself, with another model."""


def reports_of(steps: KeptSteps, paths: Sequence[Path], heard: Heard) -> Iterator[ImportReport]:
    """What a keeper reports; all else that it says is ``heard``."""
    for name, said in steps:
        if name == "report":
            yield _kept_report(said[0], paths)
            continue
        if name == "progress":
            said[0] = _as_typed(said[0], paths)
        kind = KINDS.get(name)
        heard(name, *(said if kind is None else [convert(said[0], kind)]))


def _only_report(steps: KeptSteps, paths: Sequence[Path], heard: Heard) -> ImportReport:
    for report in reports_of(steps, paths, heard):
        return report
    raise LockedError("the vault was locked meanwhile")


def _kept_report(said: Any, paths: Sequence[Path]) -> ImportReport:
    """A keeper's report; what it names below ``paths`` is named as these were typed."""
    report = convert(said, ImportReport)
    return replace(
        report,
        **{
            field: tuple((_as_typed(name, paths), why) for name, why in getattr(report, field))
            for field in ("failures", "skips", "warnings")
        },
        moved=tuple((old, _as_typed(new, paths)) for old, new in report.moved),
    )


def _as_typed(name: str, paths: Sequence[Path]) -> str:
    """A keeper is in another folder, and is given whole paths."""
    from memory_store.importing.source_file import shown

    for path in sorted(paths, key=lambda one: -len(str(one))):
        whole = shown(path.absolute())
        if path == Path() and name.startswith(f"{whole}{os.sep}"):
            return name[len(whole) + 1 :]
        if name.startswith(whole):
            return shown(path) + name[len(whole) :]
    return name


def _show(
    run: Callable[[Heard], ImportReport],
    database: Path,
    choose: Callable[[PoorlyRead], None],
    *,
    dry_run: bool,
    verbose: bool,
    as_json: bool,
    kept_open: bool = False,
) -> None:
    """Show how far an import is, and what came of it; the exit code.

    ``choose`` gives a collection the multilingual model, where the answer is yes. ``kept_open``: a
    keeper does it. It goes on embedding when this command is stopped.
    """
    from memory_store.cli.models import offer_multilingual

    written: list[ImportReport] = []
    try:
        with Progress() as progress:

            def heard(name: str, *said: Any) -> None:
                if name == "in_words":
                    written.append(said[0])
                    written_now = said[0].imported + said[0].replaced
                    progress.in_words(written_now, kept_open=kept_open)
                elif name == "poorly_read":
                    progress.clear()
                    if not as_json and offer_multilingual(said[0], database):
                        choose(said[0])
                elif name == "progress":
                    progress(*said)
                else:
                    (progress.embedded if name == "embedded" else progress.embedding)(*said)

            report = run(heard)
    except StorageError as error:
        raise StorageError(f"{str(error).rstrip('.')}. {SO_FAR}") from error
    except _InBackground:
        report = written[0]
        click.echo(
            "The process that keeps the vault open embeds it in the background. Search goes on, "
            "and says how far it is.",
            err=True,
        )
    except KeyboardInterrupt:
        if not written:
            click.echo(f"Stopped. {SO_FAR}.", err=True)
            sys.exit(EXIT_INTERRUPTED)
        _print_report(written[0], dry_run, verbose)
        go_on = f"for search by meaning go on with: memory-store reindex{typed_vault(database)}"
        if kept_open:
            go_on = (
                "the process that keeps the vault open goes on embedding it for search by meaning"
            )
        click.echo(
            f"Stopped while embedding. All of it can be searched by words and topics; {go_on}",
            err=True,
        )
        sys.exit(EXIT_INTERRUPTED)
    if as_json:
        write_json(report_object(report, dry_run))
    else:
        _print_report(report, dry_run, verbose)
    if report.failed:
        sys.exit(EXIT_FAILED)


@vault_command()
@click.argument("text", metavar="TEXT...", nargs=-1, required=True)
@click.option("--title", help="Title (default: the first heading)")
@click.option("--topic", multiple=True, metavar="NAME", help="Topic (repeatable)")
@click.option("--type", metavar="NAME", help=f"One of {TYPE_NAMES}")
@click.option("--collection", metavar="NAME", help="Collection (default: the personal one)")
@click.option("--parent", metavar="ID", help="Memory this one belongs to, such as a result's task")
@click.option("--supersedes", metavar="ID", help="Memory that this one replaces, valid until now")
@click.option("--valid-from", metavar="WHEN", help="Valid from this day on")
@click.option("--valid-to", metavar="WHEN", help="Valid until this day")
@click.option("--meta", multiple=True, metavar="KEY=VALUE", help="Metadata (repeatable)")
@json_option("Print the new memory as JSON")
def add(
    store: MemoryStore,
    text: tuple[str, ...],
    title: str | None,
    topic: tuple[str, ...],
    type: str | None,
    collection: str | None,
    parent: str | None,
    supersedes: str | None,
    meta: tuple[str, ...],
    as_json: bool,
    **valid: str | None,
) -> None:
    """Add one memory and print its id.

    \b
    memory-store add notes.db "The lease ends in May" --topic home --type fact
    date | memory-store add notes.db - --title "Backup done"
    memory-store add notes.db "The lease ends in June" --supersedes 3f2a9c1b

    TEXT may be - for standard input.
    """
    options: dict[str, Any] = {"title": title, "type": type, **valid}
    for name, named in (("parent", parent), ("supersedes", supersedes)):
        options[name] = store.find_id(named) if named else None
    memory = store.add(
        text_or_stdin(" ".join(text)),
        topics=topic,
        collection=collection,
        metadata=dict(key_value_pairs(meta, "meta")),
        **{name: value for name, value in options.items() if value is not None},
    )
    write_answer(as_json, memory.as_dict(), [memory.id])
    print_degraded(store.model_state(collection).degraded)


@vault_command()
@click.option("--collection", multiple=True, metavar="NAME", help="Only this one (repeatable)")
@click.option("--all", "whole", is_flag=True, help="Make every entry anew from its text")
@click.option("--embedder", metavar="MODEL", help="Their embedding model from now on")
@click.option("--get", "fetch", is_flag=True, help="Fetch that model first, if it is not here")
@click.option("--background", is_flag=True, help="Embed in a process of its own, and end at once")
def reindex(
    store: MemoryStore,
    collection: tuple[str, ...],
    whole: bool,
    embedder: str | None,
    fetch: bool,
    background: bool,
) -> None:
    """Add or renew the vectors and words of memories.

    \b
    memory-store reindex notes.db
    memory-store reindex notes.db --collection work
    memory-store reindex notes.db --embedder multilingual --get --background

    Needed after import --no-embed, and after a change of model or analyser. Only what lacks
    something is done; with --all everything, which mends entries that verify found to differ from
    their memories. If you stop it, run it again to go on. Search goes on meanwhile: what an earlier
    model embedded is searched by that until it is renewed. --background leaves the work to a
    process that keeps the vault open, as unlock does, until all of it is done.
    """
    if whole and background:
        raise BadInputError("reindex: --all is not done in the background", "background")
    if fetch:
        from memory_store.cli.models import fetch_model

        fetch_model(embedder)
    if background:
        from memory_store.cli.keeper import embed_beside

        store.change_model(collection=collection, embedder=embedder)
        embed_beside(store, click.get_current_context().params["key_file"])
        return
    again = f"memory-store reindex{typed_vault(store.path)}"
    anew = " --all, which begins anew" if whole else ""
    with Progress(f"{KEPT}: {again}{anew}") as progress:
        renewed = store.reindex(
            collection=collection, embedder=embedder, whole=whole, progress=progress
        )
    click.echo(f"{memories(renewed)} embedded")


def _print_report(report: ImportReport, dry_run: bool, verbose: bool) -> None:
    print_reasons("failed", report.failures, verbose)
    print_reasons("warning", report.warnings, verbose)
    to_name = [(name, why) for name, why in report.skips if TO_NAME in why]
    print_reasons("skipped", to_name, verbose)
    print_reasons("skipped", [one for one in report.skips if TO_NAME not in one[1]], verbose, 0)
    moved = [f"{old} is {new} now" for old, new in report.moved]
    print_names("renamed", moved, verbose)
    print_names("would be forgotten" if dry_run else "forgotten", report.forgotten, verbose)
    print_names("gone from its source, kept here", report.vanished, verbose)
    click.echo(f"{'dry run: ' if dry_run else ''}{report.summary()}")
    if report.holds_nothing():
        click.echo(
            "There was nothing to import: no file of a kind that is read, or none that the pattern "
            "matches.",
            err=True,
        )
    if report.kinds and (dry_run or verbose):
        click.echo(f"by kind: {report.by_kind()}")
    if report.followed and not dry_run:
        files = "1 file" if report.followed == 1 else f"{report.followed:,} files"
        click.echo(
            f"in the trash: {files} that the commit of their work tree lacks (memory-store trash "
            "restore brings one back, import --keep keeps them)",
            err=True,
        )
    if report.vanished:
        click.echo("to forget what is gone: the same import with --prune", err=True)
    if report.failures:
        _lead_to_sources(report.failures)
    if report.skips and not verbose:
        click.echo("what was skipped, and why: --verbose names it", err=True)
    print_degraded(report.degraded)


def _lead_to_sources(failures: Sequence[tuple[str, str]]) -> None:
    """Say how a source that is gone is read no more, where every known one was read again."""
    from memory_store.importing.source_file import NOT_THERE

    asked = click.get_current_context().params
    gone = [name for name, why in failures if why == NOT_THERE]
    if gone and not asked["paths"]:
        words = f"memory-store sources{typed_vault(asked['database'])} remove"
        click.echo(f"to read it no more: {words} {shlex.quote(gone[0])}", err=True)


def print_reasons(
    label: str, pairs: Sequence[tuple[str, str]], verbose: bool, named: int = SAME_NAMED
) -> None:
    """Each name with its reason; a reason that more than ``named`` share, once with its count."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name, reason in pairs:
        by_reason[reason].append(name)
    for reason, names in by_reason.items():
        why = printable_line(reason)
        if verbose or len(names) <= named:
            for name in names:
                click.echo(f"{label}: {printable_line(name)}: {why}", err=True)
        else:
            first = ", ".join(map(printable_line, names[:named]))
            some = f", such as {first} (--verbose names all)" if first else ""
            files = "1 file" if len(names) == 1 else f"{len(names):,} files"
            click.echo(f"{label}: {files}: {why}{some}", err=True)


def print_names(label: str, names: Sequence[str], verbose: bool) -> None:
    shown = names if verbose else names[:MOST_NAMED]
    for name in shown:
        click.echo(f"{label}: {printable_line(name)}", err=True)
    if more := len(names) - len(shown):
        click.echo(f"{label}: and {more:,} more (--verbose)", err=True)


def print_degraded(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(f"degraded: {printable_line(line)}", err=True)


def report_object(report: ImportReport, dry_run: bool) -> dict[str, Any]:
    values = asdict(report)
    values["moved"] = [{"from": old, "to": new} for old, new in report.moved]
    values["skipped_for"] = report.why_skipped()
    for name in ("failures", "skips", "warnings"):
        values[name] = [{"name": where, "reason": reason} for where, reason in values[name]]
    return {"ok": not report.failed, "dry_run": dry_run, **values}
