"""Who may search, read and change: the one checkpoint in front of every surface.

Boundary: everything is denied unless this module says otherwise. A grant comes from an allow
block (by default for the actor ``root``), from another plugin's permission rules, or from the
cookie of a browser session that unlocked the vault with its secret. It never comes from a vault
being open. Pages, JSON, SQL functions and table cells all read the same answer, which is worked
out once per request, before any SQL runs: asking Datasette from inside a SQL thread can deadlock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from memory_store.sql.functions import ALL_GRANTS, NO_GRANTS, Grants

from . import compat, configuration
from .sessions import session_unlock


@dataclass(frozen=True)
class Asker:
    """Who is behind the running request: what they may do, by database name."""

    grants: Mapping[str, Grants]

    def on(self, database: str | None) -> Grants:
        """Their grants on one database."""
        return self.grants.get(database, NO_GRANTS) if database else NO_GRANTS


NOBODY = Asker({})
asker: ContextVar[Asker] = ContextVar("hybrid_asker", default=NOBODY)
"""Set per request and reset after it; outside of a request nobody is asking."""


async def recognise(datasette: Any, request: Any, answers: Iterable[Any]) -> Any:
    """Settle on the request's actor and work out the grants. Returns the actor."""
    actor = await compat.first_actor(datasette, answers)
    if "/-/static" not in request.path:
        known = actor or request.scope.get("actor")
        asker.set(await resolve(datasette, request, known))
    return actor


async def resolve(datasette: Any, request: Any, actor: Any) -> Asker:
    """Grants of ``actor`` (and of the request's unlock cookies) on every vault."""
    from .vaults import vaults_of

    grants: dict[str, Grants] = {}
    for vault in vaults_of(datasette).all():
        if not await compat.may_view(datasette, actor, vault.database):
            continue
        if session_unlock(datasette, request, vault):
            grants[vault.database] = ALL_GRANTS
            continue
        search, decrypt, write = [
            await compat.allowed(datasette, actor, action, vault.database)
            for action in compat.ACTIONS
        ]
        grants[vault.database] = Grants(search, decrypt, write)
    return Asker(grants)


def configured(datasette: Any, actor: Any, action: str, database: str) -> bool:
    """Whether the plugin's own configuration lets ``actor`` do ``action`` on ``database``."""
    from .vaults import vaults_of

    settings = vaults_of(datasette).settings.get(database)
    settings = settings or configuration.DatabaseSettings(database)
    return compat.matches(actor, settings.allow_block(action))
