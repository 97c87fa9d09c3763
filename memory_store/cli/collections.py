"""``collections`` and ``topics``: what a vault is sorted by, how it is indexed, and for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from memory_store.cli.options import at_terminal, row_options, vault_command
from memory_store.cli.rows import write_rows
from memory_store.cli.terminal import here_only, memories, printable_line
from memory_store.configuration import typed_vault
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


@vault_command()
@click.argument("action", required=False, type=click.Choice([one for one in OPTIONS_OF if one]))
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--embedder", metavar="MODEL", help="Its embedding model: a name, a folder, default")
@click.option("--analyser", metavar="NAME", help="How it is read: auto, a language (de), or code")
@click.option("--owner", metavar="ACTOR", help="create: close it to all but its members")
@click.option("--add", metavar="ACTOR=ROLE", multiple=True, help="members: let an actor in")
@click.option("--remove", metavar="ACTOR", multiple=True, help="members: take an actor's role away")
@click.option("--open", is_flag=True, help="members: take all roles away, so that it is open again")
@click.option("--yes", is_flag=True, help="delete: without being asked")
@row_options("Print an array as JSON")
def collections(
    store: MemoryStore, action: str | None, names: tuple[str, ...], form: str, **options: Any
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
    member, its owner, closes it to all other actors of Datasette. A member is an owner (who manages
    members, too), a writer, a reader, or a searcher, who sees no text.
    """
    _check(action, names, options)
    _change(store, action, names, options)
    if action == "members":
        roles = store.collections.members(names[0]).items()
        actors = [{"actor": actor, "role": role} for actor, role in roles]
        lines = [f"{role:<8}  {printable_line(actor)}" for actor, role in roles]
        write_rows(form, actors, ("actor", "role"), lines or ["open: it has no members"])
        return
    found, membership = store.collections.list(), store.collections.membership()
    members = [dict(membership.get(one.id, {})) for one in found]
    rows = [{**asdict(one), "members": own} for one, own in zip(found, members, strict=True)]
    write_rows(form, rows, COLUMNS, map(_line, found, map(len, members)))
    stale = store.collections.stale().get(names[0], 0) if action == "set" else 0
    if stale and form == "text":
        are = "memory is" if stale == 1 else "memories are"
        click.echo(
            f"{stale:,} {are} stale: memory-store reindex{typed_vault(store.path)}", err=True
        )


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
    if any(options[name] for name in ("open", "add", "remove")):
        here_only("members")  # a keeper changes no members
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
        added = dict(map(_member, options["add"]))
        store.collections.change_members(names[0], added, options["remove"])


def _confirm(store: MemoryStore, name: str, *, yes: bool) -> None:
    """Ask before a collection is deleted. Raises BadInputError where there is no terminal."""
    found = next((one for one in store.collections.list() if name in (one.id, one.name)), None)
    if yes or found is None:  # the store says that there is none
        return
    if not at_terminal():
        raise BadInputError("collections delete: give --yes", "yes")
    what = f"{printable_line(name)} with {memories(found.memories)}"
    click.confirm(f"Delete {what}, and its key", abort=True, err=True)


def _member(given: str) -> tuple[str, str]:
    """``alice=reader`` taken apart, at its last ``=``. Raises BadInputError."""
    actor, equals, role = given.rpartition("=")
    if not equals:
        raise BadInputError(f"--add {given}: ACTOR=ROLE expected", "add")
    return actor, role


def _line(collection: CollectionInfo, members: int) -> str:
    """A collection's count and name, and in words what it does otherwise than the vault."""
    own = [] if collection.analyser == "auto" else [f"analyser {collection.analyser}"]
    if collection.own_model:
        own.append(f"model {collection.embedder}")
    if members:
        own.append(f"closed: {members} member{'' if members == 1 else 's'}")
    more = f"  ({printable_line(', '.join(own))})" if own else ""
    return f"{collection.memories:>8,}  {printable_line(collection.name)}{more}"


@vault_command()
@click.option("--collection", multiple=True, metavar="NAME", help="Only of this collection")
@click.option("--for", "memory", metavar="ID", help="Suggest topics for this memory")
@row_options("Print an array as JSON")
def topics(store: MemoryStore, collection: tuple[str, ...], memory: str | None, form: str) -> None:
    """List topics with their counts, most frequent first.

    \b
    memory-store topics notes.db
    memory-store topics notes.db --collection work --json
    memory-store topics notes.db --for 3f2a9c1b

    With --for: topics that several memories near to one in meaning have, and it has not, with how
    many of them have each. None is added by itself; memory-store edit --add-topic does.
    """
    if memory is not None:
        found = store.suggested_topics(memory)
        suggested = [{"topic": one.topic, "neighbours": one.neighbours} for one in found]
        said = (f"{one.neighbours:>8,}  #{printable_line(one.topic)}" for one in found)
        write_rows(form, suggested, ("topic", "neighbours"), said)
        return
    counts = store.topics(collection=collection)
    rows = [{"topic": topic, "memories": count} for topic, count in counts.items()]
    lines = (f"{count:>8,}  #{printable_line(topic)}" for topic, count in counts.items())
    write_rows(form, rows, ("topic", "memories"), lines)
