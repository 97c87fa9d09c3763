"""The plugin's configuration, read once at start and checked before anything is opened.

Boundary: a secret may be *named* in a configuration file (``$env``, ``$file``, a key file's path)
and never written into it: Datasette 0.65 shows plugin configuration to everybody at
``/-/metadata.json``. Literal secrets stop the start, and the message does not repeat them. Nor does
a traceback that shows local variables: what stops the start is raised where none of them is held.
"""

from __future__ import annotations

import base64
import binascii
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

import click
from datasette.utils import StartupError

from memory_store.errors import BadInputError
from memory_store.host import Address, is_address

from . import compat

IDLE_MINUTES = 15.0
ABSOLUTE_HOURS = 12.0
AUDIT_DAYS = 400.0  # a year, and the month in which it is looked back on
AUDIT_EVENTS = 100_000
SEARCH_PROCESSES = min(2, os.cpu_count() or 1)  # each holds the index, and a model, once more
MOST_PROCESSES = 64
KEY_BYTES = 32
REFERENCES = ("$env", "$file")
SECRET_NAMES = ("key", "secret", "recovery-code", "password")
OPTION = re.compile(r"[a-z_-]{1,24}")
TABLE_FUNCTION = ("auto", "off")  # auto: wherever this Python can have it
KNOWN = frozenset(
    {
        *("key-file", "passphrase", "allow", "idle-minutes", "private-queries", "table-function"),
        *("expander", "keyring", "absolute-hours", "audit", "search-processes"),
        *("background-embedding", "storage"),
    }
)
UNIX = "unix"  # a Unix socket, in the place of an address
Proxies = tuple["IPv4Network | IPv6Network | str", ...]
ROOT_ONLY: Mapping[str, Any] = {"id": "root"}


@dataclass(frozen=True)
class AuditSettings:
    """How long the audit trail is kept, and whether there is one."""

    kept: bool = True
    days: float = AUDIT_DAYS
    events: int = AUDIT_EVENTS


@dataclass(frozen=True)
class DatabaseSettings:
    """What the configuration says about one database.

    ``key_file`` and ``passphrase`` are references (a path, ``{"$env": …}``, ``{"$file": …}``);
    see :func:`resolved`. ``keyring``: the operating system's keyring holds a key. A time-out of 0
    seconds means never. ``allow`` maps an action to a Datasette allow block. ``expander`` is the
    language model that every search of this database may be expanded with. ``table_function``:
    SQL may select from ``hybrid_search()``, where this Python can have that. ``search_processes``:
    so many of them search, beside a server that stays; with 0 the server searches by itself.
    ``background_embedding``: such a server embeds what was imported in words while the vault is
    open; otherwise an upload embeds what it brings itself. ``storage``: where the vault stands that
    is no file.
    """

    database: str
    key_file: Any = None
    passphrase: Any = None
    allow: Mapping[str, Any] = field(default_factory=dict)
    keyring: bool = False
    idle_seconds: float = IDLE_MINUTES * 60
    absolute_seconds: float = ABSOLUTE_HOURS * 3600
    audit: AuditSettings = AuditSettings()
    private_queries: bool = False
    expander: str | None = None
    table_function: bool = True
    search_processes: int = SEARCH_PROCESSES
    background_embedding: bool = True
    storage: Address | None = None

    def allow_block(self, action: str) -> Any:
        """Who may do ``action``: what was configured, else the actor ``root``."""
        return self.allow.get(action, ROOT_ONLY)


class CannotStartError(StartupError, click.ClickException):  # type: ignore[misc]
    """Why Datasette cannot start: a line on the terminal. The 0.65 line would show a traceback."""


class _RefusedError(Exception):
    """What is wrong with the configuration. Its traceback's frames may hold a secret."""


def read(datasette: Any) -> dict[str, DatabaseSettings]:
    """Settings per database named in the configuration.

    Raises CannotStartError naming the option that is unknown, malformed or a literal secret.
    """
    try:
        return _read(datasette)
    except _RefusedError as refusal:
        problem = f"datasette-hybrid: databases: {refusal}"
    raise CannotStartError(problem)


