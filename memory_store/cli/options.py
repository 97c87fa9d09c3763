"""The options that several commands share, and the vault they open.

Boundary: a key reaches a command as a file path or a flag, never as an argument value. Prompts
do not echo. The vault is locked again when the command ends, however it ends.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource
from msgspec import Struct, field

from memory_store.cli.terminal import HereOnly, is_elsewhere, printable_line
from memory_store.cli.vault_argument import (
    EVERYDAY,
    FILTERS,
    KEY,
    OUTPUT,
    PATTERNS,
    RANKING,
    HeadedOption,
    VaultCommand,
    database_argument,
)
from memory_store.configuration import typed_vault
from memory_store.errors import (
    BadInputError,
    DeletedError,
    DeviceKeyError,
    LockedError,
    NotFoundError,
    WrongKeyError,
)
from memory_store.paths import KEY_FILE_VARIABLE, named_as
from memory_store.records import OPTIONS, TYPES

if TYPE_CHECKING:
    from memory_store.store import MemoryStore

Function = TypeVar("Function", bound=Callable[..., Any])

TYPE_NAMES = ", ".join(TYPES)
STDIN_LIMIT = 50_000_000  # bytes: the same as for a file on import


def vault_command(
    name: str | None = None, *, group: Any = click, cls: type[VaultCommand] = VaultCommand
) -> Callable[[Callable[..., None]], click.Command]:
    """A command of an opened vault: DB first, the key options last; it gets the ``store``.

    ``group`` is what it is a sub-command of.
    """

    def made(function: Callable[..., None]) -> click.Command:
        command: click.Command = group.command(name, cls=cls)(
            database_argument(with_store(function))
        )
        database, *keys = command.params[:3]
        command.params = [database, *command.params[3:], *keys]
        return command

    return made


def key_file_option(
    help: str = "File with the key (default: MEMORY_STORE_KEY_FILE)",
    name: str = "--key-file",
    heading: str = EVERYDAY,
) -> Callable[[Function], Function]:
    """``--key-file``: a path, never the key."""
    path = click.Path(path_type=Path)
    return click.option(name, type=path, help=help, cls=HeadedOption, heading=heading)


def passphrase_option(help: str, heading: str = EVERYDAY) -> Callable[[Function], Function]:
    """``--passphrase``: a flag, never the passphrase."""
    return click.option("--passphrase", is_flag=True, help=help, cls=HeadedOption, heading=heading)


def device_key_option(default: bool | None, usual: str) -> Callable[[Function], Function]:
    """``--device-key/--no-device-key``, with the words for its default."""
    words = (
        f"Whether the passphrase also needs a key that is kept on this machine (default: {usual})"
    )
    return click.option("--device-key/--no-device-key", default=default, help=words)


def key_options(function: Function) -> Function:
    """``--key-file`` and ``--passphrase``: where the key comes from."""
    asks = "Ask for the passphrase (or take it from MEMORY_STORE_PASSPHRASE)"
    return key_file_option(heading=KEY)(passphrase_option(asks, KEY)(function))


def with_store(function: Callable[..., None]) -> Callable[..., None]:
    """Give the command DB and the key options, and call it with the opened ``store`` first."""

    @functools.wraps(function)
    def command(database: Path, key_file: Path | None, passphrase: bool, **parameters: Any) -> None:
        _refuse_bytes(parameters)
        with unlocked(database, key_file, passphrase) as store:
            if (warning := store.first_warning()) is not None:
                click.echo(f"Warning: {printable_line(warning)}.", err=True)
            if store.keys.lacks_device():
                click.echo(
                    "Note: this machine lacks the device key that the vault's passphrase needs. "
                    f"memory-store keys device restore{typed_vault(store.path)} puts it here.",
                    err=True,
                )
            try:
                function(store, **parameters)
            except DeletedError as error:
                remedy = f"memory-store trash restore{typed_vault(store.path)} {error.memory_id}"
                raise NotFoundError(f"{error}. To put it back: {remedy}") from None

    return key_options(command)


def _refuse_bytes(parameters: Mapping[str, Any]) -> None:
    """Refuse text arguments that are not UTF-8: Python hands such bytes on as lone surrogates.

    Paths may hold any bytes; they are ``Path`` here, not ``str``.
    """
    for name, given in parameters.items():
        for value in given if isinstance(given, tuple) else (given,):
            if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
                raise BadInputError(f"{name}: this is not valid UTF-8 text", name)


Serving = Callable[..., None]
"""Serves an assistant on two streams that it is given, until the first one ends."""


class Steps(Struct, frozen=True):
    """Work that goes on beside other commands. ``run`` is given what takes the name of each step
    with what it says, and what says whether to stop."""

    run: Callable[[Callable[..., None], Callable[[], bool]], None]


class Lent(Struct, frozen=True):
    """An open vault that commands are done on one after another: see ``keeper_process``.

    ``key_files`` are those that a command may name and mean the key that it was opened with.
    ``later`` is what a command leaves to be done when it has ended, and others may go on. ``embed``
    begins to embed in the background what has no vectors.
    """

    store: Any
    key_files: tuple[str, ...]
    later: list[Serving | Steps] = field(default_factory=list)
    embed: Callable[[], None] | None = None

    def to(
        self, database: Path, key_file: Path | None, passphrase: bool
    ) -> AbstractContextManager[MemoryStore]:
        """The store, to be left open. Raises HereOnly where another vault or key is meant."""
        other_key = key_file is not None and os.path.realpath(key_file) not in self.key_files
        if passphrase or other_key or database.resolve() != self.store.path:
            raise HereOnly("vault")
        named_as.set(database)
        return nullcontext(self.store)


def go_on_beside() -> list[Serving | Steps] | None:
    """Where a command leaves what goes on beside others; ``None`` where it does all itself."""
    lent = click.get_current_context().find_object(Lent)
    return lent.later if lent is not None and is_elsewhere() else None


def unlocked(
    database: Path, key_file: Path | None, passphrase: bool
) -> AbstractContextManager[MemoryStore]:
    """The vault, opened by the key lookup order of :mod:`memory_store.unlocking`."""
    from memory_store.key_lookup import PASSPHRASE_VARIABLE
    from memory_store.unlocking import open_store

    lent = click.get_current_context().find_object(Lent)
    if lent is not None:
        return lent.to(database, key_file, passphrase)

    if passphrase and not os.environ.get(PASSPHRASE_VARIABLE) and not at_terminal():
        raise LockedError(
            f"{database} is locked: --passphrase needs a terminal, or set {PASSPHRASE_VARIABLE}"
        )
    named = [one for one in (KEY_FILE_VARIABLE, PASSPHRASE_VARIABLE) if os.environ.get(one)]
    tries = count()

    def ask() -> str:
        while named:  # said once, and not of what fits after all
            click.echo(f"{named.pop(0)} does not open it.", err=True)
        again = next(tries) > 0
        if not again and kept_open(database):
            click.echo(f"{KEPT_FOR_OTHERS}.", err=True)
        return asked_passphrase(database, again=again)

    asked = ask if at_terminal() else None
    try:
        return open_store(database, key_file=key_file, ask_passphrase=asked, refused=refused)
    except LockedError as error:
        if asked is None and kept_open(database):
            raise LockedError(f"{error}. {KEPT_FOR_OTHERS}") from None
        raise


KEPT_FOR_OTHERS = "What unlock keeps open is for everyday commands: this one needs the key itself"


def kept_open(database: Path) -> bool:
    """Whether a keeper has the vault open, for other commands than one that asks this."""
    from memory_store.keeper import address, client

    try:
        there = address.SUPPORTED and address.socket_of(str(database), address.folder())
    except OSError:  # a folder that cannot be trusted
        return False
    connection = client.connected_to(there) if there and os.path.exists(there) else None
    if connection is not None:
        connection.close()
    return connection is not None


def refused(error: WrongKeyError) -> None:
    """Say that what was typed opens nothing, before it is asked for again."""
    kept_out = isinstance(error, DeviceKeyError)
    words = "not the recovery code" if kept_out else "neither the passphrase nor the recovery code"
    click.echo(f"That is {words}. Try again; Ctrl-C stops.", err=True)


class Group(click.Group):
    """A group whose help lists its commands with whole sentences."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, one.get_short_help_str(limit=1_000)) for name, one in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows))


