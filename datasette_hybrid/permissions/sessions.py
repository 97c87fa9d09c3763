"""Browser sessions that unlocked a vault: a signed cookie bound to the vault and to that unlock.

Boundary: the cookie proves that this browser once sent the right secret; it holds no key. It is
worth nothing after the vault was locked, for another vault or database, when its time is over
(counted from the unlocking in this browser), or beside an ``Authorization`` header (a restricted
token must not borrow a person's session).
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Any

from itsdangerous import BadSignature

from .. import compat

if TYPE_CHECKING:
    from ..vaults.vault import Vault

NAMESPACE = "hybrid-unlock"
NAME_DIGITS = 16


def cookie_name(vault: Vault) -> str:
    """One cookie per vault and database: a copy of a vault has its id, and locks of its own."""
    named = hashlib.sha256(f"{vault.vault_id} {vault.database}".encode()).hexdigest()
    return f"ds_hybrid_{named[:NAME_DIGITS]}"


def session_unlock(datasette: Any, request: Any, vault: Vault) -> bool:
    """Whether the request comes from a session that unlocked this vault and still may."""
    if not vault.unlock_id or "authorization" in request.headers:
        return False
    signed = request.cookies.get(cookie_name(vault))
    if not signed:
        return False
    try:
        value = datasette.unsign(signed, NAMESPACE)
    except BadSignature:
        return False
    if not isinstance(value, dict):
        return False
    until = value.pop("until", None)
    over = isinstance(until, int | float) and time.time() >= until
    return not over and value == _bound_to(vault)


def grant_session(datasette: Any, request: Any, response: Any, vault: Vault) -> None:
    """Put the cookie into the response. It ends when the vault would, counted from now."""
    lifetime = vault.settings.absolute_seconds
    until = {"until": time.time() + lifetime} if lifetime else {}
    response.set_cookie(
        cookie_name(vault),
        datasette.sign({**_bound_to(vault), **until}, NAMESPACE),
        path=datasette.setting("base_url"),
        max_age=max(1, round(lifetime)) if lifetime else None,  # none: until the browser closes
        httponly=True,
        # strict: another site cannot even make the browser open a search and time the answer
        samesite="strict",
        secure=compat.is_https(datasette, request),
    )


def _bound_to(vault: Vault) -> dict[str, str | None]:
    return {"vault": vault.vault_id, "database": vault.database, "unlock": vault.unlock_id}


def end_session(datasette: Any, response: Any, vault: Vault) -> None:
    """Take the cookie out of the browser."""
    path = datasette.setting("base_url")
    response.set_cookie(cookie_name(vault), "", path=path, max_age=0, expires=0)
