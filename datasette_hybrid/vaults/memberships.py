"""Who is a member of what in the vaults of one Datasette, read once for a request.

Boundary: a vault whose members cannot be read grants nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..permissions.membership import Membership
from .registry import vaults_of
from .vault import Vault


class _Question(NamedTuple):
    """The databases that are asked about, and who is a member of what in those of their vaults
    whose members are known."""

    databases: Collection[str]
    known: Mapping[str, Membership]


_of_request: ContextVar[_Question | None] = ContextVar("hybrid_memberships", default=None)


async def memberships(datasette: Any) -> Mapping[str, Membership]:
    """Database → who is a member of what, for the vaults whose members are known now.

    Read once for a request, and anew for each question outside of one.
    """
    question = _of_request.get()
    return await _read(datasette) if question is None else question.known


def asked_about(datasette: Any) -> Collection[str]:
    """The databases about which permissions are asked now: all of Datasette's, unless
    :func:`remembered` said which."""
    question = _of_request.get()
    return list(datasette.databases) if question is None else question.databases


@contextmanager
def about(database: str) -> Iterator[None]:
    """Inside, permissions are asked about one database of those that :func:`remembered` named."""
    question = _of_request.get()
    assert question is not None
    known = {name: one for name, one in question.known.items() if name == database}
    token = _of_request.set(_Question((database,), known))
    try:
        yield
    finally:
        _of_request.reset(token)


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
    token = _of_request.set(_Question(databases, known))
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
