"""``links`` and ``related``: how a memory hangs together with others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from memory_store.cli.options import json_option, row_options, vault_command
from memory_store.cli.rows import write_answer, write_rows
from memory_store.cli.terminal import BOLD, DIM, SHORT_ID, colour_wanted, printable_line, styled
from memory_store.records import Linked, MemoryLinks
from memory_store.records.links import MENTION

if TYPE_CHECKING:
    from memory_store.store import MemoryStore

RELATED = ("id", "title", "type", "collection", "score", "why", "ref")


@vault_command()
@click.argument("id")
@json_option("Print the links as JSON")
def links(store: MemoryStore, id: str, as_json: bool) -> None:
    """Show what a memory links to, and what links to it. ID as in get.

    \b
    memory-store links notes.db 3f2a9c1b
    memory-store links notes.db travel/lisbon.md --json

    Wiki links, relative Markdown links, parent and supersedes; then memories that name it by its
    title or an alias without a link, of which the newest 24 that may do so are opened. Links to
    notes that are not there come last; they lead somewhere once such a note is there.
    """
    found = store.links(id)
    write_answer(as_json, found.as_dict(), _lines(found))


def _lines(found: MemoryLinks) -> Iterator[str]:
    colour = colour_wanted()
    shown = len(found.back)
    some = f", {shown} of {found.back_total}" if found.back_total > shown else ""
    titles = [one.title for one in found.out]
    for heading, linked in (("Links to", found.out), (f"Linked from{some}", found.back)):
        if linked:
            yield styled(heading, BOLD, colour)
        for one in linked:
            yield from _linked(one, colour, named=titles.count(one.title) > 1)
    if found.unlinked:
        left = f", {found.unlinked_left} more may be" if found.unlinked_left else ""
        yield styled(f"Named without a link{left}", BOLD, colour)
        for one in found.unlinked:
            yield from _linked(one, colour)
    if found.unresolved:
        yield styled("Not there", BOLD, colour)
        yield from (f"  {printable_line(one.target)}" for one in found.unresolved)
    if not (found.out or found.back or found.unlinked or found.unresolved):
        yield "It links to nothing, and nothing links to it or names it."


def _linked(one: Linked, colour: bool, *, named: bool = False) -> Iterator[str]:
    """A line of the list. ``named``: others have its title, and the link as written says which."""
    title = printable_line(one.title or "Untitled")
    if named and one.target:
        title = f"{title} ({printable_line(one.target)})"
    kind = "" if one.kind in ("wiki", "markdown", MENTION) else f"  ({one.kind})"
    yield f"  {styled(one.id[:SHORT_ID], DIM, colour)}  {title}{kind}"
    if one.around:
        yield f"  {' ' * SHORT_ID}  {styled(printable_line(one.around), DIM, colour)}"


@vault_command()
@click.argument("id")
@click.option("-n", "--limit", type=click.IntRange(1, 50), default=10, show_default=True)
@row_options("Print an array as JSON")
def related(store: MemoryStore, id: str, limit: int, form: str) -> None:
    """Show the memories nearest to one, and why. ID as in get.

    \b
    memory-store related notes.db 3f2a9c1b
    memory-store related notes.db travel/lisbon.md -n 5 --json

    Near by meaning, words and topics, and by links: to it, from it, or in common.
    """
    found = store.related(id, limit=limit)
    colour = colour_wanted()
    lines = (
        f"{one.score:.2f}  {styled(one.id[:SHORT_ID], DIM, colour)}  "
        f"{printable_line(one.shown)}  {styled(', '.join(one.why), DIM, colour)}"
        for one in found
    )
    write_rows(form, [one.as_dict() for one in found], RELATED, lines)
