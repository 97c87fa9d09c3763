"""``settings``: how a vault is set up, and the one choice of it that can be changed.

Boundary: shows names of models and counts, never a text or a topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from memory_store.cli.options import database_argument, json_option, with_store
from memory_store.cli.progress import Progress
from memory_store.cli.rows import write_json
from memory_store.cli.terminal import printable_line
from memory_store.errors import BadInputError

if TYPE_CHECKING:
    from memory_store.records import VaultSettings
    from memory_store.store import MemoryStore

TOPICS = {
    "table": "table: hashed in the file, so that SQL can join by them",
    "memory": "memory: the file holds no hashes of them, so SQL cannot join by them",
}
"""Where topics are kept, in words."""


@click.command()
@database_argument
@click.argument("name", required=False, metavar="[NAME")
@click.argument("value", required=False, metavar="VALUE]")
@json_option("Print as JSON")
@with_store
def settings(store: MemoryStore, name: str | None, value: str | None, as_json: bool) -> None:
    """Show how a vault is set up, or change it.

    \b
    memory-store settings notes.db
    memory-store settings notes.db topics memory
    memory-store settings notes.db topics table

    Topics are searched in memory in any case. In the table memory_topics they are hashed besides,
    so that SQL can join by them. Who has the file sees there which memories share a topic, and who
    knows some of your notes can name many topics of the others. "topics memory" takes the hashes
    out of the file, "topics table" puts them back. What was stopped goes on when it is run again.
    Copies of the file that were made before keep what they hold.
    """
    if name is not None:
        _change(store, name, value)
    found = store.settings()
    if as_json:
        write_json(asdict(found))
        return
    for line in _lines(found):
        click.echo(line)
    if found.topics_unfinished:
        click.echo(
            f"The change to topics {found.topics} is not finished: "
            f"memory-store settings {store.path} topics {found.topics} goes on",
            err=True,
        )


def _change(store: MemoryStore, name: str, value: str | None) -> None:
    """Raises BadInputError for a setting that there is not, or that is fixed."""
    if name != "topics":
        raise BadInputError(f"settings: only topics can be changed, not {name!r}", "name")
    if value is None:
        raise BadInputError("settings topics: say table or memory", "value")
    with Progress() as progress:
        erased = store.set_topics(value, progress=progress)
    if value == "memory" and not erased:
        click.echo(
            "Another program is reading the vault: the write-ahead log keeps hashes until it is "
            "done. Run the command again then.",
            err=True,
        )


def _lines(found: VaultSettings) -> list[str]:
    told = {
        "vault": found.vault,
        "format": found.format,
        "profile": found.profile,
        "topics": TOPICS[found.topics],
        "model": found.model or "none yet",
        "collections": found.collections,
        "created": found.created or "not known to this key",
    }
    return [f"{name:<13}{printable_line(str(value))}" for name, value in told.items()]
