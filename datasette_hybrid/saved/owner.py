"""Whose saved searches a request is about, and what it may do with them.

Boundary: a saved search is its owner's alone, whatever else an actor may do. It takes the search
grant to see, run or change one. A token with restrictions changes none, and no token makes a feed:
that would be a secret which outlives it.
"""

from __future__ import annotations

from typing import Any

from datasette import Forbidden
from datasette.actor_auth_cookie import actor_from_request

from memory_store.access import Grants
from memory_store.host import EVERYTHING, MemoryStore
from memory_store.records import HOLDER, SavedSearch

from ..permissions.asker import asker
from ..requests import questions
from ..vaults.vault import Vault


async def owned(datasette: Any, request: Any) -> tuple[Vault, Grants, str]:
    """The vault, the grants, and the actor whose saved searches are meant. Raises ``Forbidden``."""
    vault, grants = await questions.vault_for(datasette, request, "search")
    owner = owner_of(vault)
    if owner is None:
        raise Forbidden(f"{vault.database}: saved searches belong to an actor; sign in first")
    return vault, grants, owner


async def changing(datasette: Any, request: Any, *, feed: bool = False) -> tuple[Vault, str]:
    """The same for a request that changes some, or makes a ``feed``. Raises ``Forbidden``."""
    vault, _, owner = await owned(datasette, request)
    actor = asker.get().actor or {}
    if "_r" in actor:
        raise Forbidden(f"{vault.database}: a token with restrictions changes no saved search")
    if feed and ("token" in actor or _by_token(datasette, request, actor)):
        raise Forbidden(f"{vault.database}: a token makes no feed, which has a token of its own")
    return vault, owner


def _by_token(datasette: Any, request: Any, actor: Any) -> bool:
    """Whether a token made the actor. Not every plugin notes that in the actor: so it counts as
    made by a token where one is sent, unless the actor is the one of the cookie."""
    if not request.headers.get("authorization", "").lower().startswith("bearer "):
        return False
    return bool(actor_from_request(datasette, request) != actor)


def owner_of(vault: Vault) -> str | None:
    """The actor of the running request, or the holder of the key; ``None`` for a visitor."""
    known = asker.get()
    if known.actor_id is not None:
        return known.actor_id
    return HOLDER if vault.database in known.sessions else None


def store_of(vault: Vault) -> MemoryStore:
    """The whole vault, whose settings hold the saved searches: for an owner's, and no memory."""
    return vault.use(EVERYTHING)


def saved_for(vault: Vault, owner: str | None) -> list[SavedSearch]:
    """An actor's saved searches; none where the vault cannot keep any, or for a visitor."""
    if owner is None or not store_of(vault).is_owner:
        return []
    return store_of(vault).searches.list(owner)
