"""The plugin's configuration, read once at start and checked before anything is opened.

Boundary: a secret may be *named* in a configuration file (``$env``, ``$file``, a key file's path)
and never written into it: Datasette 0.65 shows plugin configuration to everybody at
``/-/metadata.json``. Literal secrets stop the start, and the message does not repeat them.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasette.utils import StartupError

from . import compat

IDLE_MINUTES = 15.0
ABSOLUTE_HOURS = 12.0
KEY_BYTES = 32
SECRET_NAMES = ("passphrase", "key", "secret", "recovery-code", "password")
KNOWN = frozenset(
    {"key-file", "passphrase", "allow", "idle-minutes", "private-queries", "table-function"}
)
ROOT_ONLY: Mapping[str, Any] = {"id": "root"}


@dataclass(frozen=True)
class DatabaseSettings:
    """What the configuration says about one database.

    ``key_file`` and ``passphrase`` are references (a path, ``{"$env": …}``, ``{"$file": …}``);
    see :func:`resolved`. ``allow`` maps an action to a Datasette allow block.
    """

    database: str
    key_file: Any = None
    passphrase: Any = None
    allow: Mapping[str, Any] = field(default_factory=dict)
    idle_seconds: float = IDLE_MINUTES * 60
    private_queries: bool = False

    def allow_block(self, action: str) -> Any:
        """Who may do ``action``: what was configured, else the actor ``root``."""
        return self.allow.get(action, ROOT_ONLY)


def read(datasette: Any) -> dict[str, DatabaseSettings]:
    """Settings per database named in the configuration.

    Raises ``StartupError`` naming the option that is unknown, malformed or a literal secret.
    """
    databases = compat.configuration(datasette).get("databases") or {}
    if not isinstance(databases, Mapping):
        raise StartupError("datasette-hybrid: databases: a mapping of database names expected")
    return {str(name): _settings(str(name), options) for name, options in databases.items()}


def _settings(database: str, options: Any) -> DatabaseSettings:
    where = f"datasette-hybrid: databases: {database}"
    options = {} if options is None else options
    if not isinstance(options, Mapping):
        raise StartupError(f"{where}: a mapping of options expected")
    for name in SECRET_NAMES:
        if isinstance(options.get(name), str):
            raise StartupError(
                f"{where}: {name}: a secret must not be written into the configuration, which "
                f"Datasette shows to others. Use {name}: {{$env: VARIABLE}} or a key-file instead"
            )
    for name in options:
        if name not in KNOWN:
            raise StartupError(
                f"{where}: {name}: no such option (known: {', '.join(sorted(KNOWN))})"
            )
    _refuse_literal_key(where, options.get("key-file"))
    allow = options.get("allow") or {}
    if not isinstance(allow, Mapping) or set(allow) - set(compat.ACTIONS):
        raise StartupError(f"{where}: allow: expected allow blocks for {', '.join(compat.ACTIONS)}")
    return DatabaseSettings(
        database,
        key_file=options.get("key-file"),
        passphrase=options.get("passphrase"),
        allow=dict(allow),
        idle_seconds=_minutes(where, options.get("idle-minutes", IDLE_MINUTES)) * 60,
        private_queries=bool(options.get("private-queries", False)),
    )


def _refuse_literal_key(where: str, value: Any) -> None:
    """Somebody pasted the key itself where the path of its file belongs."""
    if not isinstance(value, str) or Path(value).exists():
        return
    try:
        looks_like_key = len(base64.b64decode(value.strip(), validate=True)) == KEY_BYTES
    except (binascii.Error, ValueError):
        return
    if looks_like_key:
        raise StartupError(f"{where}: key-file: this is a key, not the path of a key file")


def _minutes(where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise StartupError(f"{where}: idle-minutes: a number of minutes expected (0: never)")
    return float(value)


def resolved(reference: Any) -> str | None:
    """The text a reference stands for; ``None`` when its variable or file is missing."""
    if isinstance(reference, Mapping) and len(reference) == 1:
        ((kind, name),) = reference.items()
        if kind == "$env":
            return os.environ.get(str(name)) or None
        if kind == "$file":
            path = Path(str(name)).expanduser()
            return path.read_text("utf-8").strip("\r\n") if path.is_file() else None
    return reference if isinstance(reference, str) else None
