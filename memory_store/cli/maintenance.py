"""``doctor stats verify export backup``: keeping a vault in good order."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from memory_store.cli.failures import EXIT_FAILED
from memory_store.cli.options import (
    accepting_older,
    database_argument,
    json_option,
    key_options,
    with_store,
)
from memory_store.cli.progress import Progress
from memory_store.cli.rows import write_json
from memory_store.cli.terminal import BOLD, DIM, colour_wanted, printable_line, styled
from memory_store.errors import BadInputError, LockedError, WrongKeyError

if TYPE_CHECKING:
    from memory_store.doctor import Check
    from memory_store.store import MemoryStore

NEEDS_DEVICE_KEY = (
    "Restored on another machine, it opens with the recovery code or a key file, and with the "
    "passphrase once that machine has the device key: memory-store keys device export {}"
)
STANDARD_OUTPUT = Path("-")
_MARKS = {"ok": "ok     ", "missing": "MISSING", "off": "off    "}


@click.command()
@click.argument("database", metavar="[DB]", required=False, type=click.Path(path_type=Path))
@key_options
@click.option("--strict", is_flag=True, help="Exit code 1 when anything is missing")
@json_option("Print an array of checks as JSON")
def doctor(
    database: Path | None, key_file: Path | None, passphrase: bool, strict: bool, as_json: bool
) -> None:
    """Say what works, what is missing, and what mends it.

    \b
    memory-store doctor notes.db
    memory-store doctor notes.db --strict

    Without DB, or without a key, only what can be seen without one is examined.
    """
    from memory_store.doctor import examine, key_source

    key = key_source(key_file, asked=passphrase)
    with _opened_if_possible(database, key_file, passphrase) as store:
        checks = examine(database, store, key)
    if as_json:
        write_json([asdict(check) for check in checks])
    else:
        for line in _check_lines(checks):
            click.echo(line)
    if strict and any(check.state == "missing" for check in checks):
        sys.exit(EXIT_FAILED)


@click.command()
@database_argument
@json_option("Print as JSON")
@with_store
def stats(store: MemoryStore, as_json: bool) -> None:
    """Show sizes and counts.

    \b
    memory-store stats notes.db --json
    """
    found = store.stats()
    if as_json:
        write_json(found)
        return
    for name, value in found.items():
        click.echo(f"{name.replace('_', ' '):<16}{_stat(name, value)}")


@click.command()
@database_argument
@click.option(
    "--accept-older", is_flag=True, help="Unless a record fails, take this file for the newest"
)
@click.option(
    "--full", is_flag=True, help="Compare the words and vectors of every memory with the index"
)
@json_option("Print as JSON")
@accepting_older
@with_store
def verify(store: MemoryStore, accept_older: bool, full: bool, as_json: bool) -> None:
    """Authenticate every record. Exit code 1 when one was changed, cut, moved or put back.

    \b
    memory-store verify notes.db
    memory-store verify notes.db --full

    Each memory is held against its account and its index entry; the words of 256 memories and the
    vectors of 16, chosen at random, are made again and compared with the index (--full: all).

    A file that is older than the one last used on this machine, as after a backup was put back,
    is whole: that is told at every opening until --accept-older.
    """
    with Progress() as progress:
        found = store.verify(progress=progress, full=full)
    failures = list(found["failures"])
    if as_json:
        write_json(found)
    else:
        for failure in failures:
            click.echo(f"failed: {printable_line(str(failure))}", err=True)
        older = ", but the file is an older one" if found["older"] else ""
        click.echo(f"{found['records']:,} records verified, {len(failures)} failed{older}")
        click.echo(_compared(found["compared"]))
    if failures:
        sys.exit(EXIT_FAILED)
    if accept_older:
        store.accept_older()


def _compared(numbers: dict[str, Any]) -> str:
    """What of the index was compared with the memories."""
    said = f"index compared: {numbers['entries']:,} entries, the words of {numbers['words']:,}"
    if numbers["left"]:
        return f"{said}; no vectors: {printable_line(numbers['left'])}"
    return f"{said}, the vectors of {numbers['vectors']:,}"


@click.command()
@database_argument
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--ndjson", is_flag=True, help="One memories.ndjson instead of Markdown files")
@with_store
def export(store: MemoryStore, folder: Path, ndjson: bool) -> None:
    """Write every memory to a folder in PLAIN TEXT.

    \b
    memory-store export notes.db ~/notes-export
    memory-store export notes.db - --ndjson | head

    Markdown with front matter, one file for each memory. Importing the folder again gives the
    same memories with the same ids.
    """
    from memory_store.actions.export import export_markdown, export_ndjson, export_ndjson_folder

    if folder == STANDARD_OUTPUT and not ndjson:
        raise BadInputError("only --ndjson can be written to standard output", "DIR")
    memories = store.every()
    if folder == STANDARD_OUTPUT:
        export_ndjson(memories, sys.stdout)
        return
    written = (export_ndjson_folder if ndjson else export_markdown)(memories, folder)
    click.echo(f"{written:,} {'memory' if written == 1 else 'memories'} written to {folder}")
    click.echo("They are plain text there: delete the folder when you are done with it.", err=True)


@click.command()
@database_argument
@click.argument("target", type=click.Path(path_type=Path))
def backup(database: Path, target: Path) -> None:
    """Copy the vault to a new file.

    \b
    memory-store backup notes.db /media/usb/notes-backup.db

    Needs no key and disturbs nobody who is using the vault. The copy is as sealed as the vault
    and opens with the same keys.
    """
    from memory_store.cli.backup import copy_vault
    from memory_store.store import MemoryStore

    size = copy_vault(database, target)
    click.echo(f"{target}: {_bytes(size)}, checked")
    if MemoryStore.device_keys(target):
        click.echo(NEEDS_DEVICE_KEY.format(printable_line(str(database))), err=True)


def _opened_if_possible(database: Path | None, key_file: Path | None, passphrase: bool) -> Any:
    """The opened vault; nothing when no source has a key for it (the doctor then says so)."""
    from memory_store.cli.options import unlocked
    from memory_store.unlocking import is_vault, open_store

    if database is None or not is_vault(database):
        return nullcontext()
    if key_file is not None or passphrase:
        return unlocked(database, key_file, passphrase)
    try:
        return open_store(database)
    except (LockedError, WrongKeyError):
        return nullcontext()


def _check_lines(checks: list[Check]) -> list[str]:
    colour = colour_wanted()
    room = max(len(check.name) for check in checks) + 2
    lines = []
    for check in checks:
        mark = styled(_MARKS[check.state], BOLD if check.state == "missing" else DIM, colour)
        lines.append(f"{mark}  {check.name:<{room}}{printable_line(check.detail)}")
        if check.state != "ok":
            indent = " " * (9 + room)
            lines += [
                f"{indent}{label}: {printable_line(words)}"
                for label, words in (("so", check.effect), ("mend", check.remedy))
                if words
            ]
    return lines


def _stat(name: str, value: Any) -> str:
    if name.endswith("_bytes") and isinstance(value, int):
        return _bytes(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{printable_line(str(key))} {count}" for key, count in value.items())
    return "none" if value is None else printable_line(str(value))


def _bytes(count: int) -> str:
    """A size for people: ``4.2 MB``."""
    size, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
