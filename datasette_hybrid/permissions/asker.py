"""Who is behind the running request, and what they may do; :mod:`.grants` works it out.

Boundary: outside of a request nothing is granted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from typing import Any

from msgspec import Struct, field

from memory_store.access import NO_GRANTS, Grants


class Asker(Struct, frozen=True, eq=False):
    """Who is behind the running request: what they may do, by database name. One per request.

    ``actor_id`` is the id of Datasette's actor as text. ``databases`` holds the actions that they
    may do on a database as a whole, whether or not its vault is open. ``sessions`` are those that
    this browser has unlocked; ``path`` is the request's. ``again`` recognises it anew. ``visible``
    says of each database with a vault that was asked about whether ``actor`` may see it; ``others``
    what was found meanwhile of other actors, by actor and database, and of other databases.
    ``more`` asks about one of the latter, in ``loop``; without it there are none to ask about.
    """

    grants: Mapping[str, Grants]
    actor_id: str | None = None
    databases: Mapping[str, frozenset[str]] = field(default_factory=dict)
    sessions: frozenset[str] = frozenset()
    path: str = ""
    actor: Any = None
    visible: Mapping[str, bool] = field(default_factory=dict)
    again: Callable[[], Coroutine[Any, Any, Asker]] | None = None
    others: dict[tuple[str, str], Asker] = field(default_factory=dict)
    more: Callable[[str], Coroutine[Any, Any, Asker]] | None = None
    loop: asyncio.AbstractEventLoop | None = None

    def on(self, database: str | None) -> Grants:
        """Their grants on one database."""
        return self.grants.get(database, NO_GRANTS) if database else NO_GRANTS

    def knows(self, database: str) -> bool:
        """Whether all that there is to know of a database was asked."""
        return self.more is None or database in self.visible

    def at(self, database: str) -> frozenset[str]:
        """The actions they may do on a database as a whole, so also in collections yet to come."""
        return self.databases.get(database, frozenset())


NO_ASKER = Asker({})
asker: ContextVar[Asker] = ContextVar("hybrid_asker", default=NO_ASKER)
"""Set per request and reset after it; outside of a request there is no asker."""
