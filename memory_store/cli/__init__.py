"""The ``memory-store`` command: one module per family of commands, each loaded when it is used.

Boundary: secrets never travel as argument values. A key comes from a file, the environment, the
OS keyring or a hidden prompt (see :mod:`memory_store.unlocking`). Errors name files, ids and
options, and never quote a secret.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from memory_store.cli.failures import EXIT_FAILED, EXIT_INTERRUPTED, exit_code_of, said_plainly
from memory_store.cli.terminal import printable_line

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

GROUPS = {
    "Everyday": {
        "search": ("search", "Find memories by name and by meaning."),
        "searches": ("searches", "Keep searches under a name: save, list, run; and their feeds."),
        "add": ("imports", "Add one memory and print its id."),
        "list": ("memories", "List memories, newest first."),
        "get": ("memories", "Show one memory's whole text."),
        "exists": ("words", 'Say whether memories hold a word. "No" is certain.'),
        "links": ("links", "Show what a memory links to, and what links to it."),
        "related": ("links", "Show the memories nearest to one, and why."),
        "edit": ("memories", "Change a memory."),
        "done": ("memories", "Mark memories as completed (a task becomes task_done)."),
        "reopen": ("memories", "Mark completed memories as open again (task_done becomes task)."),
        "delete": ("memories", "Delete memories. They stay in the trash, sealed, for 30 days."),
        "undo": ("trash", "Take back the last deletion or change made with your key."),
        "trash": ("trash", "List what was deleted or changed, put it back, or erase it."),
        "serve": ("serve", "Open the search page in your browser."),
        "ask": ("ask", "Answer a question out of your memories, with citations."),
        "code": ("code", "Read repositories: outlines, symbols, who depends on what."),
        "landscape": ("landscape", "Show which topics stand together, and what stands there."),
        "review": ("review", "Show what you may want to put in order: duplicates, what expired."),
        "topics": ("collections", "List topics with their counts, most frequent first."),
        "collections": (
            "collections",
            "List collections, make or change one; its members.",
        ),
    },
    "Bring and take": {
        "import": ("imports", "Import files and folders; unchanged ones are skipped."),
        "watch": ("watch", "Follow folders, and import what changes in them."),
        "sources": ("sources", "List what was imported from where; change or forget a source."),
        "reindex": ("imports", "Add or renew the vectors and words of memories."),
        "export": ("backup", "Write every memory to a folder in PLAIN TEXT."),
        "backup": ("backup", "Copy the vault to a new file."),
        "sync": ("sync", "Exchange changes with your other devices."),
        "copy": ("databases", "Copy the vault between files and PostgreSQL databases."),
        "publish": ("memories", "Copy a memory into another collection, once."),
    },
    "Vault and keys": {
        "init": ("init", "Make a new encrypted vault."),
        "keys": ("keys", "Say what opens a vault, add and remove keys, rotate and share."),
        "settings": ("maintenance", "Show how a vault is set up, or change it."),
        "models": ("models", "List the models, and fetch one."),
        "unlock": ("keeper", "Keep a vault open, so that commands ask for nothing."),
        "lock": ("keeper", "Lock what unlock keeps open."),
        "doctor": ("maintenance", "Say what works, what is missing, and what mends it."),
        "verify": ("maintenance", "Authenticate every record."),
        "audit": ("maintenance", "Show the audit trail: who opened how many memories, and when."),
        "stats": ("maintenance", "Show sizes and counts."),
        "storage": ("databases", "Print what a PostgreSQL database needs to hold vaults."),
        "shard": ("shard", "Hold a part of a large vault's index for the nodes that search it."),
    },
    "For programs": {
        "completion": ("completion", "Let the Tab key complete commands and names."),
        "mcp": ("mcp", "Give an assistant your memories, as an MCP server."),
        "eval": ("evaluation", "Measure which ranking is best, with judgements of your own."),
        "calibrate": ("calibration", "Fit the scores of a reranking model to your own judgements."),
    },
}
"""Heading → command name → (module of this package, its line), in the order of ``--help``.

