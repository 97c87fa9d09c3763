"""``collections`` and ``topics``: the names a vault is sorted by."""

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
    from memory_store.store import MemoryStore


@click.command()
@database_argument
@click.option("--create", metavar="NAME", help="Make an empty collection")
@click.option("--rename", nargs=2, metavar="NAME NEW_NAME", help="Give a collection another name")
@json_option("Print an array as JSON")
@row_options
@with_store
def collections(
    store: MemoryStore,
    create: str | None,
    rename: tuple[str, str] | None,
    as_json: bool,
    nl: bool,
    csv: bool,
    table: bool,
) -> None:
    """List collections with their counts; make or rename one.

    \b
    memory-store collections notes.db
    memory-store collections notes.db --create work
    memory-store collections notes.db --rename work job
    """
    form = one_format(as_json, nl, csv, table)
    if create and rename:
        raise BadInputError("choose one of --create and --rename", "create")
    if create is not None:
        store.create_collection(create)
    if rename:
        store.rename_collection(*rename)
    found = store.collections()
    if form != "text":
        rows = [asdict(collection) for collection in found]
        write_rows(form, rows, ("id", "name", "memories", "created"))
        return
    for collection in found:
        click.echo(f"{collection.memories:>8,}  {printable_line(collection.name)}")


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
