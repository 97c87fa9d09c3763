"""The way back to a private search: its address holds a name, and the server knows of what.

Boundary: a question that belongs in no address arrives in a form's body and is answered at an
address that names it, so that *Back* and *Reload* ask it again without a form that would have to
be sent a second time (which browsers warn of, and keep the body for). The name is random; what it
stands for is in memory alone, see :mod:`datasette_hybrid.vaults.questions`, for whoever asked. Of
visitors whom nobody can tell apart nothing is kept: one could ask for another's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import wraps
from typing import Any

from datasette import Response

from memory_store.scopes import Scope
from memory_store.sql.functions import Grants

from ..permissions.grants import asker, may_see
from ..searching import forms
from ..searching.addresses import address, pairs_of
from ..vaults.registry import vaults_of
from ..vaults.vault import Vault
from . import asking
from .admission import work
from .framing import hybrid_path

NAME = "asked"  # the parameter of an address
OVER = "This search is not kept any longer: locking the vault ends that. Ask it again."
NO_STORE = {"Cache-Control": "no-store"}

View = Callable[[Any, Any], Awaitable[Response]]


def name_in(request: Any) -> str | None:
    """The name of a question in the request's address."""
    return forms.last(asking.arguments(request), NAME) or None


def recalled(request: Any, vaults: Iterable[Vault]) -> dict[str, list[str]] | None:
    """The question that the request's address names; from now on its parameters. Or ``None``."""
    name = name_in(request)
    for vault in vaults if name else ():
        by = _by(vault)
        found = None if by is None else vault.questions.find(by, name or "")
        if found is not None:
            given: dict[str, list[str]] = {}
            for parameter, value in found:
                given.setdefault(parameter, []).append(value)
            request.scope[asking.QUESTION_KEPT] = given
            return given
    return None


async def named(vault: Vault, scope: Scope, given: Mapping[str, Any], path: str) -> str | None:
    """The address at ``path`` that asks ``given``; ``None`` for a question that is not kept, since
    it is too long or anybody's.

    Raises :class:`LockedError`.
    """
    pairs, by = pairs_of(given), _by(vault)
    if not pairs:
        return path
    if by is None:
        return None
    name = await work.run(lambda: vault.keep_question(scope, by, pairs))
    return None if name is None else address(path, [(NAME, name)])


def in_one_vault(view: View) -> View:
    """The search page of one vault, whose private questions are answered at addresses."""

    @wraps(view)
    async def answer(datasette: Any, request: Any) -> Response:
        vault, grants = await asking.vault_for(datasette, request, "search")
        if not vault.settings.private_queries:
            return await view(datasette, request)
        path = hybrid_path(datasette, vault.database)
        return await _answered(datasette, request, view, path, [(vault, grants)])

    return answer


def in_all_vaults(view: View) -> View:
    """The same for the page across all of them."""

    @wraps(view)
    async def answer(datasette: Any, request: Any) -> Response:
        if request.method == "POST":
            await asking.read_body(request)  # may take long; who may do what is settled by then
        private = []
        for vault in vaults_of(datasette).all():
            grants = asker.get().on(vault.database)
            shown = await may_see(datasette, request.actor, vault.database)
            if shown and vault.settings.private_queries and grants.search and not vault.locked:
                private.append((vault, grants))
        path = datasette.urls.path("/-/hybrid")
        return await _answered(datasette, request, view, path, private)

    return answer


async def _answered(
    datasette: Any, request: Any, view: View, path: str, private: list[tuple[Vault, Grants]]
) -> Response:
    """What was posted is sent on to an address; there it is answered."""
    if request.method == "POST" and private:
        vault, grants = private[0]
        given = forms.understood(await asking.parameters(request))
        there = await named(vault, grants.search, given, path)
        if there is not None:
            return Response.redirect(there, status=303, headers=NO_STORE)
    elif (
        private and name_in(request) and recalled(request, [vault for vault, _ in private]) is None
    ):
        datasette.add_message(request, OVER, datasette.WARNING)
        return Response.redirect(path, status=303, headers=NO_STORE)
    return await view(datasette, request)


def _by(vault: Vault) -> tuple[str | None, bool] | None:
    """Whoever asks: an actor, or the holder of the vault's key. ``None`` for anybody."""
    now = asker.get()
    by = now.actor_id, vault.database in now.sessions
    return None if by == (None, False) else by
