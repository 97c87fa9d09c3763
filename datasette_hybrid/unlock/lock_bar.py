"""The line below every page of an open vault: when it locks itself, and the button that locks it.

Boundary: shown only to actors with some grant on the vault; the button to those
of them who may lock it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from datasette.utils import tilde_decode

from memory_store.errors import NotAVaultError

from .. import compat
from ..permissions.asker import asker
from ..vaults.registry import vaults_of
from ..vaults.vault import Vault

MINUTE, HOUR = 60, 3600  # seconds


@dataclass(frozen=True)
class LockBar:
    """Where the button posts to, and the sentence beside it, which may be empty.

    ``action`` is empty for who may not lock it. ``links`` lead to what else the asker may do with
    the vault as a whole. ``session``: this browser has unlocked it, and may end that alone.
    """

    database: str
    action: str
    sentence: str
    links: tuple[tuple[str, str], ...]
    session: bool = False


def may_lock(database: str) -> bool:
    """Whether the asker may lock a vault, which ends everybody's work with it.

    A browser that unlocked it with its secret may do everything on the database.
    """
    return not asker.get().at(database).isdisjoint((compat.WRITE, compat.AUDIT))


def lockbar(datasette: Any, request: Any) -> LockBar | None:
    """The line for a page; ``None`` where there is nothing that the asker could lock."""
    vault = _open_vault(datasette, request)
    grants = vault.offered(asker.get().on(vault.database)) if vault is not None else None
    if vault is None or not grants:
        return None
    path = f"{datasette.urls.database(vault.database)}/-/hybrid"
    offered = (("Import", "import", grants.write), ("Audit trail", "audit", grants.audit))
    links = tuple((label, f"{path}/{below}") for label, below, granted in offered if granted)
    action = f"{path}/lock" if may_lock(vault.database) else ""
    session = vault.database in asker.get().sessions
    return LockBar(vault.database, action, sentence(vault.closing()), links, session)


def sentence(closing: tuple[float | None, float | None] | None) -> str:
    """When the vault locks itself, in words; empty when it does not."""
    if closing is None:
        return ""
    idle, left = closing
    parts = [] if idle is None else [f"in {_span(idle)} of no use"]
    if left is not None:
        parts.append(f"in {_span(left)}{' in any case' if parts else ''}")
    return f"Locks {', and '.join(parts)}." if parts else "Stays unlocked until it is locked."


def _span(seconds: float) -> str:
    """A length of time in its largest fitting unit, rounded to the nearest."""
    if seconds < MINUTE:
        return "less than a minute"
    unit, name = (HOUR, "hour") if seconds >= 2 * HOUR else (MINUTE, "minute")
    count = round(seconds / unit)
    return f"{count} {name}{'' if count == 1 else 's'}"


def _open_vault(datasette: Any, request: Any) -> Vault | None:
    route = (request.url_vars or {}).get("database")
    if route is None:
        return None
    try:
        vault = vaults_of(datasette).of(datasette.get_database(route=tilde_decode(route)).name)
    except (KeyError, NotAVaultError):
        return None
    return vault if vault.is_open else None
