"""The options that several commands share, and the vault they open.

Boundary: a key reaches a command as a file path or a flag, never as an argument value. Prompts
do not echo. The vault is locked again when the command ends, however it ends.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memory_store.cli.terminal import printable_line
from memory_store.errors import BadInputError, LockedError
from memory_store.records import OPTIONS, TYPES

if TYPE_CHECKING:
    from memory_store.store import MemoryStore

Function = TypeVar("Function", bound=Callable[..., Any])

TYPE_NAMES = ", ".join(TYPES)
STDIN_LIMIT = 50_000_000  # bytes: the same as for a file on import


def database_argument(function: Function) -> Function:
    """The first argument of every command: the vault's file."""
    return click.argument("database", metavar="DB", type=click.Path(path_type=Path))(function)


def key_options(function: Function) -> Function:
    """``--key-file`` and ``--passphrase``: where the key comes from."""
    function = click.option(
        "--passphrase",
        is_flag=True,
        help="Ask for the passphrase (or take it from MEMORY_STORE_PASSPHRASE)",
    )(function)
    return click.option(
        "--key-file",
        type=click.Path(path_type=Path),
        help="File with the key (default: MEMORY_STORE_KEY_FILE)",
    )(function)


def with_store(function: Callable[..., None]) -> Callable[..., None]:
    """Give the command DB and the key options, and call it with the opened ``store`` first."""

    @functools.wraps(function)
    def command(database: Path, key_file: Path | None, passphrase: bool, **parameters: Any) -> None:
        _refuse_bytes(parameters)
        with unlocked(database, key_file, passphrase) as store:
            if (warning := store.untold()) is not None:
                click.echo(f"Warning: {printable_line(warning)}.", err=True)
            if store.keys.lacks_device():
                click.echo(_restoring(store.path), err=True)
            function(store, **parameters)

    return key_options(command)


def _restoring(database: Path) -> str:
    return (
        "Note: this machine lacks the device key that the vault's passphrase needs. "
        f"memory-store keys device restore {printable_line(str(database))} puts it here."
    )


def accepting_older(command: Callable[..., None]) -> Callable[..., None]:
    """With ``--accept-older``, let the vault's owner tell a member what he told her before.

    To be put above :func:`with_store`: a vault whose shares are older than those that this machine
    saw does not open at all. Unless the command succeeds, nothing is accepted.
    """

    @functools.wraps(command)
    def accepting(database: Path, accept_older: bool, **parameters: Any) -> None:
        from memory_store.actions.vaults import accepting_older_shares

        with accepting_older_shares(database) if accept_older else nullcontext():
            command(database=database, accept_older=accept_older, **parameters)

    return accepting


def _refuse_bytes(parameters: Mapping[str, Any]) -> None:
    """Refuse text arguments that are not UTF-8: Python hands such bytes on as lone surrogates.

    Paths may hold any bytes; they are ``Path`` here, not ``str``.
    """
    for name, given in parameters.items():
        for value in given if isinstance(given, tuple) else (given,):
            if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
                raise BadInputError(f"{name}: this is not valid UTF-8 text", name)


def unlocked(database: Path, key_file: Path | None, passphrase: bool) -> MemoryStore:
    """The vault, opened by the key lookup order of :mod:`memory_store.unlocking`."""
    from memory_store.unlocking import PASSPHRASE_VARIABLE, open_store

    if passphrase and not os.environ.get(PASSPHRASE_VARIABLE) and not at_terminal():
        raise LockedError(
            f"{database} is locked: --passphrase needs a terminal, or set {PASSPHRASE_VARIABLE}"
        )
    ask = (lambda: asked_passphrase(database)) if at_terminal() else None
    return open_store(database, key_file=key_file, ask_passphrase=ask)


