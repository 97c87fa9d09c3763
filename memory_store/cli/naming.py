"""``collections`` and ``topics``: the names a vault is sorted by, and how each is indexed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from memory_store.cli.options import (
    database_argument,
    json_option,
    one_format,
    row_options,
    with_store,
)
from memory_store.cli.rows import write_rows
from memory_store.cli.terminal import printable_line
from memory_store.records import BadInputError

if TYPE_CHECKING:
    from memory_store.records import CollectionInfo
    from memory_store.store import MemoryStore


COLUMNS = ("id", "name", "memories", "created", "analyser", "embedder", "own_model")


@click.command()
@database_argument
@click.argument("action", required=False, type=click.Choice(["create", "set", "rename"]))
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--embedder", metavar="MODEL", help="Its embedding model: a name, a folder, default")
@click.option("--analyser", metavar="NAME", help="How it is read: auto, a language (de), or code")
@click.option("--create", metavar="NAME", hidden=True)
@click.option("--rename", nargs=2, metavar="NAME NEW_NAME", hidden=True)
@json_option("Print an array as JSON")
@row_options
@with_store
def collections(
    store: MemoryStore,
    action: str | None,
    names: tuple[str, ...],
    embedder: str | None,
    analyser: str | None,
    create: str | None,
    rename: tuple[str, str] | None,
    as_json: bool,
    nl: bool,
    csv: bool,
    table: bool,
) -> None:
    """List collections with their counts; make, set up or rename one.

    \b
    memory-store collections notes.db
    memory-store collections notes.db create work
    memory-store collections notes.db create shop --analyser code
    memory-store collections notes.db set work --analyser de --embedder ~/models/multilingual
    memory-store collections notes.db rename work job

    A collection follows the vault unless it has a model or an analyser of its own. After "set",
    reindex renews what the collection holds.
    """
    form = one_format(as_json, nl, csv, table)
    if create and rename:
        raise BadInputError("choose one of --create and --rename", "create")
    if create is not None:
        action, names = "create", (create,)
    if rename:
        action, names = "rename", rename
    _change(store, action, names, embedder, analyser)
    found = store.collections()
    if form != "text":
        write_rows(form, [asdict(collection) for collection in found], COLUMNS)
        return
    for collection in found:
        shown = printable_line(collection.name)
        click.echo(f"{collection.memories:>8,}  {shown}{_settings(collection)}")
    if action == "set":
        _say_stale(store, names[0])


def _change(
    store: MemoryStore,
    action: str | None,
    names: tuple[str, ...],
    embedder: str | None,
    analyser: str | None,
) -> None:
    """Do what was asked. Raises BadInputError for a name too few or too many."""
    wanted = {None: 0, "create": 1, "set": 1, "rename": 2}[action]
    if len(names) != wanted:
        given = "one name" if wanted == 1 else "the old name and the new one"
        raise BadInputError(f"collections {action}: give {given}", "name")
    if action in (None, "rename") and (embedder or analyser):
        raise BadInputError("--embedder and --analyser belong to create and set", "action")
    if action == "create":
        store.create_collection(names[0], embedder=embedder, analyser=analyser or "auto")
    elif action == "set":
        if embedder is None and analyser is None:
            raise BadInputError("collections set: give --embedder or --analyser", "analyser")
        store.set_collection(names[0], embedder=embedder, analyser=analyser)
    elif action == "rename":
        store.rename_collection(*names)


def _settings(collection: CollectionInfo) -> str:
    """What a collection does otherwise than the vault, in words."""
    told = [] if collection.analyser == "auto" else [f"analyser {collection.analyser}"]
    if collection.own_model:
        told.append(f"model {collection.embedder}")
    return f"  ({printable_line(', '.join(told))})" if told else ""


def _say_stale(store: MemoryStore, name: str) -> None:
    count = store.stale().get(name, 0)
    if count:
        memories = "memory is" if count == 1 else "memories are"
        click.echo(f"{count:,} {memories} stale: memory-store reindex {store.path}", err=True)


@click.command()
@database_argument
@click.option("--collection", multiple=True, metavar="NAME", help="Only of this collection")
@json_option("Print an array as JSON")
@row_options
@with_store
def topics(
    store: MemoryStore,
    collection: tuple[str, ...],
    as_json: bool,
    nl: bool,
    csv: bool,
    table: bool,
) -> None:
    """List topics with their counts, most frequent first.

    \b
    memory-store topics notes.db
    memory-store topics notes.db --collection work --json
    """
    form = one_format(as_json, nl, csv, table)
    counts = store.topics(collection=collection)
    if form != "text":
        rows = [{"topic": topic, "memories": count} for topic, count in counts.items()]
        write_rows(form, rows, ("topic", "memories"))
        return
    for topic, count in counts.items():
        click.echo(f"{count:>8,}  #{printable_line(topic)}")
