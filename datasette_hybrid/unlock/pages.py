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
from ..vaults.vault import AnotherKeyError, Vault
from .attempts import attempts_of
from .clients import client_of, remember
from .errands import Errand, described, from_form
from .lock_bar import may_lock

SECRET_LIMIT = 4096  # characters
DOES_NOT_OPEN = "That does not open this vault. Check for a missing or extra character."
OPEN_WITH_ANOTHER = (
    "This vault is open with another key. Once it is locked, yours opens what is shared with you."
)
LACKS_DEVICE_KEY = (
    "A passphrase of this vault also needs its device key, which this server does not have. Use "
    "the recovery code or a key file, or have the device key put here: memory-store keys device "
    "import, as the user that runs this server."
)


@page("GET", "HEAD", "POST")
async def unlock(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/unlock``."""
    vault = await questions.visible_vault(datasette, request)
    vault.server.check()
    if request.method != "POST":
        return await unlock_page(datasette, request, vault)
    given = await questions.parameters(request)
    secret = (given.get("secret") or [""])[-1]
    if not isinstance(secret, str) or len(secret) > SECRET_LIMIT:
        raise BadInputError("secret: this is too long to be one", "secret")
    errand, client = from_form(given), client_of(datasette, request, vault)
    status, problem, headers = 400, "" if secret.strip() else "Nothing was entered.", {}
    try:
        if not problem:
            await attempts_of(datasette).judge(
                client, lambda: locksmith.run(lambda: vault.unlock(secret))
            )
    except TooManyAttemptsError as error:
        status, headers = 429, {"Retry-After": str(error.seconds)}
        problem = f"Too many wrong secrets. Try again in {error.seconds} seconds."
    except (WrongKeyError, BadInputError) as error:
        vault.audit.note("failed unlock")
        status, problem = 403, DOES_NOT_OPEN
        if isinstance(error, DeviceKeyError):
            problem = LACKS_DEVICE_KEY
    except AnotherKeyError:
        status, problem = 409, OPEN_WITH_ANOTHER
    if problem:
        return await unlock_page(datasette, request, vault, status, problem, headers, errand)
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
        "task": described(errand),
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
