"""``sources``: what was imported from where, and which paths a bare ``import`` reads again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from memory_store.cli.options import row_options, vault_command
from memory_store.cli.rows import write_rows
from memory_store.cli.terminal import memories, printable_line
from memory_store.errors import BadInputError

if TYPE_CHECKING:
    from memory_store.records import SourceInfo
    from memory_store.store import MemoryStore

COLUMNS = ("path", "collection", "memories", "options", "left_out")


@vault_command()
@click.argument("action", required=False, type=click.Choice(["remove"]))
@click.argument("path", required=False, metavar="[PATH]")
@row_options("Print an array as JSON")
def sources(store: MemoryStore, action: str | None, path: str | None, form: str) -> None:
    """List what was imported from where, or forget a source.

    \b
    memory-store sources notes.db
    memory-store sources notes.db remove ~/notes

    "memory-store import" without a path reads these again. What was removed here is read no more;
    its memories stay.
    """
    if action is not None:
        if path is None:
            raise BadInputError("sources remove: name the path of a source", "path")
        store.forget_source(path)
    found = store.sources()
    lines = map(_line, found) if found else ["nothing was imported yet"]
    write_rows(form, [asdict(one) for one in found], COLUMNS, lines)


def _line(source: SourceInfo) -> str:
    given = "".join(f", {name} {_words(value)}" for name, value in source.options.items())
    line = f"{source.path}: {memories(source.memories)} in {source.collection}{given}"
    return printable_line(f"{line}  ({source.left_out})" if source.left_out else line)


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
