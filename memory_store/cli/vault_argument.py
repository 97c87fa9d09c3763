"""DB, the first argument of nearly every command, which may be left out.

Left out, it is the file that ``MEMORY_STORE_DB`` names, else the vault in your data folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from memory_store.addresses import is_address, refuse_password, vault_path

Function = TypeVar("Function", bound=Callable[..., Any])

SUFFIX = ".db"
TYPED = "memory-store: the words after the command"


class VaultPath(click.ParamType[Path]):
    """A path to a vault's file, or the address of a database that holds one."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        from memory_store.configuration import default_vault

        usual = default_vault()  # an address in the environment may hold a password
        if str(value) == str(usual):
            return usual
        refuse_password(str(value))
        return vault_path(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        return click.Path().shell_complete(ctx, param, incomplete)


def database_argument(function: Function) -> Function:
    """DB, the first argument of a :class:`VaultCommand`."""
    return click.argument("database", metavar="[DB]", type=VaultPath())(function)


EVERYDAY, FILTERS, PATTERNS = "Options", "Filters", "Patterns"
RANKING, OUTPUT, KEY = "Ranking", "Output", "Key"
HEADINGS = (EVERYDAY, FILTERS, PATTERNS, RANKING, OUTPUT, KEY)
"""Of a command's options, in the order of its help: those of every day have no other heading."""


class HeadedOption(click.Option):
    """An option that a command's help shows under a heading of its own."""

    def __init__(self, *names: Any, heading: str, **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.heading = heading


class VaultCommand(click.Command):
    """A command whose first argument, DB, may be left out.

    The first argument is DB where it is a vault, where there are more arguments than the command
    takes besides, and where it ends in ``.db``. A ``.db`` file that is no vault is left to a
    command that ``takes_files`` of yours.
    """

    takes_files = False
    makes_vault = False

    def invoke(self, ctx: click.Context) -> Any:
        database = ctx.params.get("database")
        if isinstance(database, Path) and not self.makes_vault and not database.exists():
            from memory_store.configuration import typed_vault
            from memory_store.errors import NotAVaultError

            name = typed_vault(database)
            missing = f"{database}: no such file" if name else "You have no vault yet"
            raise NotAVaultError(f"{missing}. To make one: memory-store init{name}")
        return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing and args and args[-1].startswith("-"):
            args = args[:-1]  # its value is still to come: the Tab key was pressed for it
        ctx.meta.setdefault(TYPED, list(args))
        given = self._given(ctx, args)
        if self._acts_on_a_vault(given):  # sources show notes.db 1, as other commands have it
            args = [given[1], *args[: (at := args.index(given[1]))], *args[at + 1 :]]
            given = [given[1], given[0], *given[2:]]
        if self.needs_none(args):
            args = [os.devnull, *args]
        elif not self._names_a_vault(given):
            from memory_store.configuration import default_vault

            args = [str(default_vault()), *args]
        return super().parse_args(ctx, args)

    def needs_none(self, args: list[str]) -> bool:
        """Whether these arguments ask for something else than a vault: then none of them is DB."""
        return False

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                records[getattr(parameter, "heading", EVERYDAY)].append(record)
        for heading, rows in records.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def _given(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments that are no options, as click finds them."""
        options = [one for one in self.params if isinstance(one, click.Option)]
        every = click.Argument(["every"], nargs=-1)
        parser = click.Command(self.name, params=[*options, every]).make_parser(ctx)
        try:
            found, _, _ = parser.parse_args(list(args))
        except click.UsageError:  # raised again, in its own words, where it is parsed in full
            return []
        every_one = found.get("every")
        return list(every_one) if isinstance(every_one, (list, tuple)) else []

    def _acts_on_a_vault(self, given: list[str]) -> bool:
        """Whether DB stands behind a word that says what to do, and not before it."""
        words = [
            word
            for one in self.params[1:2]
            if isinstance(one.type, click.Choice)
            for word in one.type.choices
        ]
        return len(given) > 1 and given[0] in words and names_a_vault(given[1])

    def _names_a_vault(self, given: list[str]) -> bool:
        if given and is_address(given[0]):
            return True
        others = [one for one in self.params if isinstance(one, click.Argument)][1:]
        needed = sum(one.nargs if one.nargs > 0 else 1 for one in others if one.required)
        if len(given) <= needed:
            return bool(given) and names_a_vault(given[0])
        if not others or (len(given) > len(others) and all(one.nargs == 1 for one in others)):
            return True
        if not given[0].endswith(SUFFIX):
            return names_a_vault(given[0])
        return not self.takes_files or not os.path.exists(given[0]) or names_a_vault(given[0])


def names_a_vault(name: str) -> bool:
    """Whether there is a file of that name, and it holds a vault."""
    from memory_store.errors import StorageError
    from memory_store.vault.storage.schema import is_vault

    try:
        return os.path.isfile(name) and is_vault(name)
    except StorageError:  # a damaged one, or one that is busy: the command says which
        return True