def proxies(datasette: Any) -> Proxies:
    """The networks of the proxies whose ``X-Forwarded-For`` is believed; none unless configured.

    Raises CannotStartError.
    """
    given = compat.configuration(datasette).get("proxies") or []
    given = [given] if isinstance(given, str) else given
    found: list[Any] = []
    for one in given if isinstance(given, list) else [None]:
        try:
            found.append(UNIX if one == UNIX else ip_network(one if isinstance(one, str) else ""))
        except ValueError:
            raise CannotStartError(
                "datasette-hybrid: proxies: a list of addresses expected, such as [127.0.0.1, "
                "10.0.0.0/8], with unix for a proxy that uses a Unix socket"
            ) from None
    return tuple(found)


def _read(datasette: Any) -> dict[str, DatabaseSettings]:
    databases = compat.configuration(datasette).get("databases") or {}
    if not isinstance(databases, Mapping):
        raise _RefusedError("a mapping of database names expected")
    return {str(name): _settings(str(name), options) for name, options in databases.items()}


def _settings(database: str, options: Any) -> DatabaseSettings:
    options = {} if options is None else options
    if not isinstance(options, Mapping):
        raise _RefusedError(f"{database}: a mapping of options expected")
    for name in options:
        if name in SECRET_NAMES:
            raise _RefusedError(_no_literal(database, name))
        if name not in KNOWN:
            known = ", ".join(sorted(KNOWN))
            raise _RefusedError(f"{database}: {_shown(name)}: no such option (known: {known})")
    passphrase, key_file = options.get("passphrase"), options.get("key-file")
    if passphrase is not None and not _is_reference(passphrase):
        raise _RefusedError(_no_literal(database, "passphrase"))
    _check_key_file(database, key_file)
    allow = options.get("allow") or {}
    if not isinstance(allow, Mapping) or set(allow) - set(compat.ACTIONS):
        actions = ", ".join(compat.ACTIONS)
        raise _RefusedError(f"{database}: allow: expected allow blocks for {actions}")
    if _said(options.get("table-function", "auto")) not in TABLE_FUNCTION:
        raise _RefusedError(f"{database}: table-function: {' or '.join(TABLE_FUNCTION)} expected")
    return DatabaseSettings(
        database,
        key_file=key_file,
        passphrase=passphrase,
        allow=dict(allow),
        keyring=_switch(database, options, "keyring"),
        idle_seconds=_amount(database, options, "idle-minutes", IDLE_MINUTES) * 60,
        absolute_seconds=_amount(database, options, "absolute-hours", ABSOLUTE_HOURS) * 3600,
        audit=_audit(database, options.get("audit")),
        private_queries=bool(options.get("private-queries", False)),
        expander=_model(database, options.get("expander")),
        table_function=_said(options.get("table-function", "auto")) != "off",
        background_embedding=_switch(database, options, "background-embedding", usual=True),
        storage=_storage(database, options.get("storage")),
        search_processes=_processes(database, options.get("search-processes", SEARCH_PROCESSES)),
    )


def _storage(database: str, value: Any) -> Address | None:
    """The address of a database on a server, which goes by Datasette's name of it in messages.

    A reference alone is taken: it may hold a password, and hosts are nothing to show to visitors.
    """
    if value is None:
        return None
    if not _is_reference(value):
        raise _RefusedError(
            f"{database}: storage: {{$env: VARIABLE}} or {{$file: PATH}} expected, which holds the "
            "address of a PostgreSQL database. Datasette shows its configuration to others"
        )
    address = resolved(value)
    if address is None:
        raise _RefusedError(f"{database}: storage: its variable or file is missing")
    if not is_address(address):
        raise _RefusedError(
            f"{database}: storage: an address expected, such as postgresql://ann@db.example/work. "
            "A vault in a file is given to Datasette itself: datasette notes.db"
        )
    try:
        return Address(address, label=database)
    except BadInputError as error:
        raise _RefusedError(f"{database}: storage: {error}") from None