The line stands here so that ``--help`` imports no command. A command is the function of its name,
with ``_`` behind where Python has the name already."""

COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}
SHORT = {"s": "search"}  # beside every beginning that only one command has

ONE_BLAS_THREAD = ("OPENBLAS_NUM_THREADS", "1")
"""Read by NumPy when it is imported: to start threads for matrices as small as a command's, and to
let them wait for work, takes a third of a search's time (40 ms)."""


class Interrupted(click.Abort):
    """Ctrl-C, which is not a question that was answered with no."""


class Commands(click.Group):
    """A group that imports a command's module only when that command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"memory_store.cli.{COMMANDS[cmd_name][0]}")
        command = getattr(module, f"{cmd_name}_" if hasattr(module, f"{cmd_name}_") else cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Take a short name, or a beginning, for the command that is meant."""
        if ctx.resilient_parsing and args[0] not in COMMANDS:  # for the Tab key: nothing to say
            return None, None, args
        if self.get_command(ctx, args[0]) is None:
            args = [whole_name(args[0]), *args[1:]]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, group in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, help) for name, (_, help) in group.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin so, without importing them."""
        from click.shell_completion import CompletionItem

        begun = [
            (name, line) for name, (_, line) in COMMANDS.items() if name.startswith(incomplete)
        ]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=line) for name, line in begun), *options]

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; click itself would print an empty line on Ctrl-C."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted from None

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run; in stand-alone mode every refusal becomes one ``Error: …`` line and an exit code."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        os.environ.setdefault(*ONE_BLAS_THREAD)
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(2)
        except click.Abort as error:
            stopped = isinstance(error, Interrupted) or _at_a_prompt(error)
            if stopped and sys.stderr.isatty():
                click.echo(err=True)  # the terminal has written ^C
            click.echo("Stopped." if stopped else "Aborted.", err=True)
            sys.exit(EXIT_INTERRUPTED if stopped else EXIT_FAILED)
        except Exception as error:
            message = said_plainly(error)
            if message is None:
                raise
            click.echo(f"Error: {printable_line(message)}", err=True)
            sys.exit(exit_code_of(error))
        sys.exit(code if isinstance(code, int) else 0)


def whole_name(given: str) -> str:
    """The command that ``given`` begins. Raises UsageError, with those it may mean."""
    begun = [SHORT[given]] if given in SHORT else [n for n in COMMANDS if n.startswith(given)]
    shortest = min(begun, key=len, default="")
    if begun and all(name.startswith(shortest) for name in begun):  # search, before searches
        return shortest
    from difflib import get_close_matches

    *others, last = begun or get_close_matches(given, COMMANDS) or [""]
    meant = f"{', '.join(others)} or {last}" if others else last
    hint = f" Did you mean {meant}?" if meant else ""
    raise click.UsageError(f"There is no command {given!r}.{hint} See memory-store --help.")


def _at_a_prompt(error: click.Abort) -> bool:
    """Whether Ctrl-C was the answer to a prompt, or came before a command was there."""
    return isinstance(error.__cause__ or error.__context__, KeyboardInterrupt)


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="datasette-hybrid", prog_name="memory-store")
@click.option("--no-keeper", is_flag=True, help="Open the vault here, though unlock keeps it open")
def main(no_keeper: bool) -> None:
    """Private notes and memories, encrypted at rest and as easy to search as public ones.

    \b
    memory-store init
    memory-store import ~/notes
    memory-store search when does the lease end

    Name another vault as first argument: memory-store search work.db "lease". Without it, it is
    the one of MEMORY_STORE_DB, else the one that init made in your data folder.

    Exit codes: 0 done · 1 failed (not found, a file that could not be imported) ·
    2 bad input or usage · 3 wrong key, or locked · 130 stopped with Ctrl-C.
    """