class Listing(Group):
    """A group that lists what there is where no command is named, or a vault alone."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from memory_store.vault.storage.schema import is_vault

        if not args or (args[0] not in self.commands and is_vault(args[0])):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def at_terminal() -> bool:
    """Whether you are there to answer a prompt."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def asked_passphrase(database: Path, *, again: bool = False) -> str:
    """The passphrase or recovery code typed at a hidden prompt (on stderr: stdout stays data).

    Where a passphrase opens nothing here, that is said before, but not when asked ``again``.
    """
    from memory_store.actions.key_devices import passphrase_refused

    refusal = passphrase_refused(database)
    if refusal is not None and not again:
        click.echo(f"Note: {printable_line(refusal)}.", err=True)
    wanted = "Passphrase or recovery code" if refusal is None else "Recovery code"
    words = f"{wanted} for {database.name}"
    answer: str = click.prompt(words, hide_input=True, err=True, default="", show_default=False)
    return answer


def new_passphrase(found: str | None, variable: str) -> str:
    """The one ``found`` in the environment, or one that is typed twice. Raises BadInputError."""
    if found:
        return found
    if not at_terminal():
        raise BadInputError(
            f"--passphrase needs a terminal to ask at; or set {variable}", "passphrase"
        )
    typed: str = click.prompt(
        "New passphrase", hide_input=True, confirmation_prompt="Once more", err=True
    )
    return typed


