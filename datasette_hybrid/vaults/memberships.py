"""Who is a member of what in the vaults of one Datasette, read once for a request.

Boundary: a vault whose members cannot be read grants nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
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
    vaults = vaults_of(datasette).all()
    if not vaults:
        return {}
    known = zip(vaults, await asyncio.to_thread(lambda: [*map(_of, vaults)]), strict=True)
    return {vault.database: found for vault, found in known if found is not None}


def _of(vault: Vault) -> Membership | None:
    """A vault's members; ``None``, which grants nothing, where they cannot be read."""
    try:
        return vault.membership()
    except Exception as error:  # noqa: BLE001 - others' vaults have permissions of their own
        kind = type(error).__name__
        vault.note_problem(f"its members cannot be read, so no permission is granted ({kind})")
        return None
