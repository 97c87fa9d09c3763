"""How a failure is reported: one line naming the culprit, and an exit code to act on."""

from __future__ import annotations

import os
import sys

import click

from memory_store.errors import (
    BadInputError,
    FormatError,
    LockedError,
    MemoryStoreError,
    ModelError,
    SettingsError,
    TamperedError,
    WrongKeyError,
    without_passwords,
)

EXIT_FAILED = 1  # not found, not a vault, some files failed, the model is missing
EXIT_BAD_INPUT = 2  # the same code click gives for an unknown option
EXIT_NO_KEY = 3  # wrong key, no key, locked
EXIT_INTERRUPTED = 130  # Ctrl-C: 128 + SIGINT, as shells count it
OF_MEMORIES = ("memories.", "memory_bodies.")  # how an error begins that names a damaged memory
VERIFY = "memory-store verify names every damaged memory, and what to do"


def exit_code_of(error: BaseException) -> int:
    """The exit code for a failure that :func:`said_plainly` has words for."""
    if isinstance(error, click.ClickException):
        return error.exit_code
    if isinstance(error, BadInputError):
        return EXIT_BAD_INPUT
    if isinstance(error, (WrongKeyError, LockedError)):
        return EXIT_NO_KEY
    return EXIT_FAILED


def said_plainly(error: BaseException) -> str | None:
    """A message fit for a user, or ``None`` when the failure is a defect worth a traceback.

    No password of a database's address is in it, also where another package quoted the address.
    """
    message = _message(error)
    return None if message is None else without_passwords(message)


def _message(error: BaseException) -> str | None:
    if isinstance(error, click.UsageError) and error.ctx is not None:
        message = error.format_message().rstrip()
        ending = "" if message.endswith((".", "?", ")")) else "."
        return f"{message}{ending} Try '{error.ctx.command_path} --help'."
    if isinstance(error, click.ClickException):
        return error.format_message().rstrip()
    if isinstance(error, ModelError):
        message = str(error)
        return message if error.remedy in message else f"{message.rstrip('.')}. Try: {error.remedy}"
    if isinstance(error, SettingsError):
        return f"{error.file.parent}{os.sep}{error}"
    if isinstance(error, BadInputError):
        return _as_typed(str(error), error.parameter)
    if isinstance(error, TamperedError | FormatError) and str(error).startswith(OF_MEMORIES):
        return f"{error}; {VERIFY}"
    if isinstance(error, MemoryStoreError):
        return str(error)
    if isinstance(error, OSError):
        culprit = f"{error.filename}: " if error.filename else ""
        reason = error.strerror or str(error)
        return f"{culprit}{reason[:1].lower()}{reason[1:]}"
    sqlite = sys.modules.get("memory_store.sqlite")  # whichever sqlite3 module is in use
    if sqlite is not None and isinstance(error, sqlite.sqlite3.DatabaseError):
        return f"the database refused: {error}"
    return None


_ARGUMENTS = {name: name.upper() for name in ("query", "question", "text", "id", "slot")}
_ARGUMENTS |= {"q": "QUERY", "ids": "ID"}


def _as_typed(message: str, parameter: str | None) -> str:
    """``min_score: …`` as ``--min-score: …``: the culprit under the name it was typed with."""
    if parameter is None or not message.startswith(f"{parameter}: "):
        return message
    typed = _ARGUMENTS.get(parameter) or f"--{parameter.replace('_', '-')}"
    return f"{typed}{message[len(parameter) :]}".replace("valid_from", "--valid-from")