def _processes(database: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_PROCESSES:
        raise _RefusedError(
            f"{database}: search-processes: a number from 0 (search in Datasette itself) "
            f"to {MOST_PROCESSES} expected"
        )
    return value


def _model(database: str, value: Any) -> str | None:
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise _RefusedError(f"{database}: expander: the name of a language model expected")
    return value


def _no_literal(database: str, name: str) -> str:
    return (
        f"{database}: {name}: a secret must not be written into the configuration, which "
        "Datasette shows to others. Use passphrase: {$env: VARIABLE}, passphrase: {$file: PATH} "
        "or a key-file instead"
    )


def _shown(name: Any) -> str:
    """An option's name; not what may be a secret in a place where a name belongs."""
    return name if isinstance(name, str) and OPTION.fullmatch(name) else "an option"


def _is_reference(value: Any) -> bool:
    """Whether ``value`` is ``{"$env": NAME}`` or ``{"$file": PATH}`` and nothing besides."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return False
    ((kind, name),) = value.items()
    return kind in REFERENCES and isinstance(name, str) and bool(name)


def _said(value: Any) -> Any:
    """A word of YAML as it was written: ``off`` arrives as false."""
    return "off" if value is False else value


def _check_key_file(database: str, value: Any) -> None:
    """Only a path or a reference, and no key where the path of its file belongs."""
    if value is None or _is_reference(value):
        return
    if not isinstance(value, str):
        raise _RefusedError(f"{database}: key-file: a path, {{$env: VARIABLE}} or {{$file: PATH}}")
    try:
        looks_like_key = len(base64.b64decode(value.strip(), validate=True)) == KEY_BYTES
    except (binascii.Error, ValueError):
        return
    if looks_like_key and not Path(value).exists():
        raise _RefusedError(f"{database}: key-file: this is a key, not the path of a key file")


def _switch(database: str, options: Mapping[str, Any], name: str, *, usual: bool = False) -> bool:
    value = options.get(name, usual)
    if not isinstance(value, bool):
        raise _RefusedError(f"{database}: {_shown(name)}: true or false expected")
    return value


def _amount(
    database: str, options: Mapping[str, Any], name: str, usual: float, *, what: str = "(0: never)"
) -> float:
    value = options.get(name, usual)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < 0:
        raise _RefusedError(f"{database}: {name}: a number expected {what}")
    return float(value)


def _audit(database: str, value: Any) -> AuditSettings:
    """``off`` (also as ``false``, which YAML makes of it), or a mapping of limits."""
    if value is None or value is True:
        return AuditSettings()
    if _said(value) == "off":
        return AuditSettings(kept=False)
    if not isinstance(value, Mapping):
        raise _RefusedError(f"{database}: audit: off, or days and events expected")
    options = {_said(name): limit for name, limit in value.items()}
    if set(options) - {"days", "events", "off"}:
        raise _RefusedError(f"{database}: audit: only days, events and off can be set")
    days = _amount(database, options, "days", AUDIT_DAYS, what="of days (0: for ever)")
    events = _amount(database, options, "events", AUDIT_EVENTS, what="of events")
    if events < 1:
        raise _RefusedError(f"{database}: audit: events: 1 or more expected")
    return AuditSettings(not _switch(database, options, "off"), days, int(events))


def resolved(reference: Any) -> str | None:
    """The text a reference stands for; ``None`` when its variable or file cannot be read."""
    if isinstance(reference, Mapping) and len(reference) == 1:
        ((kind, name),) = reference.items()
        if kind == "$env":
            return os.environ.get(str(name)) or None
        if kind == "$file":
            try:
                return Path(str(name)).expanduser().read_text("utf-8").strip("\r\n") or None
            except (OSError, ValueError, RuntimeError):
                return None  # not there, not ours to read, not text, no such home folder
    return reference if isinstance(reference, str) else None
