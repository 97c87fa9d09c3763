"""Addresses of vaults on a PostgreSQL server, and what of one may be shown.

Boundary: a password stands in no message, log, trail or ``repr``. One in an argument is refused,
for every user of a machine can read the arguments of its programs.
"""

from __future__ import annotations

from memory_store.errors import BadInputError, without_passwords

SCHEMES = ("postgresql:", "postgres:")


def is_address(text: str) -> bool:
    """Whether a text names a database on a server, and no file."""
    return text.lower().startswith(SCHEMES)


def refuse_password(argument: str) -> None:
    """Raise BadInputError where an argument is an address that holds a password.

    The message quotes nothing of it: who can say where a password with an @ ends?
    """
    user = argument.partition("//")[2].rpartition("@")[0]
    if is_address(argument) and (":" in user or without_passwords(argument) != argument):
        raise BadInputError(
            "a password stands in the address of a database, where other users of this machine "
            "can read it: change it, and give the address without it. PGPASSWORD and ~/.pgpass "
            "are places for it",
            "DB",
        )
