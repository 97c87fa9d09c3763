"""Members of a collection: which actors may do what in it.

Boundary: actors and roles are sealed in the vault's settings. They bind those who ask through a
server; the holder of the vault's key needs none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from memory_store.errors import BadInputError, NotFoundError

ACTOR_LIMIT = 200  # characters of an actor's id
OWNER_ROLE: Final = "owner"


class Role(Struct, frozen=True):
    """What a member of that role may do in the collection; ``manage`` is to choose its members."""

    search: bool = False
    decrypt: bool = False
    write: bool = False
    manage: bool = False


ROLES: Final[Mapping[str, Role]] = MappingProxyType(
    {
        OWNER_ROLE: Role(search=True, decrypt=True, write=True, manage=True),
        "writer": Role(search=True, decrypt=True, write=True),
        "reader": Role(search=True, decrypt=True),
        "searcher": Role(search=True),
    }
)


class Member(Struct, frozen=True):
    """An actor's role in one collection (by id)."""

    collection: str
    actor: str
    role: str


def changed_members(
    members: Mapping[str, str], add: Mapping[str, str], remove: Collection[str]
) -> dict[str, str]:
    """Actor → role after a change. Raises BadInputError, NotFoundError for one who is no member.

    A collection with members has an owner, or no member could let others in. So the first
    member is one, and the last one cannot be taken away.
    """
    for actor in remove:
        if actor not in members:
            raise NotFoundError(f"no member {actor!r}")
    chosen = {_checked_actor(actor): _checked_role(role) for actor, role in add.items()}
    after = {**members, **chosen}
    after = {actor: role for actor, role in after.items() if actor not in remove}
    if OWNER_ROLE in after.values():
        return after
    if not members:
        raise BadInputError("the first member of a collection is its owner", "role")
    raise BadInputError(
        "a collection with members keeps an owner: make another member owner first, "
        "or open it to all",
        "actor",
    )


def _checked_actor(actor: str) -> str:
    if not isinstance(actor, str) or not 0 < len(actor) <= ACTOR_LIMIT or not actor.isprintable():
        raise BadInputError(f"an actor's id is 1 to {ACTOR_LIMIT} printable characters", "actor")
    return actor


def _checked_role(role: str) -> str:
    if role not in ROLES:
        raise BadInputError(f"no role {role!r}; there is: {', '.join(ROLES)}", "role")
    return role
