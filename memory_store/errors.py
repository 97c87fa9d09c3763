"""What this package refuses to do, as one exception for each kind of mistake.

Boundary: messages are fit for a user and carry no key, query or text of a memory, and no password
of a database, though others' words and addresses are quoted in them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

_USER = re.compile(r"(postgres(?:ql)?:/{1,2}[^\s:/?#@]*):\S*@", re.IGNORECASE)
_PLACE = re.compile(r"[\w.\[\]-]+: ")
_OPTION = re.compile(r"([?&](?:ssl)?password=)[^\s&]*", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """A text with the passwords left out of every address of a PostgreSQL database in it."""
    if "postgres" not in text.lower():
        return text
    return _OPTION.sub(r"\1...", _USER.sub(r"\1@", text))


class MemoryStoreError(Exception):
    """Anything this package refuses to do, with a message fit for a user. Carries no secret."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*(without_passwords(a) if isinstance(a, str) else a for a in arguments))

    def __reduce__(self) -> tuple[Any, ...]:
        """As it is, whatever its kind takes to be made: it may come from another process."""
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[MemoryStoreError], arguments: tuple[Any, ...]) -> MemoryStoreError:
    error = kind.__new__(kind)
    error.args = arguments
    return error


class BadInputError(MemoryStoreError):
    """The caller's input is wrong. ``parameter`` names the culprit (CLI exit 2, HTTP 400).

    ``each`` has parameter and message of each thing that is wrong; ``parameter`` is the first's.
    """

    def __init__(self, message: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.each: tuple[tuple[str | None, str], ...] = ((parameter, str(self)),)


class SettingsError(BadInputError):
    """The settings of this machine cannot be understood. The message names their ``file`` without
    its folder: a server says it to everybody."""

    def __init__(self, file: Path, message: str, parameter: str = "config.yaml") -> None:
        super().__init__(f"{file.name}{message}", parameter)
        self.file = file


def together(errors: Sequence[BadInputError]) -> BadInputError:
    """Several errors as one, which names every culprit."""
    if len(errors) == 1:
        return errors[0]
    each = tuple(one for error in errors for one in error.each)
    error = BadInputError("; ".join(named(name or "", said) for name, said in each), each[0][0])
    error.each = each
    return error


def named(place: str, message: str) -> str:
    """A message that begins with the place it is about."""
    return f"{place}: {message}" if place and not _PLACE.match(message) else message


def checked_each(checks: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """What each check makes, by its name. Raises BadInputError for all that refuse."""
    made: dict[str, Any] = {}
    errors: list[BadInputError] = []
    for name, check in checks.items():
        try:
            made[name] = check()
        except BadInputError as error:
            errors.append(error)
    if errors:
        raise together(errors)
    return made


class OutsideLimitsError(BadInputError, AttributeError):
    """A view of some collections does not allow this: use the whole vault, if you may."""


class RowProblem(Struct, frozen=True):
    """What is wrong with one of many rows: its place from 0, the field (if any), a sentence."""

    row: int
    parameter: str | None
    message: str


class BadRowsError(BadInputError):
    """Some of the rows given at once are wrong, so none was written. ``problems`` says which; the
    message is about the first of them."""

    def __init__(self, problems: Sequence[RowProblem]) -> None:
        first = [one for one in problems if one.row == problems[0].row]
        said = together([BadInputError(one.message, one.parameter) for one in first])
        super().__init__(str(said), said.parameter)
        self.problems = tuple(problems)

    def sentences(self, *, alone: bool) -> tuple[list[str], str]:
        """Sentences that name row and field, and the first of the culprits.

        ``alone``: there was one row only, so that its place need not be named.
        """
        places, sentences = [], []
        for problem in self.problems:
            place = name = problem.parameter or "body"
            if not alone:
                place = f"memories[{problem.row}]" + ("" if name == "body" else f".{name}")
            places.append(place)
            sentences.append(named(place, problem.message.removeprefix(f"{name}: ")))
        return sentences, places[0]


class EditorError(MemoryStoreError):
    """Your editor cannot be started, or ended with an error: what it left is not taken."""


class NotFoundError(MemoryStoreError):
    """No memory, collection or file of that name (CLI exit 1, HTTP 404)."""


class DeletedError(NotFoundError):
    """The memory is in the trash, for a caller who may read it there."""

    def __init__(self, memory_id: str, deleted: str) -> None:
        super().__init__(f"memory {memory_id} was deleted on {deleted[:10]}, and is in the trash")
        self.memory_id = memory_id


class NotAVaultError(MemoryStoreError):
    """The file is missing, not SQLite, or holds no vault (CLI exit 1, HTTP 404)."""


class FormatError(MemoryStoreError):
    """The vault was written in a format this version cannot read."""


class WrongKeyError(MemoryStoreError):
    """The key, passphrase or recovery code opens no slot of this vault (CLI exit 3, HTTP 403)."""


class DeviceKeyError(WrongKeyError):
    """The passphrase also needs a device key, which this machine has not, or must not use."""


class LockedError(MemoryStoreError):
    """The vault is locked: no key was given, or it was locked again (CLI exit 3, HTTP 423)."""


class TamperedError(MemoryStoreError):
    """A sealed value failed authentication: changed, cut, or moved from another row."""


class ConflictError(MemoryStoreError):
    """The memory was changed by another writer since it was read (HTTP 409).

    ``ids`` names the memories that stand in the way, where they are known.
    """

    def __init__(self, message: str, ids: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.ids = tuple(ids)


class ReadOnlyError(MemoryStoreError):
    """Nothing can be written to this vault's file; the message says why (HTTP 403)."""


class StorageError(MemoryStoreError):
    """The vault's file could not be read or written: a full disk, a fault, damage (HTTP 503)."""


class DamagedError(StorageError):
    """A part of the vault's file cannot be read, whatever else is there (HTTP 503)."""


class AwayError(StorageError):
    """The database that a vault is in cannot be reached: it may be back soon (HTTP 503)."""


class BusyError(MemoryStoreError):
    """More searches are waiting than this server should take on (HTTP 429)."""


class SupersededError(MemoryStoreError):
    """What a search began on was replaced while it ran: a later one finds what is there now."""


class ExtraMissingError(MemoryStoreError):
    """A package is not installed that an extra of this one brings; the message names it."""


class ModelError(MemoryStoreError):
    """A model that something needs cannot be used. ``remedy`` is the command that mends it."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


class ModelUnavailableError(ModelError):
    """No model of that name on this machine, or none that can be loaded."""


class ModelMismatchError(ModelError):
    """The vault's vectors come from another model than the one loaded (see ``reindex``)."""
