"""``get list edit done reopen publish delete``: memories one by one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_store.cli.options import (
    SCOPE,
    TYPE_NAMES,
    at_terminal,
    completed_by,
    json_option,
    key_value_pairs,
    request_option,
    request_options,
    row_options,
    text_or_stdin,
    vault_command,
)
from memory_store.cli.rows import write_answer, write_json, write_rows
from memory_store.cli.terminal import (
    BOLD,
    DIM,
    SHORT_ID,
    colour_wanted,
    columns,
    edited_elsewhere,
    linked,
    printable,
    printable_line,
    shortened,
    styled,
)
from memory_store.errors import (
    BadInputError,
    EditorError,
    FormatError,
    MemoryStoreError,
    TamperedError,
)
from memory_store.paths import file_of
from memory_store.records import Memory
from memory_store.titles import shown_title

if TYPE_CHECKING:
    from memory_store.store import MemoryStore

_LIST_COLUMNS = (
    *("id", "ref", "collection", "type", "title"),
    *("topics", "created", "updated", "version"),
)


@vault_command()
@click.argument("id", shell_complete=completed_by("memory_ids"))
@click.option(
    "--original",
    metavar="FILE",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="Write the file that it was read from there, or to standard output (-)",
)
@request_option("as_of", help="What stood in its place then, before it or after it")
@json_option("Print the memory as JSON, exactly as stored")
def get(
    store: MemoryStore, id: str, original: Path | None, as_of: str | None, as_json: bool
) -> None:
    """Show one memory's whole text. ID is an id, its first 8 characters, or a ref.

    \b
    memory-store get notes.db 3f2a9c1b
    memory-store get notes.db travel/lisbon.md --json
    memory-store get notes.db lease.pdf --original copy.pdf
    memory-store get notes.db 3f2a9c1b --as-of 2024-05

    At a terminal a long one is shown by your pager ($PAGER, or less).
    """
    if original is not None:
        _write_original(original, store.original(id))
        return
    memory = store.succession(id, as_of)[-1] if as_of else store.get(id)
    if as_json:
        write_json(memory.as_dict())
    else:
        show_memory(store, memory)


def _write_original(path: Path, data: bytes) -> None:
    """Write to a new file that only you can read, or to standard output."""
    if str(path) == "-":
        sys.stdout.buffer.write(data)
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise BadInputError(f"{path} exists already; nothing is overwritten", "original") from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def show_memory(store: MemoryStore, memory: Memory) -> None:
    """A memory's whole text, through your pager where it is long; the vault is locked then."""
    from memory_store.cli.pager import show

    colour = colour_wanted()
    facts = [
        memory.type,
        memory.created[:10],
        " ".join(f"#{topic}" for topic in memory.topics),
        memory.collection,
    ]
    more = [
        memory.id,
        f"version {memory.version}",
        *([f"original {printable_line(memory.original.name)}"] if memory.original else []),
        *([f"valid from {memory.valid_from[:10]}"] if memory.valid_from else []),
        *([f"valid until {memory.valid_to[:10]}"] if memory.valid_to else []),
        *([f"supersedes {memory.supersedes}"] if memory.supersedes else []),
        *([f"superseded by {memory.superseded_by}"] if memory.superseded_by else []),
        *([f"by {memory.by}"] if memory.by else []),
    ]
    ref = linked(printable_line(memory.ref or ""), file_of(memory.source, memory.ref), colour)
    words = [*map(printable_line, facts), ref, *map(printable_line, more)]
    shown, title = " · ".join(word for word in words if word), _title(memory)
    lines = [styled(title, BOLD, colour), styled(shown, DIM, colour), "", printable(memory.text)]
    show(lines, store.lock)


