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
from collections.abc import Mapping, Sequence
from typing import Any

from datasette import Response

from memory_store.host import Scope

from ..permissions.asker import asker
from ..search import forms
from ..search.addresses import address, pairs_of
from ..vaults.questions import Who
from ..vaults.vault import Vault
from . import cookies, questions
from .admission import work

NAME = "asked"  # the parameter of an address
VISITOR = "ds_hybrid_visitor"  # the cookie of a browser that has neither logged in nor unlocked
VISITOR_BYTES = 16  # drawn for it: as many as for a name
OVER = "This search is not kept any longer: locking the vault ends that. Ask it again."
NO_STORE = {"Cache-Control": "no-store"}


def name_in(request: Any) -> str | None:
    """The name of a question in the request's address."""
    return forms.last(questions.arguments(request), NAME) or None


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


async def led_away(
    datasette: Any, request: Any, path: str, vaults: Sequence[Vault]
) -> Response | None:
    """From what was posted to the search page at ``path``, to an address where it is answered.

    ``vaults`` are those with private questions that the asker may search. Also from a name that
    stands for nothing now. ``None``: the request is answered where it is.
    """
    if not vaults:
        return None
    if request.method == "POST":
        given = forms.understood(await questions.parameters(request))
        scope = asker.get().on(vaults[0].database).search
        return await led_to(datasette, request, vaults[0], scope, given, path)
    if name_in(request) and not recall(request, vaults):
        datasette.add_message(request, OVER, datasette.WARNING)
        return see(path)
    return None


def recall(request: Any, vaults: Sequence[Vault]) -> bool:
    """Whether the name in the address stands for a question: its parameters from now on, see
    :func:`.questions.parameters`."""
    name, visitor = name_in(request) or "", _visitor(request)
    for vault in vaults:
        found = vault.questions.find(_by(vault, visitor), name)
        if found is not None:
            given: dict[str, list[str]] = {}
            for parameter, value in found:
                given.setdefault(parameter, []).append(value)
            request.scope[questions.QUESTION_KEPT] = given
            return True
    return False


def _visitor(request: Any) -> str | None:
    given = request.cookies.get(VISITOR, "")
    return given if re.fullmatch(r"[\w-]{22}", given, re.ASCII) else None


def _by(vault: Vault, visitor: str | None) -> Who:
    """The asker: an actor, or the holder of the vault's key, else one browser."""
    now = asker.get()
    known = now.actor_id, vault.database in now.sessions
    return known if known != (None, False) else (*known, visitor)
