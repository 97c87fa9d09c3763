"""Who is a member of which collection: what turns roles into permissions.

Boundary: members are sealed in the vault, so they are known while its keys are in memory, and
while they rest; a lock forgets them. A collection with members is *closed*: no database
permission, no rule of another plugin and no allow block reaches into it, only its members' roles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from memory_store.host import ROLES

from .. import compat

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
        kept = self.members.items()
        return Membership({one: them for one, them in kept if not them or actor_id in them})

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
