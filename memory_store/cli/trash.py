"""``trash list restore empty``, ``undo``: what was deleted or changed, put back or erased."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from memory_store.cli.failures import EXIT_FAILED
from memory_store.cli.options import Listing, json_option, row_options, vault_command
from memory_store.cli.rows import write_answer, write_rows
from memory_store.cli.terminal import SHORT_ID, columns, printable_line, shortened, width
from memory_store.titles import shown_title

if TYPE_CHECKING:
    from memory_store.records import Memory, TrashEntry, Undone
    from memory_store.store import MemoryStore

COLUMNS = (
    *("id", "version", "change", "by", "assistant", "time", "until"),
    *("collection", "type", "title", "topics", "group"),
)
LEAST_OF_A_TITLE = 16  # cells, on however narrow a terminal
UNDONE = {"delete": "deletion", "edit": "edit", "done": "completion", "reopen": "reopening"}
BY = {
    "hand": "",
    "import": " by an import",
    "trash": " by a restored version",
    "sync": " on another device",
}


@click.group(cls=Listing)
def trash() -> None:
    """List what was deleted or changed, put it back, or erase it.

    \b
    memory-store trash
    memory-store trash restore Lease
    memory-store trash empty notes.db

    Alone it lists. What you delete or change stays in the vault for 30 days, sealed. "memory-store
    settings trash DAYS" changes that; 0 keeps nothing. "memory-store delete --now" erases at once.
    """


@vault_command("list", group=trash)
@click.argument("id", required=False)
@click.option("--by", metavar="NAME", help="What this assistant changed or deleted")
@row_options("Print an array as JSON")
def list_(store: MemoryStore, id: str | None, by: str | None, form: str) -> None:
    """List what is in the trash, newest first; with an ID, the earlier versions of that memory.

    \b
    memory-store trash list notes.db
    memory-store trash list notes.db 3f2a9c1b --json
    memory-store trash list notes.db --by claude-code
    """
    found = store.trash.list(id, by=by)
    nothing = "the trash is empty" if id is None else f"nothing of {id!r} is in the trash"
    lines = map(_line, found) if found else [nothing]
    write_rows(form, [one.as_dict() for one in found], COLUMNS, lines)


@vault_command(group=trash)
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--version", type=click.IntRange(min=1), metavar="N", help="Not the last version")
@json_option("Print the restored memories as JSON")
def restore(store: MemoryStore, ids: tuple[str, ...], version: int | None, as_json: bool) -> None:
    """Put memories back as they were: deleted ones, or the version before the last change.

    \b
    memory-store trash restore notes.db 3f2a9c1b
    memory-store trash restore notes.db 3f2a9c1b --version 2

    ID may be the beginning of one, or a title. What a restored version replaces goes to the trash.
    """
    put = store.trash.restore(ids, version=version)
    write_answer(as_json, [one.as_dict() for one in put], map(_restored, put))


@vault_command(group=trash)
@click.argument("ids", metavar="[ID...]", nargs=-1)
@click.option("-y", "--yes", is_flag=True, help="Do not ask")
@json_option("Print how many as JSON")
def empty(store: MemoryStore, ids: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Erase what is in the trash for good: all of it, or what it has of some memories.

    \b
    memory-store trash empty notes.db
    memory-store trash empty notes.db 3f2a9c1b

    Asks first in a terminal. Backups made earlier keep their copies.
    """
    if not yes and sys.stdin.isatty():
        what = "what it has of these memories" if ids else "the whole trash"
        click.confirm(f"Erase {what} for good?", abort=True, err=True)
    gone = store.trash.empty(ids)
    write_answer(as_json, {"erased": gone}, [f"{gone} erased"])


@vault_command()
@click.option("--by", metavar="NAME", help="All that this assistant did")
@json_option("Print what was undone as JSON")
def undo(store: MemoryStore, by: str | None, as_json: bool) -> None:
    """Take back the last deletion or change made with your key; again, the one before.

    \b
    memory-store undo notes.db
    memory-store undo notes.db --by claude-code

    Says what it took back. What an import replaced is put back with "memory-store trash restore".
    With --by what an assistant added goes to the trash, and what it changed, superseded or deleted
    is as before. What was changed again afterwards is left as it is, and named.
    """
    undone = store.undo() if by is None else store.undo_all_of(by)
    write_answer(as_json, undone.as_dict(), _undone(undone, by))
    if not (undone.memories or undone.removed):
        sys.exit(EXIT_FAILED)


def _undone(undone: Undone, by: str | None) -> list[str]:
    what = f"{UNDONE[undone.change]} undone: " if undone.change in UNDONE else ""
    made = "that change" if by is None else printable_line(by)
    return [
        *(f"{what}{_restored(one)}" for one in undone.memories),
        *(f"{id[:SHORT_ID]} is in the trash: {made} had added it" for id in undone.removed),
        *(
            f"{id[:SHORT_ID]} is left as it is, for it was changed again afterwards: memory-store "
            f"trash list {id[:SHORT_ID]}"
            for id in undone.left
        ),
    ]


def _restored(memory: Memory) -> str:
    title = printable_line(shown_title(memory.title, memory.text))
    return f"{memory.id[:SHORT_ID]} {title} is back, as version {memory.version}"


def _line(entry: TrashEntry) -> str:
    """Short id, moment, what happened, title, version: a long title is cut, never the version."""
    by = f" by {printable_line(entry.assistant)}" if entry.assistant else BY[entry.by]
    moment = entry.time[:16].replace("T", " ")
    what = f"{entry.change}{by}".replace("edited by a", "replaced by a")
    line = f"{entry.id[:SHORT_ID]}  {moment}  {what:<8}  "
    version = f"  (version {entry.version})"
    room = max(columns() - width(line) - width(version), LEAST_OF_A_TITLE)
    return f"{line}{shortened(printable_line(entry.title), room)}{version}"
