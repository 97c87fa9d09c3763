"""Unlocking a vault in the browser, and locking it again.

Boundary: the secret arrives in a form's body, is handed on at once and goes nowhere else: not
into a message, a log, a URL or a cookie. Wrong ones are counted (``attempts.py``).
"""

from __future__ import annotations

import asyncio
from typing import Any

from datasette import Forbidden, Response

from memory_store.errors import BadInputError, DeviceKeyError, WrongKeyError

from ..permissions.session_cookies import end_session, grant_session
from ..requests import questions
from ..requests.admission import TooManyAttemptsError, locksmith
from ..requests.frame import hybrid_path, page, render, unlock_page
from ..vaults.registry import vaults_of
from ..vaults.vault import AnotherKeyError, Vault
from .attempts import attempts_of
from .clients import client_of, remember
from .errands import Errand, from_form, told
from .lock_bar import may_lock

SECRET_LIMIT = 4096  # characters
LACKS_DEVICE_KEY = (
    "A passphrase of this vault also needs its device key, which this server does not have. Use "
    "the recovery code or a key file, or have the device key put here: memory-store keys device "
    "import, as the user that runs this server."
)


@page("GET", "HEAD", "POST")
async def unlock(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/unlock``."""
    vault = await questions.visible_vault(datasette, request)
    if request.method != "POST":
        return await unlock_page(datasette, request, vault)
    given = await questions.parameters(request)
    secret = (given.get("secret") or [""])[-1]
    if not isinstance(secret, str) or len(secret) > SECRET_LIMIT:
        raise BadInputError("secret: this is too long to be one", "secret")
    errand = from_form(given)
    if not secret.strip():
        problem = "Nothing was entered."
        return await unlock_page(
            datasette, request, vault, status=400, problem=problem, errand=errand
        )
    return await _try(datasette, request, vault, secret, errand)


async def _try(datasette: Any, request: Any, vault: Vault, secret: str, errand: Errand) -> Response:
    client = client_of(datasette, request, vault, vaults_of(datasette).proxies)
    try:
        await attempts_of(datasette).judge(
            client, lambda: locksmith.run(lambda: vault.unlock(secret))
        )
    except TooManyAttemptsError as error:
        return await unlock_page(
            datasette,
            request,
            vault,
            status=429,
            problem=f"Too many wrong secrets. Try again in {error.seconds} seconds.",
            headers={"Retry-After": str(error.seconds)},
            errand=errand,
        )
    except (WrongKeyError, BadInputError) as error:
        vault.audit.note("failed unlock")
        problem = "That does not open this vault. Check for a missing or extra character."
        if isinstance(error, DeviceKeyError):
            problem = LACKS_DEVICE_KEY
        return await unlock_page(
            datasette,
            request,
            vault,
            status=403,
            problem=problem,
            errand=errand,
        )
    except AnotherKeyError:
        return await unlock_page(
            datasette,
            request,
            vault,
            status=409,
            problem="This vault is open with another key. Once it is locked, yours "
            "opens what is shared with you.",
            errand=errand,
        )
    vault.audit.note("unlock", session=True)
    response = await _onward(datasette, request, vault, errand)
    grant_session(datasette, request, response, vault)
    remember(datasette, request, response, vault)
    return response


async def _onward(datasette: Any, request: Any, vault: Vault, errand: Errand) -> Response:
    """Back to where the user was; what belongs in no address goes there by a form."""
    path = hybrid_path(datasette, vault.database)
    private = vault.settings.private_queries
    if private and errand.below and not errand.posted:
        errand = Errand(errand.below)  # there, a query is only the way back to its results
    if not errand.posted and not (private and errand.pairs):
        headers = {"Cache-Control": "no-store"}
        return Response.redirect(errand.href(path), status=303, headers=headers)
    context = {
        "database": vault.database,
        "action": path + errand.below,
        "fields": errand.pairs,
        "searching": not errand.below,
        "task": told(errand),
    }
    return await render(datasette, request, "hybrid_unlocked.html", context)


@page("POST")
async def lock(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/lock``: see :func:`may_lock`; ``only=session`` ends this session alone."""
    vault = await questions.visible_vault(datasette, request)
    given = await questions.parameters(request)
    only = "session" in given.get("only", ())
    if not may_lock(vault.database):
        raise Forbidden(
            f"{vault.database}: to lock it for everybody, unlock it with its secret, or have the "
            "permission hybrid-write or hybrid-audit on the database"
        )
    if not only:
        if not vault.locked:
            vault.audit.note("lock")
        await asyncio.to_thread(vault.lock)  # in no queue: locking must never wait for a turn
    path = hybrid_path(datasette, vault.database)
    response = Response.redirect(
        f"{path}/unlock", status=303, headers={"Cache-Control": "no-store"}
    )
    end_session(datasette, request, response, vault)
    return response
