"""``sync``: changes exchanged with other copies of a vault, by a folder or file to file.

Boundary: what goes into a folder is sealed; names of files in it are untrusted when they are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memory_store.cli.options import json_option, vault_command
from memory_store.cli.rows import write_answer
from memory_store.cli.terminal import SHORT_ID, memories, printable_line
from memory_store.errors import BadInputError

if TYPE_CHECKING:
    from memory_store.records.sync import SyncReport
    from memory_store.store import MemoryStore


@vault_command()
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--no-embed", is_flag=True, help="Leave what arrives without vectors, for reindex")
@click.option("--whole", is_flag=True, help="Write everything into the folder anew")
@json_option("Print what was exchanged as JSON")
def sync(store: MemoryStore, target: Path, no_embed: bool, whole: bool, as_json: bool) -> None:
    """Exchange changes with your other devices.

    \b
    memory-store sync notes.db ~/Dropbox/notes
    memory-store sync notes.db /media/stick/notes.db

    TARGET is a folder that your devices share (Syncthing, Dropbox, a stick): sealed files go into
    it, and those of the others are read. Or it is another copy of this vault. What you changed
    here and elsewhere is kept twice: "memory-store review" shows both. What you deleted elsewhere
    goes to the trash.

    --whole also takes this device's earlier files away, and with them what was deleted since.
    """
    if target.is_dir():
        report = store.sync_with_folder(target, embed=not no_embed, whole=whole)
    elif whole:
        raise BadInputError("--whole is for a folder", "whole")
    else:
        report = _with_copy(store, target, embed=not no_embed)
    write_answer(as_json, report.as_dict(), _lines(report))


def _with_copy(store: MemoryStore, target: Path, *, embed: bool) -> SyncReport:
    from memory_store.unlocking import is_vault

    if not target.exists():
        raise BadInputError(f"{target}: no such folder, and no vault", "TARGET")
    if not is_vault(target):
        raise BadInputError(f"{target}: neither a folder nor a vault", "TARGET")
    with store.open_copy(target) as other:
        return store.sync_with_copy(other, embed=embed)


def _lines(report: SyncReport) -> Iterator[str]:
    yield (
        f"{memories(report.sent)} sent; {report.added} added, {report.changed} changed, "
        f"{report.deleted} deleted here"
    )
    if report.conflicts:
        yield f"{memories(len(report.conflicts))} changed here and elsewhere; both versions stay:"
        yield from (f"  {one[:SHORT_ID]}" for one in report.conflicts)
        yield '"memory-store review" shows them.'
    if report.waiting:
        yield f"{report.waiting} files have not arrived yet, or not whole: sync again later."
    for line in report.ignored:
        yield f"Ignored: {printable_line(line)}"
