"""``collections`` and ``topics``: what a vault is sorted by, how it is indexed, and for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from memory_store.cli.options import (
    at_terminal,
    database_argument,
    json_option,
    one_format,
    row_options,
    with_store,
)
from memory_store.cli.rows import write_rows
from memory_store.cli.terminal import printable_line
from memory_store.errors import BadInputError

if TYPE_CHECKING:
    from memory_store.records import CollectionInfo
    from memory_store.store import MemoryStore


COLUMNS = ("id", "name", "memories", "created", "analyser", "embedder", "own_model", "members")
OPTIONS_OF = {
    None: frozenset(),
    "create": frozenset({"embedder", "analyser", "owner"}),
    "set": frozenset({"embedder", "analyser"}),
    "rename": frozenset(),
    "members": frozenset({"add", "remove", "open"}),
    "delete": frozenset({"yes"}),
}


@click.command()
@database_argument
@click.argument("action", required=False, type=click.Choice([one for one in OPTIONS_OF if one]))
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--embedder", metavar="MODEL", help="Its embedding model: a name, a folder, default")
@click.option("--analyser", metavar="NAME", help="How it is read: auto, a language (de), or code")
@click.option("--owner", metavar="ACTOR", help="create: close it to all but its members")
@click.option("--add", metavar="ACTOR=ROLE", multiple=True, help="members: let an actor in")
@click.option("--remove", metavar="ACTOR", multiple=True, help="members: take an actor's role away")
@click.option("--open", is_flag=True, help="members: take all roles away, so that it is open again")
@click.option("--yes", is_flag=True, help="delete: without being asked")
@click.option("--create", metavar="NAME", hidden=True)
@click.option("--rename", nargs=2, metavar="NAME NEW_NAME", hidden=True)
@json_option("Print an array as JSON")
@row_options
@with_store
def collections(
    store: MemoryStore,
    action: str | None,
    names: tuple[str, ...],
    create: str | None,
    rename: tuple[str, str] | None,
    as_json: bool,
    nl: bool,
    csv: bool,
    table: bool,
    **options: Any,
) -> None:
    """List collections with their counts; make, set up or rename one, or choose its members.

    \b
    memory-store collections notes.db
    memory-store collections notes.db create work
    memory-store collections notes.db create shop --analyser code
    memory-store collections notes.db set work --analyser de --embedder ~/models/multilingual
    memory-store collections notes.db rename work job
    memory-store collections notes.db members job --add alice=owner --add bob=reader
    memory-store collections notes.db members job --remove bob
    memory-store collections notes.db delete job

    A collection follows the vault unless it has a model or an analyser of its own. After "set",
    reindex renews what the collection holds.

    A collection without members is open: Datasette's permissions on the database decide. The first
    member, its owner, closes it to everybody else who asks through Datasette. A member is an owner
    (who manages members, too), a writer, a reader, or a searcher, who is shown no text.
    """
    form = one_format(as_json, nl, csv, table)
    if create and rename:
        raise BadInputError("choose one of --create and --rename", "create")
    if create is not None:
        action, names = "create", (create,)
    if rename:
        action, names = "rename", rename
    _check(action, names, options)
    _change(store, action, names, options)
    if action == "members":
        _list_members(store, names[0], form)
    else:
        _list_collections(store, form)
    if action == "set" and form == "text":
        _say_stale(store, names[0])


def _check(action: str | None, names: tuple[str, ...], options: dict[str, Any]) -> None:
    """Raise BadInputError for a name too few or too many, or another action's option."""
    wanted = {None: 0, "rename": 2}.get(action, 1)
    if len(names) != wanted:
        given = "one name" if wanted == 1 else "the old name and the new one"
        raise BadInputError(f"collections {action}: give {given}", "name")
    foreign = sorted(name for name, value in options.items() if value)
    foreign = [name for name in foreign if name not in OPTIONS_OF[action]]
    if foreign:
        owners = [one for one, own in OPTIONS_OF.items() if one and foreign[0] in own]
        raise BadInputError(f"--{foreign[0]} belongs to {' and '.join(owners)}", "action")
    if action == "set" and options["embedder"] is None and options["analyser"] is None:
        raise BadInputError("collections set: give --embedder or --analyser", "analyser")
    if options["open"] and (options["add"] or options["remove"]):
        raise BadInputError("an open collection has no members: --open goes alone", "open")


def _change(
    store: MemoryStore, action: str | None, names: tuple[str, ...], options: dict[str, Any]
) -> None:
    """Do what was asked."""
    embedder, analyser = options["embedder"], options["analyser"]
    if action == "create":
        store.collections.create(
            names[0], embedder=embedder, analyser=analyser or "auto", owner=options["owner"]
        )
    elif action == "set":
        store.collections.set(names[0], embedder=embedder, analyser=analyser)
    elif action == "rename":
        store.collections.rename(*names)
    elif action == "delete":
        _confirm(store, names[0], yes=options["yes"])
        store.collections.delete(names[0])
    elif action == "members" and options["open"]:
        store.collections.open(names[0])
    elif action == "members" and (options["add"] or options["remove"]):
        store.collections.change_members(
            names[0], dict(map(_member, options["add"])), options["remove"]
        )


def _confirm(store: MemoryStore, name: str, *, yes: bool) -> None:
    """Ask before a collection is deleted. Raises BadInputError where nobody can be asked."""
    found = next((one for one in store.collections.list() if name in (one.id, one.name)), None)
    if yes or found is None:  # the store says that there is none
        return
    if not at_terminal():
        raise BadInputError("collections delete: give --yes", "yes")
    count = found.memories
    what = f"{printable_line(name)} with {count:,} {'memory' if count == 1 else 'memories'}"
    click.confirm(f"Delete {what}, and its key", abort=True, err=True)


def _member(given: str) -> tuple[str, str]:
    """``alice=reader`` taken apart, at its last ``=``. Raises BadInputError."""
    actor, equals, role = given.rpartition("=")
    if not equals:
        raise BadInputError(f"--add {given}: ACTOR=ROLE expected", "add")
    return actor, role


def _list_members(store: MemoryStore, name: str, form: str) -> None:
    members = store.collections.members(name)
    if form != "text":
        rows = [{"actor": actor, "role": role} for actor, role in members.items()]
        write_rows(form, rows, ("actor", "role"))
        return
    for actor, role in members.items():
        click.echo(f"{role:<8}  {printable_line(actor)}")
    if not members:
        click.echo("open: it has no members")


def _list_collections(store: MemoryStore, form: str) -> None:
    found, membership = store.collections.list(), store.collections.membership()
    if form != "text":
        rows = [{**asdict(one), "members": dict(membership.get(one.id, {}))} for one in found]
        write_rows(form, rows, COLUMNS)
        return
    for collection in found:
        told = _settings(collection, len(membership.get(collection.id, {})))
        click.echo(f"{collection.memories:>8,}  {printable_line(collection.name)}{told}")


def _settings(collection: CollectionInfo, members: int) -> str:
    """What a collection does otherwise than the vault, in words."""
    told = [] if collection.analyser == "auto" else [f"analyser {collection.analyser}"]
    if collection.own_model:
        told.append(f"model {collection.embedder}")
    if members:
        told.append("closed: 1 member" if members == 1 else f"closed: {members} members")
    return f"  ({printable_line(', '.join(told))})" if told else ""


def _say_stale(store: MemoryStore, name: str) -> None:
    count = store.collections.stale().get(name, 0)
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
