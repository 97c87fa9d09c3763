"""``review``: what may want putting in order, listed, or one pair after the other, by one key.

Boundary: titles and beginnings of texts are untrusted, and made safe for a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from memory_store.cli.options import at_terminal, json_option, vault_command
from memory_store.cli.rows import write_answer
from memory_store.cli.terminal import (
    BOLD,
    DIM,
    SHORT_ID,
    colour_wanted,
    columns,
    printable_line,
    shortened,
    styled,
)
from memory_store.errors import BadInputError

if TYPE_CHECKING:
    from memory_store.records import Review, Reviewed, ReviewedPair
    from memory_store.store import MemoryStore

HEADINGS = {
    "conflicts": "Changed on two devices at once",
    "same": "Say nearly the same",
    "apart": "The newer may replace the older",
    "over": "No longer valid, and not replaced",
    "untagged": "Without a topic",
}
PAIRS = ("conflicts", "same", "apart")
ASKED = "k keep both · m merge · s supersede the older · d delete the older · n next · q leave"
NOT_COMPARED = (
    "No memory has vectors yet: of those that say nearly the same, only the ones with equal texts "
    "are shown. To add them: memory-store reindex"
)
QUIT, NEXT = "q", "n"


@vault_command()
@click.option("-n", "--limit", type=click.IntRange(1, 100), default=20, show_default=True)
@click.option("-i", "--interactive", is_flag=True, help="Decide on each pair by one key")
@json_option("Print the review as JSON")
def review(store: MemoryStore, limit: int, interactive: bool, as_json: bool) -> None:
    """Show what you may want to put in order.

    \b
    memory-store review notes.db
    memory-store review notes.db -i
    memory-store review notes.db --json

    Memories that were changed on two devices at once; those that say nearly the same; facts, notes
    and decisions on one topic of which the newer may replace the older; what is valid no longer;
    what has no topic, with topics of its neighbours. With -i: keep both, merge, supersede or
    delete. "memory-store undo" takes it back.
    """
    if interactive and not (at_terminal() and sys.stdout.isatty()):
        raise BadInputError("-i needs a terminal", "interactive")
    found = store.review.list(limit=limit)
    if interactive:
        _decide(store, found)
        return
    write_answer(as_json, found.as_dict(), _lines(found))


def _lines(found: Review) -> Iterator[str]:
    room, colour = columns(), colour_wanted()
    if not found.compared:
        yield NOT_COMPARED
    if not any(found.counts.values()):
        yield f"Nothing to put in order; {found.compared:,} memories were compared."
        return
    for kind, heading in HEADINGS.items():
        count = found.counts[kind]
        if not count:
            continue
        yield styled(f"{heading} ({count:,})", BOLD, colour)
        for one in getattr(found, kind):
            yield from _pair_lines(one, room) if kind in PAIRS else _line(one, room)
        yield ""
    yield styled("memory-store review -i decides on pairs, one after the other", DIM, colour)


def _pair_lines(pair: ReviewedPair, room: int) -> Iterator[str]:
    near = f"{pair.near:.2f}" if pair.near else "  = "
    yield shortened(f"  {near}  {_named(pair.newer)}", room)
    yield shortened(f"        {_named(pair.older)}", room)


def _line(one: Reviewed, room: int) -> Iterator[str]:
    until = f"  until {one.valid_to[:10]}" if one.valid_to else ""
    topics = " ".join(f"#{printable_line(topic)}" for topic in one.suggested)
    yield shortened(f"  {_named(one)}{until}{f'  {topics}?' if topics else ''}", room)


def _named(one: Reviewed) -> str:
    named = f"{one.id[:SHORT_ID]}  {one.created[:10]}  {printable_line(one.title)}"
    return f"{named}  ({printable_line(one.ref)})" if one.ref else named


def _decide(store: MemoryStore, found: Review) -> None:
    """Ask what becomes of each pair, until you leave."""
    room, colour = columns(), colour_wanted()
    gone: set[str] = set()
    for pair in (*found.conflicts, *found.same, *found.apart):
        if {pair.newer.id, pair.older.id} & gone:
            continue
        for one in (pair.newer, pair.older):
            click.echo(styled(shortened(_named(one), room), BOLD, colour))
            click.echo(f"  {shortened(printable_line(one.begins), room - 2)}")
        click.echo(styled(ASKED, DIM, colour))
        ways = _ways(store, pair)
        key = ""
        while key not in (*ways, NEXT, QUIT):
            key = click.getchar().lower()
        if key == QUIT:
            return
        if key in ways:
            done, way = ways[key]
            way()
            click.echo(f"{done}\n")
            if key != "k":
                gone.add(pair.older.id)
    click.echo("No more pairs.")


def _ways(store: MemoryStore, pair: ReviewedPair) -> dict[str, tuple[str, Callable[[], object]]]:
    newer, older = pair.newer.id, pair.older.id
    return {
        "k": ("Both are kept.", lambda: store.review.keep(newer, older)),
        "m": ("Merged; the older is in the trash.", lambda: store.review.merge(newer, older)),
        "s": ("The newer took its place.", lambda: store.review.supersede(older, newer)),
        "d": ("The older is in the trash.", lambda: store.delete(older)),
    }
