"""``sources``: what was imported from where, and which paths a bare ``import`` reads again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from memory_store.cli.options import row_options, vault_command
from memory_store.cli.rows import write_rows
from memory_store.cli.terminal import colour_wanted, linked, memories, printable_line
from memory_store.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memory_store.records import SourceInfo
    from memory_store.store import MemoryStore

COLUMNS = ("path", "collection", "memories", "time", "failed", "options", "left_out")
ACTIONS = ("show", "edit", "remove")


@vault_command()
@click.argument("action", required=False, type=click.Choice(ACTIONS))
@click.argument("source", required=False, metavar="[N]")
@click.option("--glob", multiple=True, metavar="PATTERN", help="edit: only files that match")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="edit: without those")
@click.option("--type", metavar="NAME", help="edit: what they become; '' for by their kind")
@click.option("--topic", multiple=True, metavar="NAME", help="edit: topics that all of them get")
@click.option(
    "--all-files/--no-all-files", default=None, help="edit: source code of every kind, or not"
)
@click.option(
    "--keep-originals/--no-keep-originals", default=None, help="edit: seal the files, too, or not"
)
@click.option("--with-memories", is_flag=True, help="remove: its memories too, to the trash")
@click.option("-y", "--yes", is_flag=True, help="Do not ask")
@row_options("Print an array as JSON")
def sources(
    store: MemoryStore,
    action: str | None,
    source: str | None,
    with_memories: bool,
    yes: bool,
    form: str,
    **options: Any,
) -> None:
    """List what was imported from where; show, change or forget a source.

    \b
    memory-store sources notes.db
    memory-store sources notes.db show 1
    memory-store sources notes.db edit 1 --exclude "drafts/*" --topic notes
    memory-store sources notes.db remove ~/notes

    N is the number in the list, or the path. "memory-store import" without a path reads these
    again, each with its options. What edit names takes the place of what was there: '' for none.
    What was removed is read no more; its memories stay, unless --with-memories.
    """
    changes = _changes(options)
    if changes and action != "edit":
        raise BadInputError(f"{min(changes)}: only with edit", min(changes))
    if with_memories and action != "remove":
        raise BadInputError("with-memories: only with remove", "with-memories")
    if action is not None and source is None:
        raise BadInputError(f"sources {action}: name a source by its number or path", "source")
    if action == "edit":
        if not changes:
            raise BadInputError("nothing to change: give --glob, --exclude, --type, …", "glob")
        store.edit_source(source or "", **changes)
        click.echo("memory-store import reads it again with these options.", err=True)
    if action == "remove":
        removed = [printable_line(one.path) for one in store.sources(source)]
        if with_memories:
            _delete_memories(store, source or "", yes)
        store.forget_source(source or "")
        stay = "" if with_memories else " Its memories stay."
        for path in dict.fromkeys(removed):
            click.echo(f"{path} is no source any more.{stay}", err=True)
    found = store.sources(source if action in ("show", "edit") else None)
    numbered = enumerate(found, 1) if source is None or action == "remove" else []
    lines = [_line(one, number) for number, one in numbered] or [
        line for one in found for line in _whole(one)
    ]
    write_rows(form, [asdict(one) for one in found], COLUMNS, lines or ["nothing was imported yet"])


def _changes(options: dict[str, Any]) -> dict[str, Any]:
    """What edit changes, by the names of an import's options."""
    given: dict[str, Any] = {}
    for name in ("glob", "exclude", "topic"):
        if options[name]:
            kept = [one for one in options[name] if one]
            given["topics" if name == "topic" else name] = kept
    if options["type"] is not None:
        given["type"] = options["type"] or None
    switches = {name: options[name] for name in ("all_files", "keep_originals")}
    return given | {name: on for name, on in switches.items() if on is not None}


def _delete_memories(store: MemoryStore, source: str, yes: bool) -> None:
    ids = store.memories_of_source(source)
    if ids and not yes and sys.stdin.isatty():
        click.confirm(f"Delete {memories(len(ids))} that came from it?", abort=True, err=True)
    store.delete_many(ids)
    if ids:
        days = store.trash.days()
        kept = f": in the trash for {days} days" if days else ""
        click.echo(f"{memories(len(ids))} deleted{kept}", err=True)


def _line(source: SourceInfo, number: int) -> str:
    when = f", {source.time[:16].replace('T', ' ')}" if source.time else ""
    failed = f", {source.failed} failed" if source.failed else ""
    behind = f", {source.behind}" if source.behind else ""
    line = f"{memories(source.memories)} in {source.collection}{_given(source)}{when}{failed}"
    line += behind
    line = printable_line(f"{line}  ({source.left_out})" if source.left_out else line)
    return f"{number}  {_path(source)}: {line}"


def _path(source: SourceInfo) -> str:
    return linked(printable_line(source.path), source.path, colour_wanted())


def _whole(source: SourceInfo) -> Iterator[str]:
    """All of one, a fact on each line."""
    yield _path(source)
    yield f"  {memories(source.memories)} in {printable_line(source.collection)}"
    if source.time:
        yield f"  last imported {source.time[:16].replace('T', ' ')}"
    if source.commit:
        yield f"  at commit {source.commit[:10]}{f', {source.behind}' if source.behind else ''}"
    for name, value in _options(source).items():
        yield f"  {printable_line(_words(value, f'{name}:'))}"
    if source.left_out:
        yield f"  {printable_line(source.left_out)}"
    for name, reason in source.failures:
        yield f"  failed: {printable_line(f'{name}: {reason}')}"
    if source.failed > len(source.failures):
        yield f"  and {source.failed - len(source.failures)} more that failed"


def _given(source: SourceInfo) -> str:
    return "".join(f", {_words(value, name)}" for name, value in _options(source).items())


def _options(source: SourceInfo) -> dict[str, Any]:
    """How it was imported, without its collection: that is said by its name, and kept by id."""
    return {name: said for name, said in source.options.items() if name != "collection"}


def _words(value: object, name: str) -> str:
    """An option as it was given: a switch by its name alone."""
    if value is True:
        return f"--{name.removesuffix(':').replace('_', '-')}"
    return f"{name} {', '.join(map(str, value)) if isinstance(value, list | tuple) else value}"
