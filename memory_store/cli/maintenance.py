"""``doctor stats verify audit settings``: keeping a vault in good order.

Boundary: shows counts, ids, and names of models, files and actors, never a text or a topic.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from memory_store.cli.failures import EXIT_FAILED
from memory_store.cli.options import (
    json_option,
    key_options,
    row_options,
    unlocked,
    vault_command,
    with_store,
)
from memory_store.cli.progress import KEPT, Progress
from memory_store.cli.rows import write_answer, write_json, write_rows
from memory_store.cli.terminal import BOLD, DIM, colour_wanted, in_units, printable_line, styled
from memory_store.cli.vault_argument import VaultCommand, database_argument
from memory_store.configuration import typed_vault
from memory_store.errors import BadInputError, LockedError, WrongKeyError

if TYPE_CHECKING:
    from memory_store.doctor import Check
    from memory_store.records import VaultSettings
    from memory_store.store import MemoryStore

_MARKS = {"ok": "ok     ", "missing": "MISSING", "off": "off    "}
SHOWN = (
    *("vault", "format", "profile", "topics", "trash", "model", "ranking"),
    *("collections", "created"),
)
TOPICS = {
    "table": "table: hashed in the file, so that SQL can join by them",
    "memory": "memory: the file holds no hashes of them, so SQL cannot join by them",
}
"""Where topics are kept, in words."""
TO_DO = (
    "Put back a backup. Without one, memory-store delete ID takes away a memory that is damaged, "
    "where the file allows it, and memory-store export DIR --skip-damaged writes all others."
)


class DoctorCommand(VaultCommand):
    """Looks at what is there: also where there is no vault."""

    makes_vault = True


@click.command(cls=DoctorCommand)
@database_argument
@key_options
@click.option("--strict", is_flag=True, help="Exit code 1 when anything is missing")
@json_option("Print an array of checks as JSON")
def doctor(
    database: Path, key_file: Path | None, passphrase: bool, strict: bool, as_json: bool
) -> None:
    """Say what works, what is missing, and what mends it.

    \b
    memory-store doctor notes.db
    memory-store doctor notes.db --strict

    Without a vault or a key, only what can be seen without one is examined.
    """
    from memory_store.configuration import default_vault
    from memory_store.doctor import examine, key_source

    examined = None if database == default_vault() and not database.exists() else database
    key = key_source(key_file, asked=passphrase)
    with _opened_if_possible(examined, key_file, passphrase) as store:
        checks = examine(examined, store, key)
    write_answer(as_json, checks, _check_lines(checks))
    if strict and any(check.state == "missing" for check in checks):
        sys.exit(EXIT_FAILED)


def _opened_if_possible(database: Path | None, key_file: Path | None, passphrase: bool) -> Any:
    """The opened vault; nothing when no source has a key for it (the doctor then says so)."""
    from memory_store.unlocking import open_store
    from memory_store.vault.storage.schema import is_vault

    if database is None or not is_vault(database):
        return nullcontext()
    if key_file is not None or passphrase:
        return unlocked(database, key_file, passphrase)
    try:
        return open_store(database)
    except (LockedError, WrongKeyError):
        return nullcontext()


def _check_lines(checks: list[Check]) -> Iterator[str]:
    colour = colour_wanted()
    room = max(len(check.name) for check in checks) + 2
    for check in checks:
        mark = styled(_MARKS[check.state], BOLD if check.state == "missing" else DIM, colour)
        yield f"{mark}  {check.name:<{room}}{printable_line(check.detail)}"
        for label, words in (("so", check.effect), ("mend", check.remedy)):
            if words and check.state != "ok":
                yield f"{'':<{9 + room}}{label}: {printable_line(words)}"


@vault_command()
@json_option("Print as JSON")
def stats(store: MemoryStore, as_json: bool) -> None:
    """Show sizes and counts.

    \b
    memory-store stats notes.db --json
    """
    found = store.stats()
    lines = (f"{name.replace('_', ' '):<16}{_stat(name, value)}" for name, value in found.items())
    write_answer(as_json, found, lines)


def _stat(name: str, value: Any) -> str:
    if name.endswith("_bytes") and isinstance(value, int):
        return in_units(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{printable_line(str(key))} {count}" for key, count in value.items())
    return "none" if value is None else printable_line(str(value))


def accepting_older(command: Callable[..., None]) -> Callable[..., None]:
    """With ``--accept-older``, let the vault's owner say to members what he said before.

    To be put above :func:`with_store`: a vault whose shares are older than those that this machine
    saw does not open at all. Unless the command succeeds, nothing is accepted.
    """

    @wraps(command)
    def accepting(database: Path, accept_older: bool, **parameters: Any) -> None:
        from memory_store.actions.vaults import accepting_older_shares

        with accepting_older_shares(database) if accept_older else nullcontext():
            command(database=database, accept_older=accept_older, **parameters)

    return accepting


@click.command(cls=VaultCommand)
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

    Each memory is compared with its account and its index entry; the words of 256 memories and the
    vectors of 16, chosen at random, are made again and compared with the index (--full: all).

    A file that is older than the one last used on this machine, as after a backup was put back,
    is whole. Every opening warns of it until --accept-older.
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
        compared = found["compared"]
        vectors = f", the vectors of {compared['vectors']:,}"
        if not full and compared["vectors"] < compared["entries"]:
            vectors += ", chosen at random (all: --full)"
        if compared["left"]:
            vectors = f"; no vectors: {printable_line(compared['left'])}"
        counted = f"{compared['entries']:,} entries, the words of {compared['words']:,}"
        click.echo(f"index compared: {counted}{vectors}")
    if failures:
        if not as_json and any(map(_is_lost, failures)):
            click.echo(TO_DO, err=True)
        sys.exit(EXIT_FAILED)
    if accept_older:
        store.accept_older()


def _is_lost(failure: str) -> bool:
    """Whether a failure is of a memory that no command mends."""
    return failure.startswith("memory ") and "memory-store reindex" not in failure


@vault_command()
@click.option("--since", default="", metavar="WHEN", help="At or after: 2024-05-01, 7d, 3w")
@click.option("--until", default="", metavar="WHEN", help="At or before")
@click.option("--who", default="", metavar="ACTOR", help="Of one actor")
@click.option("--surface", default="", metavar="NAME", help="page, json, csv, sql, table, memory …")
@click.option("--action", default="", metavar="NAME", help="search, read, add, edit, unlock …")
@click.option("--totals", is_flag=True, help="One line for each actor, not one for each event")
@row_options("Print an array as JSON")
def audit(store: MemoryStore, totals: bool, form: str, **narrowed: str) -> None:
    """Show the audit trail: who opened how many memories, when, by which surface.

    \b
    memory-store audit notes.db --since 7d
    memory-store audit notes.db --totals
    memory-store audit notes.db --who alice --csv

    The Datasette plugin and memory-store mcp keep the trail. It holds no query and no text, and is
    sealed like the rest of the vault. "verify" says whether a part of it is missing. What the
    holder of a key does in a terminal is not recorded.
    """
    from memory_store.actions import trail

    events = trail.Wanted(**narrowed).of(store.trail.events())
    if totals:
        rows = [total.as_dict() for total in trail.totals(events)]
        write_rows(form, rows, ("who", "events", "opened", "returned", "last"))
        return
    write_rows(form, [event.as_dict() for event in events], trail.COLUMNS)


@vault_command()
@click.argument("name", required=False, metavar="[NAME")
@click.argument("value", required=False, metavar="VALUE]")
@json_option("Print as JSON")
def settings(store: MemoryStore, name: str | None, value: str | None, as_json: bool) -> None:
    """Show how a vault is set up, or change it.

    \b
    memory-store settings notes.db
    memory-store settings notes.db topics memory
    memory-store settings notes.db topics table
    memory-store settings notes.db trash 7
    memory-store settings notes.db ranking general

    Topics are searched in memory in any case. In the table memory_topics they are hashed besides,
    so that SQL can join by them. A thief of the file sees there which memories share a topic, and
    one who knows some of your notes can name many topics of the others. "topics memory" takes the
    hashes out of the file, "topics table" puts them back. If you stop it, run it again to go on.
    Copies of the file that were made before keep what they hold.

    "trash" is for how many days what you delete or change stays in the vault, sealed; 0 keeps
    nothing, and erases what is there.

    "ranking general" forgets what eval --fit fitted to your judgements.
    """
    if name is not None:
        _change(store, name, value)
    found = store.settings()
    write_answer(as_json, found, _setting_lines(found))
    if found.topics_unfinished and not as_json:
        click.echo(
            f"The change to topics {found.topics} is not finished: "
            f"memory-store settings{typed_vault(store.path)} topics {found.topics} goes on",
            err=True,
        )


def _change(store: MemoryStore, name: str, value: str | None) -> None:
    """Raises BadInputError for a setting that there is not, or that is fixed."""
    if name == "trash":
        if value is None or not value.isdecimal():
            raise BadInputError("settings trash: say for how many days; 0 keeps nothing", "value")
        store.set_trash(int(value))
        return
    if name == "ranking":
        if value != "general":
            raise BadInputError("settings ranking: say general; eval --fit fits your own", "value")
        store.set_ranking(None)
        return
    if name != "topics":
        raise BadInputError(
            f"settings: topics, trash and ranking can be changed, not {name!r}", "name"
        )
    if value is None:
        raise BadInputError("settings topics: say table or memory", "value")
    again = f"memory-store settings{typed_vault(store.path)} topics {value}"
    with Progress(f"{KEPT}: {again}") as progress:
        erased = store.set_topics(value, progress=progress)
    if value == "memory" and not erased:
        click.echo(
            "Another program is reading the vault: the write-ahead log keeps hashes until it is "
            "done. Run the command again then.",
            err=True,
        )


def _rankings(found: VaultSettings) -> str:
    """Whose numbers weigh evidence in this vault."""
    own = (
        f"fitted to {one.queries:,} of your queries on {one.day} for {one.model}"
        for one in found.rankings
    )
    return "; ".join(own) or "general"


def _setting_lines(found: VaultSettings) -> Iterator[str]:
    shown = asdict(found) | {
        "topics": TOPICS[found.topics],
        "trash": f"{found.trash} days" if found.trash else "off: what is deleted is erased at once",
        "model": found.model or "none yet",
        "created": found.created or "not known to this key",
        "ranking": _rankings(found),
    }
    for name in SHOWN:
        yield f"{name:<13}{printable_line(str(shown[name]))}"
