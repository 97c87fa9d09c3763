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
from typing import Any

import click

from memory_store.cli.failures import EXIT_FAILED, EXIT_INTERRUPTED, exit_code_of, said_plainly
from memory_store.cli.terminal import printable_line

COMMANDS = {
    "init": ("init", "Make a new encrypted vault."),
    "import": ("imports", "Import files and folders; unchanged ones are skipped."),
    "add": ("imports", "Add one memory and print its id."),
    "search": ("search", "Find memories by name and by meaning."),
    "ask": ("ask", "Answer a question out of your memories, with citations."),
    "get": ("memories", "Show one memory's whole text."),
    "list": ("memories", "List memories, newest first."),
    "edit": ("memories", "Change a memory."),
    "done": ("memories", "Mark memories as completed (a task becomes task_done)."),
    "reopen": ("memories", "Mark completed memories as open again (task_done becomes task)."),
    "publish": ("memories", "Copy a memory into another collection, once."),
    "delete": ("memories", "Delete memories from the vault for good."),
    "collections": ("collections", "List collections, make, set up or rename one; its members."),
    "topics": ("collections", "List topics with their counts, most frequent first."),
    "models": ("models", "List the models, and fetch one."),
    "doctor": ("maintenance", "Say what works, what is missing, and what mends it."),
    "stats": ("maintenance", "Show sizes and counts."),
    "verify": ("maintenance", "Authenticate every record."),
    "audit": ("maintenance", "Show the audit trail: who opened how many memories, and when."),
    "keys": ("keys", "Say what opens a vault, add and remove keys, rotate and share."),
    "settings": ("maintenance", "Show how a vault is set up, or change it."),
    "eval": ("evaluation", "Measure which ranking is best, with judgements of your own."),
    "calibrate": ("calibration", "Fit the scores of a reranking model to your own judgements."),
    "reindex": ("imports", "Add or renew the vectors and words of memories."),
    "export": ("backup", "Write every memory to a folder in PLAIN TEXT."),
    "backup": ("backup", "Copy the vault to a new file."),
}
"""Command name → (module of this package, its line in ``--help``), in the order shown there.

The line stands here so that ``--help`` imports no command. A command is the function of its name,
with ``_`` behind where Python has the name already."""

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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help) for name, (_, help) in COMMANDS.items()])

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


def _at_a_prompt(error: click.Abort) -> bool:
    """Whether Ctrl-C was the answer to a prompt, or came before a command was there."""
    return isinstance(error.__cause__ or error.__context__, KeyboardInterrupt)


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="datasette-hybrid", prog_name="memory-store")
def main() -> None:
    """Private notes and memories, encrypted at rest and as easy to search as public ones.

    \b
    memory-store init notes.db --key-file ~/.config/memory-store/notes.key
    memory-store import notes.db ~/notes
    memory-store search notes.db "when does the lease end"

    Exit codes: 0 done · 1 failed (not found, a file that could not be imported) ·
    2 bad input or usage · 3 wrong key, or locked · 130 stopped with Ctrl-C.
    """