SCOPE = (
    *("collection", "type", "topic", "status", "since", "until"),
    *("as_of", "superseded", "by"),
)
"""The filters of ``search`` and ``list``."""
_HEADED = {
    FILTERS: (*SCOPE, "like", "meta", "min_score", "narrow"),
    PATTERNS: ("language", "all"),
    RANKING: ("recipe", "reranker", "rerank", "expander", "expand", "sealed", "budget_ms"),
    OUTPUT: ("budget", "continue"),
}
_HEADING_OF = {name: heading for heading, names in _HEADED.items() for name in names}


def request_options(*names: str) -> Callable[[Function], Function]:
    """Options of a search, by name: in the order that a command's help shows them."""

    def with_options(function: Function) -> Function:
        for name in reversed(names):
            function = request_option(name)(function)
        return function

    return with_options


def completed_by(name: str) -> Any:
    """A function of :mod:`memory_store.cli.completion`, imported when the Tab key is pressed."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
        from memory_store.cli import completion

        return getattr(completion, name)(ctx, param, incomplete)

    return complete


_COMPLETED = {"collection": "collection_names", "topic": "topic_names", "like": "memory_ids"}


def request_option(name: str, **other: Any) -> Callable[[Function], Function]:
    """One field of :class:`SearchRequest` as an option; ``other`` settings replace its own.

    A field that is on by itself becomes ``--no-…``.
    """
    option = OPTIONS[name]
    dashed = name.replace("_", "-")
    settings: dict[str, Any] = {"help": option.description, "metavar": option.value}
    if name in _COMPLETED:
        settings["shell_complete"] = completed_by(_COMPLETED[name])
    if name in _HEADING_OF:
        settings |= {"cls": HeadedOption, "heading": _HEADING_OF[name]}
    if option.off:
        settings |= {"is_flag": True, "help": option.off, "metavar": None}
        return click.option(f"--no-{dashed}", **settings)
    if option.kind is bool:
        settings["is_flag"] = True
    elif option.several:
        settings |= {"multiple": True, "help": f"{option.description} (repeatable)"}
    else:
        settings["type"] = click.Choice(option.choices) if option.choices else option.kind
        settings |= {"default": option.default, "show_default": option.default is not None}
    short = ("-n",) if name == "limit" else ()
    return click.option(*short, f"--{dashed}", option.field, **settings | other)


SHORT_MODES = {"literal": "literal", "semantic": "hybrid", "structural": "structural"}
"""A flag, and the mode that it is short for."""


def mode_options(function: Callable[..., None]) -> Callable[..., None]:
    """``--mode``, and flags that are short for some of its values; the command gets ``mode``."""

    @functools.wraps(function)
    def command(*given: Any, **parameters: Any) -> None:
        for flag in SHORT_MODES:
            del parameters[f"mode_{flag}"]
        parameters["mode"] = chosen_mode(click.get_current_context())
        function(*given, **parameters)

    for flag, meant in reversed(SHORT_MODES.items()):
        help = f"Short for --mode {meant}" + (": by words and meaning" if meant == "hybrid" else "")
        command = click.option(f"--{flag}", f"mode_{flag}", is_flag=True, help=help)(command)
    return request_option("mode")(command)


def chosen_mode(ctx: click.Context) -> str:
    """The mode that ``--mode`` and its short forms say. Raises UsageError where they disagree."""
    named: str = ctx.params["mode"]
    flags = [name for name in SHORT_MODES if ctx.params[f"mode_{name}"]]
    if not flags:
        return named
    if len(flags) > 1:
        raise click.UsageError(f"choose one of --{' and --'.join(flags)}")
    flag, meant = flags[0], SHORT_MODES[flags[0]]
    if named != meant and ctx.get_parameter_source("mode") is ParameterSource.COMMANDLINE:
        raise click.UsageError(
            f"--{flag} is short for --mode {meant}: leave out --mode {named} or --{flag}"
        )
    return meant


FORMS = {
    "nl": "One JSON object per line",
    "csv": "CSV with a header line",
    "table": "A plain text table",
}


def json_option(help: str) -> Callable[[Function], Function]:
    """``--json`` with the words for what this command prints."""
    return click.option("--json", "as_json", is_flag=True, help=help)


def row_options(json: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """``--json``, in words of its own, and ``--nl --csv --table``, as in sqlite-utils.

    The command gets ``form``: ``json nl csv table`` or ``text``. Two at once are refused.
    """

    def with_options(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def command(store: MemoryStore, **parameters: Any) -> None:
            chosen = [form for form in ("json", *FORMS) if parameters.pop(f"as_{form}")]
            if len(chosen) > 1:
                raise BadInputError(f"choose one of --{' and --'.join(chosen)}", chosen[1])
            function(store, form=chosen[0] if chosen else "text", **parameters)

        for form, help in reversed({"json": json, **FORMS}.items()):
            settings: dict[str, Any] = (
                {} if form == "json" else {"cls": HeadedOption, "heading": OUTPUT}
            )
            flag = click.option(f"--{form}", f"as_{form}", is_flag=True, help=help, **settings)
            command = flag(command)
        return command

    return with_options


def judgement_options(
    *, stdin: bool = False, required: bool = True
) -> Callable[[Function], Function]:
    """``--queries`` and ``--qrels``: your own judgements; ``-`` too if ``stdin``."""
    file = click.Path(exists=True, dir_okay=False, allow_dash=stdin, path_type=Path)
    words = {
        "--qrels": "Query, ref or id, and grade, apart by tabs; or TREC's four columns",
        "--queries": "JSON lines with id and text",
    }

    def judged(function: Function) -> Function:
        for name, help in words.items():
            option = click.option(name, required=required, metavar="FILE", type=file, help=help)
            function = option(function)
        return function

    return judged


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
