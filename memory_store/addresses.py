"""Addresses of vaults on a PostgreSQL server, and what of one may be shown.

Boundary: a password stands in no message, log, trail or ``repr``. One in an argument is refused,
for every user of a machine can read the arguments of its programs; in the environment it may stand.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

from memory_store.errors import BadInputError, without_passwords

SCHEMES = ("postgresql:", "postgres:")
VAULT = "vault"  # in the query of an address: which of a database's vaults is meant
USUAL_VAULT = "notes"
NOWHERE = "/dev/null/address"  # what a path of ours is to whom only looks at its parts: no file


def is_address(text: str | Path) -> bool:
    """Whether a text names a database on a server, and no file."""
    return isinstance(text, Address) or str(text).lower().startswith(SCHEMES)


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


class Address(type(Path())):  # type: ignore[misc]
    """Where a vault stands that is no file: every room hands it on as it does a path.

    As text it is ``postgresql://ann@db.example/work?vault=notes``, without the password; or its
    ``label``, where those who read messages need not know user and host. What is asked of a path
    about its file has the answers that let the storage decide.
    """

    text: str
    vault: str
    password: str
    label: str

    def __new__(cls, given: str, password: str = "", label: str = "") -> Address:
        made: Address = super().__new__(cls, NOWHERE)
        made.text, made.vault, found = _parsed(given)
        made.password, made.label = password or found, label
        return made

    def __init__(self, given: str, password: str = "", label: str = "") -> None:
        if sys.version_info >= (3, 12):
            super().__init__(NOWHERE)

    def __str__(self) -> str:
        return self.label or self.text

    def __fspath__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Address({self.text!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Address, (self.text, self.password, self.label)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def name(self) -> str:
        return str(self)

    @property
    def stem(self) -> str:
        """What it is called where a file is called by its name: by Datasette, by an assistant."""
        return self.vault

    @property
    def parent(self) -> Address:
        return self

    @property
    def parents(self) -> tuple[Address, ...]:
        return ()

    def resolve(self, strict: bool = False) -> Address:
        return self

    absolute = expanduser = resolve

    def exists(self, **_: Any) -> bool:
        """Only the server can say; whatever opens the vault asks it."""
        return True

    is_file = exists

    def is_dir(self, **_: Any) -> bool:
        return False

    def with_name(self, name: str) -> Address:
        raise BadInputError(f"{self} is no file: nothing lies beside it", "DB")

    __truediv__ = with_name

    def of_vault(self, name: str) -> Address:
        """The address of another vault of the same database."""
        options = _query({**self.options, VAULT: name})
        return Address(f"{self.text.partition('?')[0]}?{options}", self.password)

    @property
    def options(self) -> dict[str, str]:
        """What stands behind the ``?`` for the server's library."""
        return {k: v for k, v in parse_qsl(self.text.partition("?")[2]) if k != VAULT}

    @property
    def database(self) -> str:
        """The address for the server's library: without our own option, and without password."""
        before = self.text.partition("?")[0]
        return before + ("?" + _query(self.options) if self.options else "")


def _parsed(given: str) -> tuple[str, str, str]:
    """(the address without password, the name of the vault, the password)."""
    _, mark, rest = given.partition("://")
    if not mark or any(sign.isspace() or not sign.isprintable() for sign in given):
        raise BadInputError(
            "an address of a database is postgresql://USER@HOST/DATABASE, without blanks", "DB"
        )
    place, _, query = rest.partition("?")
    userinfo, at, host = place.rpartition("@")
    user, _, password = userinfo.partition(":")
    options = dict(parse_qsl(query))
    vault = options.pop(VAULT, USUAL_VAULT) or USUAL_VAULT
    found = options.pop("password", "") or unquote(password)
    if "sslpassword" in options:
        raise BadInputError("an address takes no sslpassword: use a key file without one", "DB")
    if vault != USUAL_VAULT:
        options[VAULT] = vault
    text = f"postgresql://{user}{at}{host}" + (f"?{_query(options)}" if options else "")
    return text, vault, found


def _query(options: dict[str, str]) -> str:
    return urlencode(options, safe="/")  # of a socket's folder


def vault_path(given: str | Path, otherwise: Callable[[str | Path], Path] = Path) -> Path:
    """Where a vault stands: an address of a database, or a path."""
    if isinstance(given, Address):
        return given
    text = str(given)
    return Address(text) if is_address(text) else otherwise(given)
