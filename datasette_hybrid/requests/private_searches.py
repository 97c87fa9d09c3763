"""The way back to a private search: its address holds a name, and the server knows of what.

Boundary: a question that belongs in no address arrives in a form's body and is answered at an
address that names it, so that *Back* and *Reload* ask it again without a form that would have to
be sent a second time (which browsers warn of, and keep the body for). The name is random; what it
stands for is in memory alone, see :mod:`datasette_hybrid.vaults.questions`, for the asker: an
actor, the holder of the key, or, for a visitor, the browser that has the random cookie.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from functools import wraps
from typing import Any

from datasette import Response

from memory_store.access import Grants
from memory_store.host import Scope

from ..permissions.asker import asker
from ..permissions.grants import may_see
from ..search import forms
from ..search.addresses import address, pairs_of
from ..vaults.registry import vaults_of
from ..vaults.vault import Vault
from . import cookies, questions
from .admission import work
from .frame import hybrid_path

NAME = "asked"  # the parameter of an address
VISITOR = "ds_hybrid_visitor"  # the cookie of a browser that has neither logged in nor unlocked
VISITOR_BYTES = 16  # drawn for it: as many as for a name
OVER = "This search is not kept any longer: locking the vault ends that. Ask it again."
NO_STORE = {"Cache-Control": "no-store"}

View = Callable[[Any, Any], Awaitable[Response]]


def name_in(request: Any) -> str | None:
    """The name of a question in the request's address."""
    return forms.last(questions.arguments(request), NAME) or None


def recalled(request: Any, vaults: Iterable[Vault]) -> dict[str, list[str]] | None:
    """The question that the request's address names; from now on its parameters. Or ``None``."""
    name = name_in(request)
    visitor = _visitor(request)
    for vault in vaults if name else ():
        found = vault.questions.find(_by(vault, visitor), name or "")
        if found is not None:
            given: dict[str, list[str]] = {}
            for parameter, value in found:
                given.setdefault(parameter, []).append(value)
            request.scope[questions.QUESTION_KEPT] = given
            return given
    return None


async def led_to(
    datasette: Any, request: Any, vault: Vault, scope: Scope, given: Mapping[str, Any], path: str
) -> Response | None:
    """The way to the address at ``path`` that asks ``given``; ``None``: it is too long to be kept.

    Raises :class:`LockedError`.
    """
    pairs = pairs_of(given)
    if not pairs:
        return see(path)
    visitor = _visitor(request) or secrets.token_urlsafe(VISITOR_BYTES)
    name = await work.run(lambda: vault.keep_question(scope, _by(vault, visitor), pairs))
    if name is None:
        return None
    response = see(address(path, [(NAME, name)]))
    cookies.give(datasette, request, response, VISITOR, visitor)
    return response


def see(path: str) -> Response:
    """The way from what was posted to an address."""
    return Response.redirect(path, status=303, headers=dict(NO_STORE))


def in_one_vault(view: View) -> View:
    """The search page of one vault, whose private questions are answered at addresses."""

    @wraps(view)
    async def answer(datasette: Any, request: Any) -> Response:
        vault, grants = await questions.vault_for(datasette, request, "search")
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
            await questions.read_body(request)  # may take long; who may do what is settled by then
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
        given = forms.understood(await questions.parameters(request))
        there = await led_to(datasette, request, vault, grants.search, given, path)
        if there is not None:
            return there
    elif (
        private and name_in(request) and recalled(request, [vault for vault, _ in private]) is None
    ):
        datasette.add_message(request, OVER, datasette.WARNING)
        return see(path)
    return await view(datasette, request)


def _visitor(request: Any) -> str | None:
    given = request.cookies.get(VISITOR, "")
    return given if re.fullmatch(r"[\w-]{22}", given, re.ASCII) else None


def _by(vault: Vault, visitor: str | None) -> Hashable:
    """The asker: an actor, or the holder of the vault's key, else one browser."""
    now = asker.get()
    known = now.actor_id, vault.database in now.sessions
    return known if known != (None, False) else (*known, visitor)