@vault_command("list")
@request_options(*SCOPE)
@click.option("-n", "--limit", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Skip this many")
@row_options("Print an array of memories as JSON")
def list_(store: MemoryStore, form: str, **filters: Any) -> None:
    """List memories, newest first.

    \b
    memory-store list notes.db --topic home --since 7d
    memory-store list notes.db --type task --status open --json
    memory-store list notes.db --as-of 2024-05-01
    memory-store list notes.db --by claude-code
    """
    found = store.list(**filters)
    rows = [memory.as_dict() for memory in found]
    if form == "table":
        rows = [{**row, "title": _title(memory)} for row, memory in zip(rows, found, strict=True)]
    room = max((len(memory.type) for memory in found), default=0)
    lines = (_line(memory, room) for memory in found) if found else ["no memories"]
    write_rows(form, rows, _LIST_COLUMNS, lines)


@vault_command()
@click.argument("id", shell_complete=completed_by("memory_ids"))
@click.option("--text", help="New text; - for standard input")
@click.option("--title", help="New title")
@click.option("--type", metavar="NAME", help=f"New type: {TYPE_NAMES}")
@click.option("--topic", multiple=True, metavar="NAME", help="Topics instead of the old ones")
@click.option("--no-topics", is_flag=True, help="Take all topics away")
@click.option("--add-topic", multiple=True, metavar="NAME", help="One more topic")
@click.option("--remove-topic", multiple=True, metavar="NAME", help="Take this topic away")
@click.option("--collection", metavar="NAME", help="Move to this collection")
@click.option("--meta", multiple=True, metavar="KEY=VALUE", help="Metadata instead of the old")
@click.option("--valid-from", metavar="WHEN", help="Valid from this day on; '' for always")
@click.option("--valid-to", metavar="WHEN", help="Valid until this day; '' for no end")
@click.option("--if-version", type=int, metavar="N", help="Refuse when N is an older version")
@json_option("Print the changed memory as JSON")
def edit(
    store: MemoryStore,
    id: str,
    text: str | None,
    topic: tuple[str, ...],
    no_topics: bool,
    add_topic: tuple[str, ...],
    remove_topic: tuple[str, ...],
    meta: tuple[str, ...],
    if_version: int | None,
    as_json: bool,
    **fields: str | None,
) -> None:
    """Change a memory. What you do not name stays as it is.

    \b
    memory-store edit notes.db 3f2a9c1b --title "Lease, signed" --topic home
    memory-store edit notes.db 3f2a9c1b --text - < lease.md
    memory-store edit notes.db 3f2a9c1b --add-topic contracts --remove-topic inbox
    memory-store edit 3f2a9c1b

    Without a change named, at a terminal, the text opens in your editor ($VISUAL or $EDITOR), in a
    folder in memory that is wiped afterwards. Set your editor to keep no undo files or backups
    elsewhere.
    """
    if topic and no_topics:
        raise BadInputError("choose one of --topic and --no-topics", "topic")
    changes: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
    if text is not None:
        changes["text"] = text_or_stdin(text)
    if topic or no_topics:
        changes["topics"] = topic
    if add_topic or remove_topic:
        changes |= {"add_topics": add_topic, "remove_topics": remove_topic}
    if meta:
        changes["metadata"] = dict(key_value_pairs(meta, "meta"))
    said = "is now version"
    if changes:
        memory = store.edit(store.get(id).id, expected_version=if_version, **changes)
    elif at_terminal() and sys.stdout.isatty():
        before = store.get(id)
        memory = edit_at_terminal(store, before, if_version)
        said = said if memory is not before else "is as it was, version"
    else:
        raise BadInputError("nothing to change: give --text, --title, --topic, … (see --help)")
    write_answer(as_json, memory.as_dict(), [f"{memory.id} {said} {memory.version}"])


def edit_at_terminal(store: MemoryStore, memory: Memory, if_version: int | None) -> Memory:
    """The memory with the text that you leave in your editor; the same one without a change.

    What cannot be saved stays in the editor until you give it up.
    """
    from memory_store.cli.editor import editing

    version = memory.version if if_version is None else if_version
    with ExitStack() as ending:
        opened: Callable[[], str] | None = None
        while True:
            try:
                elsewhere = edited_elsewhere(version, memory.text)
                if elsewhere is not None:
                    version, text = elsewhere
                else:
                    opened = opened or ending.enter_context(editing(memory.text))
                    text = opened()
                if text == memory.text:
                    return memory
                return store.edit(memory.id, expected_version=version, text=text)
            except EditorError:
                raise
            except MemoryStoreError as error:
                if opened is None and not elsewhere:
                    raise
                click.echo(f"Not saved: {printable_line(str(error))}", err=True)
                words = "Open your text again? Saving it then writes over what is there now"
                if not click.confirm(words, err=True):
                    raise
                version = store.get(memory.id).version


_ids = click.argument(
    "ids", metavar="ID...", nargs=-1, required=True, shell_complete=completed_by("memory_ids")
)


@vault_command()
@_ids
@json_option("Print the completed memories as JSON")
def done(store: MemoryStore, ids: tuple[str, ...], as_json: bool) -> None:
    """Mark memories as completed (a task becomes task_done).

    \b
    memory-store done notes.db 3f2a9c1b
    """
    _change_each(store, ids, store.done, as_json=as_json)


@vault_command()
@_ids
@json_option("Print the opened memories as JSON")
def reopen(store: MemoryStore, ids: tuple[str, ...], as_json: bool) -> None:
    """Mark completed memories as open again (task_done becomes task).

    \b
    memory-store reopen notes.db 3f2a9c1b
    """
    _change_each(store, ids, store.reopen, as_json=as_json)


def _change_each(
    store: MemoryStore, ids: Sequence[str], change: Callable[[str], Memory], *, as_json: bool
) -> None:
    """Change memories one after another, once all of them are found, and print their types."""
    found = [store.get(id) for id in ids]
    changed = [change(memory.id) for memory in found]
    shown = [memory.as_dict() for memory in changed]
    write_answer(as_json, shown, (f"{memory.id} {memory.type}" for memory in changed))


@vault_command()
@click.argument("id", shell_complete=completed_by("memory_ids"))
@click.argument("collection", shell_complete=completed_by("collection_names"))
@json_option("Print the copy as JSON")
def publish(store: MemoryStore, id: str, collection: str, as_json: bool) -> None:
    """Copy a memory into another collection, once. The original stays.

    \b
    memory-store publish notes.db 3f2a9c1b team

    Published again, the copy that is there is shown. Later changes to the original do not reach it.
    Title, text, type, topics, dates and metadata are copied; the name of the file it came from and
    links to other memories are not.
    """
    copy = store.publish(id, collection)
    write_answer(as_json, copy.as_dict(), [f"{copy.id} in {printable_line(copy.collection)}"])


@vault_command()
@click.argument("ids", metavar="ID...", nargs=-1, shell_complete=completed_by("memory_ids"))
@click.option("--by", metavar="NAME", help="All that this assistant wrote")
@click.option("--now", is_flag=True, help="Erase at once: leave nothing in the trash")
@click.option("-y", "--yes", is_flag=True, help="Do not ask")
def delete(store: MemoryStore, ids: tuple[str, ...], by: str | None, now: bool, yes: bool) -> None:
    """Delete memories. They stay in the trash, sealed, for 30 days.

    \b
    memory-store delete notes.db 3f2a9c1b
    memory-store delete notes.db --by claude-code
    memory-store delete notes.db 3f2a9c1b --now

    Topics, vectors and index entries go at once. "memory-store undo" brings the memories back.
    With --now nothing is left, no earlier version in the trash either. Asks first in a terminal.
    Backups and exports made earlier keep their copies.
    """
    if bool(ids) == bool(by):
        raise BadInputError("name memories by their ids, or an assistant by --by", "by")
    found = {id: _read(store, id) for id in map(store.find_id, ids)}
    if by:
        written = store.list(by=by, superseded=True, limit=store.stats()["memories"])
        if not written:
            raise BadInputError(f"--by {by}: it wrote nothing that is here", "by")
        found = {memory.id: memory for memory in written}
    damaged = [id for id, memory in found.items() if memory is None]
    if not yes and sys.stdin.isatty():
        for id, memory in found.items():
            click.echo(f"{id[:SHORT_ID]}  damaged" if memory is None else _line(memory), err=True)
        question = f"{'Erase' if now else 'Delete'} {'these' if len(found) > 1 else 'this'}"
        click.confirm(f"{question}{' for good' if now else ''}?", abort=True, err=True)
    store.delete_many(list(found), now=now)
    days = 0 if now else store.trash.days()
    for id in found:
        click.echo(f"{id} {'deleted' if days and id not in damaged else 'erased'}")
    if days and damaged:
        click.echo(f"Damaged, so not in the trash: {', '.join(damaged)}", err=True)
    if days and len(found) > len(damaged):
        they = "it" if len(found) - len(damaged) == 1 else "them"
        click.echo(f"In the trash for {days} days: memory-store undo brings {they} back", err=True)


def _read(store: MemoryStore, id: str) -> Memory | None:
    """The memory of that id; ``None`` where it is damaged."""
    try:
        return store.get(id, refs=False)
    except (TamperedError, FormatError):
        return None


def _line(memory: Memory, type_room: int = 0) -> str:
    """A memory on one line: short id, day, type (padded to ``type_room``), title, who wrote it
    where an assistant did, topics."""
    topics = f"  by {printable_line(memory.by)}" if memory.by else ""
    topics += "".join(f"  #{printable_line(topic)}" for topic in memory.topics)
    line = f"{memory.id[:SHORT_ID]}  {memory.created[:10]}  {memory.type:<{type_room}}  "
    return shortened(f"{line}{_title(memory)}{topics}", columns())


def _title(memory: Memory) -> str:
    return printable_line(shown_title(memory.title, memory.text)) or "(untitled)"
