"""``searches``: searches under a name, kept sealed in the vault, and their feeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from memory_store.cli.options import (
    SCOPE,
    Listing,
    json_option,
    request_options,
    row_options,
    vault_command,
)
from memory_store.cli.rows import write_answer, write_json, write_rows
from memory_store.cli.search import QueryCommand, show_answer
from memory_store.cli.serve import FIRST_PORT, HERE
from memory_store.cli.terminal import columns, here_only, printable_line, shortened
from memory_store.keeper.served import served_at
from memory_store.records import HOLDER, search_request

if TYPE_CHECKING:
    from memory_store.records import SavedSearch
    from memory_store.store import MemoryStore

COLUMNS = ("id", "name", "owner", "search", "created", "feed")
actor_option = click.option(
    "--actor",
    metavar="NAME",
    default=HOLDER,
    show_default=True,
    help="Whose: an actor of Datasette",
)


@click.group(cls=Listing)
def searches() -> None:
    """Keep searches under a name: save, list, run, rename, remove; and their feeds.

    \b
    memory-store searches save "open tasks" --type task --status open
    memory-store searches
    memory-store searches run "open tasks"

    Alone it lists. Name and query are sealed in the vault. The search page shows them to the same
    actor.
    """


@vault_command("list", group=searches)
@click.option("--actor", metavar="NAME", help="Only those of this actor")
@row_options("Print an array as JSON")
def list_(store: MemoryStore, actor: str | None, form: str) -> None:
    """List the saved searches.

    \b
    memory-store searches list
    """
    found = store.searches.list(actor)
    lines = map(_line, found) if found else ['none yet: memory-store searches save "NAME" QUERY']
    write_rows(form, [one.as_dict() for one in found], COLUMNS, lines)


@vault_command(group=searches, cls=QueryCommand)
@click.argument("name")
@click.argument("query", metavar="[QUERY]...", nargs=-1)
@request_options("mode", "deep", "limit", *SCOPE)
@request_options("like", "meta", "min_score", "narrow", "recipe")
@actor_option
@json_option("Print the saved search as JSON")
def save(
    store: MemoryStore,
    name: str,
    query: tuple[str, ...],
    actor: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Save a search under a name; it takes the words and filters of "search".

    \b
    memory-store searches save heating what was decided about heating
    memory-store searches save "open tasks" --type task --status open
    """
    saved = store.searches.save(actor, name, search_request(" ".join(query), **options))
    write_answer(as_json, saved.as_dict(), [f"saved: {_line(saved)}"])


@vault_command(group=searches)
@click.argument("name")
@request_options("limit")
@actor_option
@row_options("Print the object of the JSON API")
def run(store: MemoryStore, name: str, limit: int | None, actor: str, form: str) -> None:
    """Search by a saved search. NAME is its name or its id.

    \b
    memory-store searches run "open tasks"
    memory-store searches run "open tasks" -n 30
    """
    asked = store.searches.find(actor, name).request()
    show_answer(store, asked if limit is None else replace(asked, limit=limit), form)


@vault_command(group=searches)
@click.argument("name")
@click.argument("new_name")
@actor_option
@json_option("Print the saved search as JSON")
def rename(store: MemoryStore, name: str, new_name: str, actor: str, as_json: bool) -> None:
    """Give a saved search another name.

    \b
    memory-store searches rename "open tasks" todo
    """
    saved = store.searches.rename(actor, name, new_name)
    write_answer(as_json, saved.as_dict(), [_line(saved)])


@vault_command(group=searches)
@click.argument("name")
@actor_option
@json_option("Print the removed search as JSON")
def remove(store: MemoryStore, name: str, actor: str, as_json: bool) -> None:
    """Forget a saved search; its feed ends. No memory is touched.

    \b
    memory-store searches remove todo
    """
    gone = store.searches.remove(actor, name)
    write_answer(as_json, gone.as_dict(), [f"removed: {_line(gone)}"])


@vault_command(group=searches)
@click.argument("name")
@click.option("--end", is_flag=True, help="End the feed")
@actor_option
@json_option("Print its paths and its token as JSON")
def feed(store: MemoryStore, name: str, end: bool, actor: str, as_json: bool) -> None:
    """Make a feed of a saved search, or end it. The token is shown only this once.

    \b
    memory-store searches feed todo
    memory-store searches feed todo --end

    The addresses are those of the running memory-store serve, else of its usual port. In another
    Datasette put that one's in place. A feed reader asks with any user name and the token as
    password. It opens that feed alone, which holds what the actor may see then, while the vault is
    open. Made again, the token of before opens nothing.
    """
    if end:
        saved = store.searches.end_feed(actor, name)
        write_answer(as_json, saved.as_dict(), [f"ended: {_line(saved)}"])
        return
    here_only("a feed")  # whose token is good after the keeper's end
    saved, token = store.searches.make_feed(actor, name)
    below = f"/-/hybrid/feeds/{saved.id}"
    if as_json:
        base = f"/{store.path.stem}{below}"
        paths = {"atom": f"{base}.atom", "json": f"{base}.json"}
        write_json({**saved.as_dict(), **paths, "token": token})
        return
    pages = served_at(str(store.path)) or f"http://{HERE}:{FIRST_PORT}/{store.path.stem}"
    click.echo(f"Atom:      {printable_line(pages + below)}.atom")
    click.echo(f"JSON Feed: {printable_line(pages + below)}.json")
    click.echo(f"Password, shown only this once (any user name): {token}")


def _line(one: SavedSearch) -> str:
    said = {"q": one.search.get("q", ""), **one.search}
    options = " ".join(f"--{key} {_words(value)}" for key, value in said.items() if key != "q")
    what = " ".join(part for part in (said["q"], options) if part)
    marks = "  (feed)" if one.feed else ""
    whose = "" if one.owner == HOLDER else f"  ({one.owner})"
    return shortened(printable_line(f"{one.name}: {what}{whose}{marks}"), columns())


def _words(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
