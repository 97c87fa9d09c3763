"""``exists``: whether memories hold some words, answered from the sealed word index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memory_store.cli.options import completed_by, json_option, vault_command
from memory_store.cli.rows import write_answer
from memory_store.cli.terminal import DIM, colour_wanted, printable_line, styled

if TYPE_CHECKING:
    from memory_store.records import Existence
    from memory_store.store import MemoryStore


@vault_command()
@click.argument(
    "term", metavar="TERM...", nargs=-1, required=True, shell_complete=completed_by("words_begun")
)
@click.option("--collection", multiple=True, metavar="NAME", help="Only in this one (repeatable)")
@click.option(
    "--exact", is_flag=True, help="Spelled so, in upper or lower case; says what it opened"
)
@json_option("Print an array as JSON")
@click.pass_context
def exists(
    context: click.Context,
    store: MemoryStore,
    term: tuple[str, ...],
    collection: tuple[str, ...],
    exact: bool,
    as_json: bool,
) -> None:
    """Say whether memories hold a word, or several side by side. "No" is certain.

    \b
    memory-store exists notes.db boathouse
    memory-store exists notes.db "spare key" weir --json
    memory-store exists notes.db parse_url --exact --collection code

    A word counts in all its forms, as in a search in quotes. No memory is opened for it. The exit
    code is 1 unless every term is there.
    """
    found = store.exists(*term, collections=collection, exact=exact)
    write_answer(as_json, [one.as_dict() for one in found], map(_line, found))
    if not all(one.exists for one in found):
        context.exit(1)


def _line(found: Existence) -> str:
    said = {True: "yes", False: "no", None: "not known"}[found.exists]
    hold = "memory holds" if found.memories == 1 else "memories hold"
    held = f"{found.memories:,} {hold} its words"
    opened = f" · opened {found.opened}" if found.exact else ""
    left = f", {found.left:,} were left" if found.left else ""
    below = styled(f"{held}{opened}{left}", DIM, colour_wanted())
    return f"{said}  {printable_line(found.term)}  {below}"
