"""``landscape``: a map of what is in a vault, as a list.

Boundary: prints names of topics and titles, made safe for a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memory_store.cli.options import json_option, request_option, vault_command
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

if TYPE_CHECKING:
    from memory_store.records.landscape import Landscape, LandscapeRegion
    from memory_store.store import MemoryStore

NOTHING = (
    "No memories belong together yet. They do by topics (--topic, or #hashtags of a text), by the "
    "folder they were imported from, or by meaning, from three on."
)
SHOWN = 6  # topics of a region, or telling words
BESIDE = 3  # telling words beside topics


@vault_command()
@request_option("as_of")
@json_option("Print the landscape as JSON")
def landscape(store: MemoryStore, as_of: str | None, as_json: bool) -> None:
    """Show what is in a vault: memories that belong together by topics, folder or meaning.

    \b
    memory-store landscape notes.db
    memory-store landscape notes.db --as-of 2024-05-01
    memory-store landscape notes.db --json

    Each region is named by the topic that most of it has; memories without topics by their folder,
    or by words that are frequent there and rare elsewhere, which stand beside topics, too. The same
    memories always make the same landscape.
    """
    found = store.landscape(as_of=as_of)
    write_answer(as_json, found.as_dict(), _lines(found), NOTHING)


def _lines(found: Landscape) -> Iterator[str]:
    room, colour = columns(), colour_wanted()
    width = max((len(f"{one.memories:,}") for one in found.regions), default=0)
    for one in found.regions:
        others = [name for name in one.topics if name != one.name][:SHOWN]
        name = printable_line(one.name)
        said = [f"#{printable_line(topic)}" for topic in others]
        said = said or [printable_line(word) for word in one.words if word not in one.name]
        more = "  " + " ".join(said) if said else ""
        line = shortened(f"{one.memories:>{width},}  {name}{more}", room)
        head, _, tail = line.partition(name)
        yield f"{head}{styled(name, BOLD, colour)}{styled(tail, DIM, colour)}" if tail else line
        yield styled(shortened(f"{'':{width}}  {_facts(one)}", room), DIM, colour)
    if found.others:
        names = " ".join(f"#{printable_line(topic)}" for topic in found.other_topics)
        yield shortened(f"{found.others:>{width},}  in smaller ones{names and f': {names}'}", room)
    if found.without and found.regions:
        yield f"{found.without:>{width},}  without topic and folder, and near to no others"


def _facts(one: LandscapeRegion) -> str:
    span = one.first if one.first == one.last else f"{one.first} – {one.last}"
    open_tasks = f"{one.open_tasks} open task{'' if one.open_tasks == 1 else 's'}"
    words = ", ".join(map(printable_line, one.words[:BESIDE])) if len(one.topics) > 1 else ""
    newest = [f"{mark.id[:SHORT_ID]} {printable_line(mark.title)}" for mark in one.newest[:1]]
    said = [span, open_tasks if one.open_tasks else "", words, *newest]
    return " · ".join(filter(None, said))
