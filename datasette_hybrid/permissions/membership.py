"""Who is a member of which collection: what turns roles into permissions.

Boundary: members are sealed in the vault, so they are known while its keys are in memory, and
while they rest; a lock forgets them. A collection with members is *closed*: no database
permission, no rule of another plugin and no allow block reaches into it, only its members' roles.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from memory_store.vault.members import ROLES

from .. import compat

if TYPE_CHECKING:
    from ..vaults.vault import Vault

ROLE_ACTIONS: Mapping[str, frozenset[str]] = {
    name: frozenset(
        action for action in compat.ON_COLLECTIONS if getattr(role, action.removeprefix("hybrid-"))
    )
    for name, role in ROLES.items()
}


@dataclass(frozen=True)
class Membership:
    """A vault's collections by id, each with its members: actor id → role (none: it is open)."""

    members: Mapping[str, Mapping[str, str]]

    @cached_property
    def collections(self) -> frozenset[str]:
        """All of them."""
        return frozenset(self.members)

    @cached_property
    def open(self) -> frozenset[str]:
        """Those that the permissions on the database decide about."""
        return frozenset(one for one, members in self.members.items() if not members)

    @cached_property
    def closed(self) -> tuple[str, ...]:
        """Those that only their members may use."""
        return tuple(one for one, members in self.members.items() if members)

    def for_actor(self, actor_id: str | None) -> Membership:
        """The open collections, and the closed ones of which an actor is a member."""
        return Membership(
            {
                one: members
                for one, members in self.members.items()
                if not members or actor_id in members
            }
        )

    def role(self, collection: str, actor_id: str | None) -> str | None:
        """What an actor is in a closed collection; ``None``: nothing."""
        return None if actor_id is None else self.members[collection].get(actor_id)

    def of(self, actor_id: str | None, action: str) -> frozenset[str]:
        """The closed collections in which an actor's role includes ``action``."""
        return frozenset(one for one in self.closed if self.lets(actor_id, action, one))

    def lets(self, actor_id: str | None, action: str, collection: str) -> bool:
        """Whether an actor's role in a closed collection includes ``action``."""
        role = self.role(collection, actor_id)
        return role is not None and action in ROLE_ACTIONS.get(role, ())

    def owned(self, actor_id: str | None) -> frozenset[str]:
        """The closed collections whose members an actor manages."""
        roles = ((one, self.role(one, actor_id)) for one in self.closed)
        return frozenset(one for one, role in roles if role is not None and ROLES[role].manage)


_of_request: ContextVar[Mapping[str, Membership] | None] = ContextVar(
    "hybrid_memberships", default=None
)


async def memberships(datasette: Any) -> Mapping[str, Membership]:
    """Database → who is a member of what, for the vaults whose members are known now.

    Read once for a request, and anew for each question outside of one.
    """
    known = _of_request.get()
    return await _read(datasette) if known is None else known


@asynccontextmanager
async def remembered(
    datasette: Any, actor_id: str | None
) -> AsyncIterator[Mapping[str, Membership]]:
    """The same answer for everything inside, so that one request's permissions fit together.

    Without the closed collections that are not this actor's, which only cost time to be denied.
    """
    known = {name: one.for_actor(actor_id) for name, one in (await _read(datasette)).items()}
    token = _of_request.set(known)
    try:
        yield known
    finally:
        _of_request.reset(token)


async def _read(datasette: Any) -> Mapping[str, Membership]:
    """In a thread: a vault may be opening, and its settings are looked at in the file."""
    from ..vaults.registry import vaults_of

    vaults = vaults_of(datasette).all()
    return await asyncio.to_thread(_of_all, vaults) if vaults else {}


def _of_all(vaults: Iterable[Vault]) -> Mapping[str, Membership]:
    known = {vault.database: _of(vault) for vault in vaults}
    return {database: found for database, found in known.items() if found is not None}


def _of(vault: Vault) -> Membership | None:
    """A vault's members; ``None``, which grants nothing, where they cannot be read."""
    try:
        return vault.membership()
    except Exception as error:  # noqa: BLE001 - others' vaults have permissions of their own
        problem = (
            f"its members cannot be read, so no permission is granted ({type(error).__name__})"
        )
    if vault.problem != problem:
        vault.problem = problem
        vault.tell(problem)
    return None


def rules(
    known: Mapping[str, Membership], actor_id: str | None, action: str
) -> Iterator[compat.Rule]:
    """What follows from membership, as rules of the kind that Datasette 1.0 resolves.

    A denial for everybody else is what makes a collection closed: on a collection it outweighs
    every permission on the database, and there it outweighs other permissions on the collection.
    """
    for database, membership in known.items():
        for collection in membership.closed:
            role = membership.role(collection, actor_id)
            reason = f"{role} of the collection" if role else "only members may use the collection"
            allowed = membership.lets(actor_id, action, collection)
            yield compat.Rule(database, collection, allowed, reason)
