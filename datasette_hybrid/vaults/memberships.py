"""Who is a member of what in the vaults of one Datasette, read once for a request.

Boundary: a vault whose members cannot be read grants nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from ..permissions.membership import Membership
from .registry import vaults_of
from .vault import Vault

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
    datasette: Any, actor_id: str | None, databases: Collection[str]
) -> AsyncIterator[Mapping[str, Membership]]:
    """The same answer for everything inside, so that one request's permissions fit together: for
    some databases alone.

    Without the closed collections that are not this actor's, which only cost time to be denied.
    """
    found = await _read(datasette, databases)
    known = {name: one.for_actor(actor_id) for name, one in found.items()}
    token = _of_request.set(known)
    try:
        yield known
    finally:
        _of_request.reset(token)


async def _read(
    datasette: Any, databases: Collection[str] | None = None
) -> Mapping[str, Membership]:
    """In a thread: a vault may be opening, and its settings are looked at in the file."""
    known = vaults_of(datasette)
    vaults = known.all() if databases is None else known.some(databases)
    if not vaults:
        return {}
    each = zip(vaults, await asyncio.to_thread(lambda: [*map(_of, vaults)]), strict=True)
    return {vault.database: found for vault, found in each if found is not None}


def _of(vault: Vault) -> Membership | None:
    """A vault's members; ``None``, which grants nothing, where they cannot be read."""
    try:
        return vault.membership()
    except Exception as error:  # noqa: BLE001 - others' vaults have permissions of their own
        kind = type(error).__name__
        vault.note_problem(f"its members cannot be read, so no permission is granted ({kind})")
        return None
