"""``audit``: who opened how many memories through Datasette, when and by which surface."""

from __future__ import annotations

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

if TYPE_CHECKING:
    from memory_store.store import MemoryStore


@click.command()
@database_argument
@click.option("--since", default="", metavar="WHEN", help="At or after: 2024-05-01, 7d, 3w")
@click.option("--until", default="", metavar="WHEN", help="At or before")
@click.option("--who", default="", metavar="ACTOR", help="Of one actor")
@click.option("--surface", default="", metavar="NAME", help="page, json, csv, sql, table, memory …")
@click.option("--action", default="", metavar="NAME", help="search, read, add, edit, unlock …")
@click.option("--totals", is_flag=True, help="One line for each actor, not one for each event")
@json_option("Print an array as JSON")
@row_options
@with_store
def audit(
    store: MemoryStore,
    since: str,
    until: str,
    who: str,
    surface: str,
    action: str,
    totals: bool,
    as_json: bool,
    nl: bool,
    csv: bool,
    table: bool,
) -> None:
    """Show the audit trail: who opened how many memories, when, by which surface.

    \b
    memory-store audit notes.db --since 7d
    memory-store audit notes.db --totals
    memory-store audit notes.db --who alice --csv

    It is kept by the Datasette plugin, holds no query and no text, and is sealed like everything
    else. "verify" tells whether a part of it was taken out. What is done in a terminal, by whoever
    holds the key, is not recorded.
    """
    from memory_store.actions import trail

    form = one_format(as_json, nl, csv, table)
    events = trail.Wanted(who, surface, action, since, until).of(store.trail.events())
    if totals:
        rows = [total.as_dict() for total in trail.totals(events)]
        write_rows(form, rows, ("who", "events", "opened", "returned", "last"))
        return
    write_rows(form, [event.as_dict() for event in events], trail.COLUMNS)