def at_terminal() -> bool:
    """Whether somebody is there to answer a prompt."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def asked_passphrase(database: Path) -> str:
    """The passphrase or recovery code typed at a hidden prompt (on stderr: stdout stays data)."""
    from memory_store.unlocking import passphrase_refused

    refusal = passphrase_refused(database)
    if refusal is not None:
        click.echo(f"Note: {printable_line(refusal)}.", err=True)
    wanted = "Passphrase or recovery code" if refusal is None else "Recovery code"
    answer: str = click.prompt(
        f"{wanted} for {database.name}",
        hide_input=True,
        err=True,
        default="",
        show_default=False,
    )
    return answer


SCOPE = ("collection", "type", "topic", "status", "since", "until")
"""The filters of ``search`` and ``list``."""


def request_options(*names: str) -> Callable[[Function], Function]:
    """Options of a search, by name: in the order that a command's help shows them."""

    def with_options(function: Function) -> Function:
        for name in reversed(names):
            function = request_option(name)(function)
        return function

    return with_options


def request_option(name: str, **other: Any) -> Callable[[Function], Function]:
    """One field of :class:`SearchRequest` as an option; ``other`` settings replace its own.

    A field that is on by itself becomes ``--no-…``.
    """
    option = OPTIONS[name]
    dashed = name.replace("_", "-")
    settings: dict[str, Any] = {"help": option.description, "metavar": option.value}
    if option.off:
        return click.option(f"--no-{dashed}", is_flag=True, help=option.off)
    if option.kind is bool:
        settings["is_flag"] = True
    elif option.several:
        settings |= {"multiple": True, "help": f"{option.description} (repeatable)"}
    else:
        settings["type"] = click.Choice(option.choices) if option.choices else option.kind
        settings |= {"default": option.default, "show_default": option.default is not None}
    short = ("-n",) if name == "limit" else ()
    return click.option(*short, f"--{dashed}", option.field, **settings | other)


def row_options(function: Function) -> Function:
    """``--nl``, ``--csv`` and ``--table``, as in sqlite-utils. ``--json`` is each command's own."""
    for option in reversed(
        [
            click.option("--nl", is_flag=True, help="One JSON object per line"),
            click.option("--csv", is_flag=True, help="CSV with a header line"),
            click.option("--table", is_flag=True, help="A plain text table"),
        ]
    ):
        function = option(function)
    return function


def judgement_options(*, stdin: bool = False) -> Callable[[Function], Function]:
    """``--queries`` and ``--qrels``: one's own judgements; ``-`` too if ``stdin``."""
    file = click.Path(exists=True, dir_okay=False, allow_dash=stdin, path_type=Path)

    def judged(function: Function) -> Function:
        function = click.option(
            "--qrels",
            required=True,
            metavar="FILE",
            type=file,
            help="Query, ref or id, and grade, apart by tabs; or TREC's four columns",
        )(function)
        return click.option(
            "--queries",
            required=True,
            metavar="FILE",
            type=file,
            help="JSON lines with id and text",
        )(function)

    return judged


def json_option(help: str) -> Callable[[Function], Function]:
    """``--json`` with the words for what this command prints."""
    return click.option("--json", "as_json", is_flag=True, help=help)


def one_format(as_json: bool, nl: bool, csv: bool, table: bool) -> str:
    """The chosen output format: ``json nl csv table`` or ``text``. Two at once are refused."""
    chosen = [
        name for name, on in (("json", as_json), ("nl", nl), ("csv", csv), ("table", table)) if on
    ]
    if len(chosen) > 1:
        raise BadInputError(f"choose one of --{' and --'.join(chosen)}", chosen[1])
    return chosen[0] if chosen else "text"


def text_or_stdin(text: str) -> str:
    """The argument itself, or all of standard input for ``-``.

    Raises BadInputError for what is not UTF-8 text, or longer than any one memory may be.
    """
    if text != "-":
        return text
    data = sys.stdin.buffer.read(STDIN_LIMIT + 1)
    if len(data) > STDIN_LIMIT:
        raise BadInputError(f"standard input is larger than {STDIN_LIMIT:,} bytes", "-")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInputError(f"standard input is not UTF-8 text ({error.reason})", "-") from error


def key_value_pairs(values: tuple[str, ...], option: str) -> tuple[tuple[str, str], ...]:
    """``KEY=VALUE`` options as pairs. Raises BadInputError naming the one without ``=``."""
    pairs = []
    for value in values:
        key, equals, rest = value.partition("=")
        if not equals or not key:
            raise BadInputError(f"--{option} {value}: expected KEY=VALUE", option)
        pairs.append((key, rest))
    return tuple(pairs)
